"""aiokafka's ConsumerRecord, made of this client's records without copying all their fields."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from .. import records as own

__all__ = ("ConsumerRecord", "wrap", "wrap_all")

KT = TypeVar("KT")
VT = TypeVar("VT")


@dataclass
class _Fields:
    """The fields of a record, in aiokafka's order."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: object
    value: object
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    headers: Sequence[tuple[str, bytes]]


_NAMES: Final = tuple(_Fields.__dataclass_fields__)
_SIZED: Final = {"serialized_key_size": "raw_key", "serialized_value_size": "raw_value"}


def _changed(record: Any, name: str, value: object) -> SimpleNamespace:
    """Return the fields of a record that lie behind the slots, with another value of one of them."""
    if record is None:
        return SimpleNamespace(**{name: value})
    fields = record if isinstance(record, SimpleNamespace) else _fields_of(record)
    setattr(fields, name, value)
    return fields


def _fields_of(record: "own.ConsumerRecord[Any, Any]") -> SimpleNamespace:
    return SimpleNamespace(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        timestamp_type=int(record.timestamp_type),
        checksum=None,
        serialized_key_size=_size(record.raw_key),
        serialized_value_size=_size(record.raw_value),
        headers=record.headers,
    )


def _size(raw: bytes | None) -> int:
    return -1 if raw is None else len(raw)


def _field(name: str) -> Any:
    """Return a property that reads a field of the record behind, and that may be set as a dataclass's field."""
    return property(attrgetter(f"_record.{name}"), _setter(name))


def _late_field(name: str) -> Any:
    """Return a property for a field that this client's records lack."""

    def get(record: Any) -> object:
        behind = record._record
        if isinstance(behind, SimpleNamespace):
            return getattr(behind, name)
        return None if name == "checksum" else _size(getattr(behind, _SIZED[name]))

    return property(get, _setter(name))


def _setter(name: str) -> Any:
    def put(record: Any, value: object) -> None:
        # The __init__ that @dataclass makes for a subclass sets the fields of a record that has nothing behind it.
        record._record = _changed(getattr(record, "_record", None), name, value)

    return put


class _Extensible:
    """The dictionary of the attributes that users add to a record."""

    __slots__ = ("__dict__", "__weakref__")


_added: Final = _Extensible.__dict__["__dict__"].__get__


class _ConsumerRecord(_Extensible, Generic[KT, VT]):
    """A record that a consumer has read; its fields can be set, and others added, as aiokafka's.

    ``checksum`` is always None. The size of an absent key or value is -1.
    """

    __slots__ = ("_record", "key", "value")
    __match_args__ = _NAMES
    # For dataclasses.asdict(), replace() and fields(), and for subclasses that are dataclasses.
    __dataclass_fields__ = _Fields.__dataclass_fields__
    __dataclass_params__ = _Fields.__dataclass_params__  # type: ignore[attr-defined]  # of dataclasses, for itself

    key: KT | None
    value: VT | None
    topic: str = _field("topic")
    partition: int = _field("partition")
    offset: int = _field("offset")
    timestamp: int = _field("timestamp")
    timestamp_type: int = _field("timestamp_type")
    checksum: int | None = _late_field("checksum")
    serialized_key_size: int = _late_field("serialized_key_size")
    serialized_value_size: int = _late_field("serialized_value_size")
    headers: Sequence[tuple[str, bytes]] = _field("headers")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: KT | None,
        value: VT | None,
        checksum: int | None,
        serialized_key_size: int,
        serialized_value_size: int,
        headers: Sequence[tuple[str, bytes]],
    ) -> None:
        self.key, self.value = key, value
        self._record: Any = SimpleNamespace(
            topic=topic,
            partition=partition,
            offset=offset,
            timestamp=timestamp,
            timestamp_type=timestamp_type,
            checksum=checksum,
            serialized_key_size=serialized_key_size,
            serialized_value_size=serialized_value_size,
            headers=headers,
        )

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # object's is no property
        """The fields and what the user has added, as ``vars()`` shows them: a copy."""
        added: dict[str, Any] = _added(self)
        return dict(zip(_NAMES, self._values(), strict=True)) | added

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in _NAMES)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        assert isinstance(other, _ConsumerRecord)
        return self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]  # as a dataclass whose fields can be set

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, vars(self)  # set one by one, by copies and pickles

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(_NAMES, self._values(), strict=True))
        return f"{self.__class__.__qualname__}({shown})"


if TYPE_CHECKING:

    @dataclass
    class ConsumerRecord(Generic[KT, VT]):
        """A record that a consumer has read; its fields can be set, and others added, as aiokafka's.

        ``checksum`` is always None. The size of an absent key or value is -1.
        """

        topic: str
        partition: int
        offset: int
        timestamp: int
        timestamp_type: int
        key: KT | None
        value: VT | None
        checksum: int | None
        serialized_key_size: int
        serialized_value_size: int
        headers: Sequence[tuple[str, bytes]]

else:
    ConsumerRecord = _ConsumerRecord
    ConsumerRecord.__name__ = ConsumerRecord.__qualname__ = "ConsumerRecord"  # as pickles and users name it


_new: Final = object.__new__
_set_record: Final = vars(_ConsumerRecord)["_record"].__set__
_set_key: Final = vars(_ConsumerRecord)["key"].__set__
_set_value: Final = vars(_ConsumerRecord)["value"].__set__
_key_of: Final = attrgetter("key")
_value_of: Final = attrgetter("value")


def wrap(record: "own.ConsumerRecord[Any, Any]", key: object, value: object) -> "ConsumerRecord[Any, Any]":
    """Return a record of this client as aiokafka's, with a key and a value that may be deserialized."""
    made: Any = _new(ConsumerRecord)
    made._record, made.key, made.value = record, key, value
    return made  # type: ignore[no-any-return]  # it is one


def wrap_all(records: "list[own.ConsumerRecord[Any, Any]]") -> "list[ConsumerRecord[Any, Any]]":
    """Return records of this client as aiokafka's; no Python code runs for each of them."""
    made: list[Any] = list(map(_new, repeat(ConsumerRecord, len(records))))
    deque(map(_set_record, made, records), 0)
    deque(map(_set_key, made, map(_key_of, records)), 0)
    deque(map(_set_value, made, map(_value_of, records)), 0)
    return made
