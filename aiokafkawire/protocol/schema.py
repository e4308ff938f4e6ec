"""How a message is declared: once, as an attrs class, with the versions of each field beside it.

    @nested
    class DeletableTopicResult:
        name: String | None = field("0+", nullable="6+")
        topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)

    @message(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
    class DeleteTopicsResponse(Response):
        throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
        responses: Array[DeletableTopicResult] = field("0+")

One class serves every version: encoding picks the fields that the version has, decoding gives the others their
default. A field without a default must be given, so it must exist in every version; compiling checks that.
"""

import re
from collections.abc import Callable
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
        """Read the written form.

        Raises:
            ValueError: the text is none of the four forms.
        """
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
        """Whether every version of ``other`` is in this range."""
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
    """One field: what it holds, and in which versions.

    ``kind`` is a primitive or the class of a nested struct; of an array, its elements'. ``tag`` is set where the
    field travels among the tagged ones. ``flexible`` overrides the message's flexible versions (RequestHeader's
    client id stays a plain string).
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
    """The Python default, a callable where each message needs a fresh one; ``attrs.NOTHING`` if it must be given."""


@attrs.frozen
class StructSchema:
    """The fields of a message or nested struct, in the order of the wire."""

    name: str
    fields: tuple[FieldSchema, ...]


class Message:
    """The base of requests, responses, headers and embedded data: what the compiler needs to know of a class."""

    __slots__ = ()

    versions: ClassVar[Versions]
    """Every version that is declared."""
    flexible: ClassVar[Versions]
    """The versions with compact forms and tagged fields (KIP-482)."""


class Response(Message):
    """What a broker answers.

    ``throttle_time_ms``, which most have, is how long the broker wants to be left alone; newer versions answer at once
    and leave the waiting to the client, older ones have waited already (KIP-124, KIP-219).
    """

    __slots__ = ()

    api_key: ClassVar[int]


R_co = TypeVar("R_co", bound=Response, covariant=True)


class Request(Message, Generic[R_co]):
    """What a client asks; ``R_co`` is the class of its answer."""

    __slots__ = ()

    api_key: ClassVar[int]
    stable: ClassVar[Versions]
    """The versions a client may choose by itself: Kafka marks the newest one unstable while it is made."""
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
        versions: in which versions of the message it exists.
        default: its value when it is not given, and in versions without it; ``list`` or a struct's class for a new one.
        nullable: in which versions it may be None.
        tag: its number among the tagged fields; None for a field in line.
        ignorable: whether a version without it may drop a value; otherwise that is an UnsupportedVersion error.
        flexible: the versions in which it takes the compact form, where they are not the message's.
        secret: whether ``repr`` keeps its bytes to itself, since messages get into logs.
    """
    declared = {
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
    """Make a struct that messages hold. It also keeps ``unknown_tagged_fields``: tag to bytes, or None."""
    cls.__annotations__["unknown_tagged_fields"] = dict[int, bytes] | None
    # Kept so that a newer broker's additions survive a round trip; None, not {}, so that none cost nothing.
    unknown = attrs.field(default=None, repr=_repr_if_any, metadata={"unknown": True})
    setattr(cls, "unknown_tagged_fields", unknown)  # noqa: B010  # a name that the class does not declare
    # A decoded metadata answer holds hundreds of thousands of objects: no room in them for weak references.
    made = attrs.define(cls, kw_only=True, slots=True, weakref_slot=False, eq=True)
    factories = ((one.name, getattr(one.default, "factory", list)) for one in attrs.fields(made))  # type: ignore[arg-type]
    defaults = {name: factory for name, factory in factories if factory is not list}
    if defaults:
        setattr(made, "__getattr__", _made_when_looked_at(defaults))  # noqa: B010  # type checkers know no such fields
    return made


def _made_when_looked_at(defaults: dict[str, Callable[[], Any]]) -> Callable[[Any, str], Any]:
    """A ``__getattr__`` for structs by default, which the compiled decoder leaves out: mostly nobody looks."""

    def look(self: Any, name: str) -> Any:
        make = defaults.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        made = make()
        setattr(self, name, made)
        return made

    return look


def _repr_if_any(value: object) -> str:
    return repr(value) if value else "None"


M = TypeVar("M", bound=Message)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def message(
    api_key: int | None = None, *, versions: str, flexible: str = "none", unstable: str = "none"
) -> Callable[[type[M]], type[M]]:
    """Make a message: a request or response of ``api_key``, or without one a header or embedded data.

    Args:
        api_key: the API that it belongs to.
        versions: every version that is declared.
        flexible: those with compact forms and tagged fields.
        unstable: those that a client must not choose by itself.
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
    """The schema of a declared class, nested ones included by their classes."""
    schema: StructSchema | None = cls.__dict__.get("__schema__")
    if schema is None:
        fields = (_field_schema(attribute) for attribute in attrs.fields(cls) if "versions" in attribute.metadata)
        schema = StructSchema(cls.__name__, tuple(fields))
        cls.__schema__ = schema
    return schema


def _field_schema(attribute: "attrs.Attribute[Any]") -> FieldSchema:
    kind, array = _kind_of(attribute.type)
    # attrs tells type checkers that a Factory is the value it makes.
    default: Any = attribute.default
    default = getattr(default, "factory", default)
    return FieldSchema(name=attribute.name, kind=kind, array=array, default=default, **attribute.metadata)


def _kind_of(annotation: Any) -> "tuple[WireType | type[Any], bool]":
    """Read ``String``, ``Array[Int32]``, ``Topic | None``: the wire type or struct, and whether it is an array."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (arm for arm in get_args(annotation) if arm is not type(None))
    if get_origin(annotation) is list:
        return _kind_of(get_args(annotation)[0])[0], True
    if get_origin(annotation) is Annotated:
        # Buffer is a union itself, so Annotated keeps its wire type last.
        return get_args(annotation)[-1], False
    return annotation, False
