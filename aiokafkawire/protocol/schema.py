"""The declaration of messages: each message is an attrs class, which declares the versions of each field.

    @nested
    class DeletableTopicResult:
        name: String | None = field("0+", nullable="6+")
        topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)

    @message(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
    class DeleteTopicsResponse(Response):
        throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
        responses: Array[DeletableTopicResult] = field("0+")

One class describes all versions of a message: encoding a version uses that version's fields, and decoding sets the
fields that the version lacks to their default. A field without a default is required, so it must exist in every
version; compiling checks this.
"""

import re
from collections.abc import Callable, Mapping
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import attrs

from .._lazy_classes import define
from .primitives import WireType

__all__ = (
    "FieldSchema",
    "Message",
    "Request",
    "Response",
    "StructSchema",
    "Versions",
    "field",
    "message",
    "nested",
    "schema_of",
)

_LAST: Final = 32767
_RANGE: Final = re.compile(r"(\d+)(?:(\+)|-(\d+))?")


class Versions(NamedTuple):
    """A closed range of versions, written ``3``, ``0-7``, ``4+`` or ``none`` (empty)."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """Parse a range of versions: ``3``, ``0-7``, ``4+`` or ``none``; raise ValueError for other text."""
        if text == "none":
            return cls(0, -1)
        found = _RANGE.fullmatch(text)
        if found is None:
            raise ValueError(f"not a range of versions: {text!r}")
        first, open_end, last = found.groups()
        return cls(int(first), _LAST if open_end else int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def covers(self, other: "Versions") -> bool:
        """Return whether every version of ``other`` is in this range."""
        return other.last < other.first or (self.first <= other.first and other.last <= self.last)

    def __str__(self) -> str:
        if self.last < self.first:
            return "none"
        if self.last == _LAST:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


_NEVER: Final = Versions.parse("none")


@attrs.frozen
class FieldSchema:
    """The schema of one field: its type and its versions.

    ``kind`` is a primitive or the class of a nested struct; for an array, the type of its elements. ``tag`` is set for
    tagged fields. ``flexible`` overrides the message's flexible versions (RequestHeader's client id is always a plain
    string).
    """

    name: str
    kind: "WireType | type[Any]"
    array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    ignorable: bool
    flexible: Versions | None
    default: Any
    """The Python default, or a function that makes it; ``attrs.NOTHING`` if the field is required."""


@attrs.frozen
class StructSchema:
    """The fields of a message or nested struct, in encoded order."""

    name: str
    fields: tuple[FieldSchema, ...]


class Message:
    """The base class of requests, responses, headers and embedded data, with class variables that the compiler uses."""

    __slots__ = ()

    versions: ClassVar[Versions]
    """All declared versions."""
    flexible: ClassVar[Versions]
    """The versions with compact forms and tagged fields (KIP-482)."""


class Response(Message):
    """A broker's response.

    Most responses have ``throttle_time_ms``, the time for which the client is throttled: in newer versions the client
    must wait after the response, in older versions the broker has waited before the response (KIP-124, KIP-219).
    """

    __slots__ = ()

    api_key: ClassVar[int]


R_co = TypeVar("R_co", bound=Response, covariant=True)


class Request(Message, Generic[R_co]):
    """A client's request; ``R_co`` is the class of its response."""

    __slots__ = ()

    api_key: ClassVar[int]
    stable: ClassVar[Versions]
    """The versions that a client may use: without the newest version while Kafka marks that version as unstable."""
    response: ClassVar[type[Response]]


def field(
    versions: str,
    *,
    default: Any = attrs.NOTHING,
    nullable: str = "none",
    tag: int | None = None,
    ignorable: bool = False,
    flexible: str | None = None,
    secret: bool = False,
) -> Any:
    """Declare a field of a message.

    Args:
        versions: the versions of the message with this field.
        default: the value if none is given, and in versions without the field; or a callable that makes this value.
        nullable: the versions in which the field may be None.
        tag: the tag of a tagged field; None for an inline field.
        ignorable: whether encoding a version without the field drops its value instead of raising UnsupportedVersion.
        flexible: the versions with the compact form, if they differ from the message's ``flexible`` versions.
        secret: whether ``repr`` hides the bytes, since messages may be logged.
    """
    declared = {
        "default": default,
        "versions": Versions.parse(versions),
        "nullable": Versions.parse(nullable),
        "tag": tag,
        "ignorable": ignorable,
        "flexible": None if flexible is None else Versions.parse(flexible),
    }
    made = attrs.Factory(default) if callable(default) else default
    return attrs.field(default=made, repr=_size_alone if secret else _short_repr, metadata=declared)


def _short_repr(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>" if len(value) > 32 else repr(bytes(value))
    return repr(value)


def _size_alone(value: object) -> str:
    return f"<{len(value)} bytes>" if isinstance(value, bytes | bytearray | memoryview) else "<secret>"


T = TypeVar("T")


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def nested(cls: type[T]) -> type[T]:
    """Make the class a struct of a message; add the field ``unknown_tagged_fields``: bytes by tag, or None."""
    declared = {name: (kind, getattr(cls, name).metadata) for name, kind in cls.__annotations__.items()}
    cls.__annotations__["unknown_tagged_fields"] = dict[int, bytes] | None
    # Decoding and encoding keep a newer broker's fields. The default is None, which is cheaper than {}.
    unknown = attrs.field(default=None, repr=_repr_if_any)
    setattr(cls, "unknown_tagged_fields", unknown)  # noqa: B010  # a name that the class does not declare
    # Without slots for weak references: a metadata response has hundreds of thousands of objects.
    made = define(cls, kw_only=True, weakref_slot=False)
    setattr(made, "__declared__", declared)  # noqa: B010  # as above
    given = ((name, metadata["default"]) for name, (_, metadata) in declared.items())
    defaults = {name: default for name, default in given if callable(default) and default is not list}
    if defaults:
        setattr(made, "__getattr__", _default_on_access(defaults))  # noqa: B010  # as above
    return made


def _default_on_access(defaults: dict[str, Callable[[], Any]]) -> Callable[[Any, str], Any]:
    """Return a ``__getattr__`` that makes default structs on access, since the compiled decoder omits them."""

    def get(self: Any, name: str) -> Any:
        make = defaults.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        made = make()
        setattr(self, name, made)
        return made

    return get


def _repr_if_any(value: object) -> str:
    return repr(value) if value else "None"


M = TypeVar("M", bound=Message)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def message(
    api_key: int | None = None, *, versions: str, flexible: str = "none", unstable: str = "none"
) -> Callable[[type[M]], type[M]]:
    """Make the class a message: a request or response of an API, or without ``api_key`` a header or embedded data.

    Args:
        api_key: the API of a request or response.
        versions: all versions of the message.
        flexible: the versions with compact forms and tagged fields.
        unstable: the versions that clients must not use.
    """

    def make(cls: type[M]) -> type[M]:
        declared = Versions.parse(versions)
        made: Any = nested(cls)
        made.versions, made.flexible = declared, Versions.parse(flexible)
        if api_key is not None:
            made.api_key = api_key
        if issubclass(made, Request):
            made.response = _answer_of(made)
            newest = Versions.parse(unstable)
            made.stable = declared if newest == _NEVER else Versions(declared.first, newest.first - 1)
        return made  # type: ignore[no-any-return]

    return make


def _answer_of(cls: type[Request[Response]]) -> type[Response]:
    for base in cls.__orig_bases__:  # type: ignore[attr-defined]
        if get_origin(base) is Request:
            answer: type[Response] = get_args(base)[0]
            return answer
    raise TypeError(f"{cls.__name__} must name its answer: class {cls.__name__}(Request[...])")


def schema_of(cls: type[Any]) -> StructSchema:
    """Return the schema of a declared class; the schema refers to nested structs by their classes."""
    schema: StructSchema | None = cls.__dict__.get("__schema__")
    if schema is None:
        fields = (_field_schema(name, kind, metadata) for name, (kind, metadata) in cls.__declared__.items())
        schema = StructSchema(cls.__name__, tuple(fields))
        cls.__schema__ = schema
    return schema


def _field_schema(name: str, annotation: Any, metadata: Mapping[str, Any]) -> FieldSchema:
    kind, array = _kind_of(annotation)
    return FieldSchema(name=name, kind=kind, array=array, **metadata)


def _kind_of(annotation: Any) -> "tuple[WireType | type[Any], bool]":
    """Return the type in an annotation such as ``Array[Int32]`` or ``Topic | None``, and whether it is an array."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (arm for arm in get_args(annotation) if arm is not type(None))
    if get_origin(annotation) is list:
        return _kind_of(get_args(annotation)[0])[0], True
    if get_origin(annotation) is Annotated:
        # Buffer is a union, so the wire type is the last argument of Annotated.
        return get_args(annotation)[-1], False
    return annotation, False
