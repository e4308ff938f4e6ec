"""The decoding of binary values into an Arrow array of a type: structs of JSON, Avro or Protobuf, or others."""

import base64
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

import pyarrow as pa

from ..errors import DeserializationError, KafkaError, UsageError
from ..types import Header, TopicPartition
from .json_values import json_column

__all__ = ("ReadValue", "TypedValues", "fields_of", "fitter", "has_decimals", "read_exact_json", "read_json")

_REFUSED = (pa.ArrowException, TypeError, ValueError, ArithmeticError)
"""The errors of Arrow for a value that does not fit its type."""
_YIELD_EVERY: Final = 1_000
"""The number of values after which other tasks may run."""

ReadValue: TypeAlias = Callable[[bytes, Sequence[Header]], Any]
"""Returns a value of bytes and the record's headers, such as a dict for a struct, or an awaitable of one."""

_Place: TypeAlias = tuple[TopicPartition, int]


def read_json(data: bytes, headers: Sequence[Header] = ()) -> Any:
    """Return a JSON value. TypedValues reads whole columns with pyarrow instead, where it can."""
    return json.loads(data.decode())


def read_exact_json(data: bytes, headers: Sequence[Header] = ()) -> Any:
    """Return a JSON value with Decimal for numbers that are no integers: a float has 17 digits at most."""
    return json.loads(data.decode(), parse_float=Decimal)


class TypedValues:
    """Decodes columns of binary values into one type of Arrow.

    Args:
        read: reads a value.
        kind: the type.
        keeps_errors: whether a value that cannot be decoded becomes null; otherwise it raises.
        pause: lets other tasks run, each time after a thousand values.

    Raises:
        UsageError: values cannot become the type.
    """

    def __init__(
        self,
        read: ReadValue,
        kind: "pa.DataType",
        *,
        keeps_errors: bool = False,
        pause: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.is_json: Final = read is read_json
        """Whether the values are JSON, for which nobody needs the headers."""
        self._read = read_exact_json if self.is_json and has_decimals(kind) else read
        self._keeps_errors, self._pause = keeps_errors, pause
        self.kind: Final = kind
        """The type of Arrow."""
        self._fit = fitter(kind)

    async def decode(
        self,
        values: "pa.Array",
        locate: Callable[[int], _Place],
        headers: Sequence[Sequence[Header]] | None = None,
        *,
        at_once: bool = True,
    ) -> "pa.Array":
        """Return the values of the type; a null remains a null.

        Args:
            values: the binary values.
            locate: returns the partition and the offset of a value by its index, for errors.
            headers: the headers of each value's record, if its reader needs them.
            at_once: whether pyarrow may read a column of JSON; a waste of time where it has refused these values.

        Raises:
            DeserializationError: a value cannot be decoded, unless such values become null; or what the deserializer
                needs does not answer.
            SchemaRegistryError: the registry does not answer.
        """
        if self.is_json and at_once:
            found = json_column(values, self.kind)
            if found is not None:
                return found
        raw = values.to_pylist()
        rows: list[Any] = []
        for index, data in enumerate(raw):
            try:
                row = None if data is None else self._read(data, headers[index] if headers else ())
                rows.append(self._fit(await row if isinstance(row, Awaitable) else row))
            except Exception as error:
                self._failed(error, locate(index), data)
                rows.append(None)
            if self._pause is not None and len(rows) % _YIELD_EVERY == 0:
                await self._pause()

        def refused(error: Exception, index: int) -> None:
            self._failed(error, locate(index), raw[index])

        return _array(rows, self.kind, 0, refused)

    def _failed(self, error: Exception, place: _Place, data: bytes | None) -> None:
        if isinstance(error, KafkaError) and getattr(error, "retriable", False):
            raise error
        failed = _unreadable(*place, data, error)
        failed.__cause__ = error
        if failed.retriable or not self._keeps_errors:
            raise failed


def _array(rows: list[Any], kind: "pa.DataType", start: int, refused: Callable[[Exception, int], None]) -> "pa.Array":
    """Return an array of rows; those that do not fit are found by halves, reported from ``start`` on, and null."""
    try:
        return pa.array(rows, kind)
    except _REFUSED as error:
        if len(rows) == 1:
            refused(error, start)
            return pa.nulls(1, kind)
    middle = len(rows) // 2
    return pa.concat_arrays(
        [_array(rows[:middle], kind, start, refused), _array(rows[middle:], kind, start + middle, refused)]
    )


def _unreadable(where: TopicPartition, offset: int, data: bytes | None, cause: Exception) -> DeserializationError:
    why = f"the value of {where} at offset {offset} cannot be decoded: {cause}"
    return DeserializationError(why, "value", where, offset, raw_value=data)


_types = pa.types
_SCALARS: Final[tuple[tuple[Callable[[Any], bool], type, Mapping[type, Callable[[Any], Any]]], ...]] = (
    (_types.is_null, type(None), {}),
    (_types.is_boolean, bool, {}),
    (_types.is_integer, int, {}),
    (_types.is_float32, float, {int: float, Decimal: float}),
    (_types.is_float64, float, {int: float, Decimal: float}),
    (_types.is_decimal, Decimal, {int: Decimal, float: lambda value: Decimal(str(value)), str: Decimal}),
    (_types.is_string, str, {UUID: str}),
    (_types.is_large_string, str, {UUID: str}),
    (_types.is_string_view, str, {UUID: str}),
    (_types.is_binary, bytes, {str: partial(base64.b64decode, validate=True)}),
    (_types.is_large_binary, bytes, {str: partial(base64.b64decode, validate=True)}),
    (_types.is_binary_view, bytes, {str: partial(base64.b64decode, validate=True)}),
    (_types.is_fixed_size_binary, bytes, {str: partial(base64.b64decode, validate=True)}),
    (_types.is_date, date, {str: date.fromisoformat}),
    (_types.is_time, time, {str: time.fromisoformat}),
    (_types.is_timestamp, datetime, {str: datetime.fromisoformat}),
)
"""Of each kind of Arrow's types the Python type, and how values of other types become one of it."""
_LISTS: Final = (
    _types.is_list,
    _types.is_large_list,
    _types.is_fixed_size_list,
    _types.is_list_view,
    _types.is_large_list_view,
)


def fitter(kind: "pa.DataType") -> Callable[[Any], Any]:
    """Return a function that converts a value to the form in which Arrow takes it for a type.

    Texts are read as times in ISO 8601, and as bytes in base64, where the type is one of these. The function raises
    ValueError for a value of another type: Arrow itself would convert some of them to something else.

    Raises:
        UsageError: the type, or one in it, is not among those that values can become.
    """
    if _types.is_struct(kind):
        return _struct_fitter(kind)
    if _types.is_map(kind):
        fit_key, fit_item = fitter(kind.key_type), fitter(kind.item_type)
        return _checked(lambda value: [(fit_key(key), fit_item(item)) for key, item in value.items()], kind, dict)
    if any(is_kind(kind) for is_kind in _LISTS):
        fit_item = fitter(kind.value_type)
        return _checked(lambda value: list(map(fit_item, value)), kind, list, tuple)
    for is_kind, accepted, converted in _SCALARS:
        if is_kind(kind):
            return _scalar_fitter(kind, accepted, converted)
    raise UsageError(f"values cannot become {kind}: use numbers, text, bytes, times, decimals, lists, maps and structs")


def has_decimals(kind: "pa.DataType") -> bool:
    """Return whether a type is a decimal, or has one in it."""
    if _types.is_nested(kind):
        return any(has_decimals(kind.field(index).type) for index in range(kind.num_fields))
    return bool(_types.is_decimal(kind))


def _struct_fitter(kind: "pa.DataType") -> Callable[[Any], Any]:
    names = [field.name for field in kind]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"values cannot become {kind}: a struct needs fields with different names")
    fields = [(field.name, fitter(field.type) if field.nullable else _required(field)) for field in kind]

    def fit(value: Any) -> Any:
        get = value.get
        try:
            return {name: fit_field(get(name)) for name, fit_field in fields}
        except ValueError:
            _name_misfit(value, fields)
            raise

    return _checked(fit, kind, dict)


def _name_misfit(value: Any, fields: Iterable[tuple[str, Callable[[Any], Any]]]) -> None:
    """Raise the ValueError of the first field that does not fit, with the field's name."""
    for name, fit_field in fields:
        try:
            fit_field(value.get(name))
        except ValueError as error:
            raise ValueError(f"field {name!r}: {error}") from None


def _required(field: "pa.Field") -> Callable[[Any], Any]:
    fit = fitter(field.type)

    def checked(value: Any) -> Any:
        if value is None:
            raise ValueError("it is missing or null")
        return fit(value)

    return checked


def _scalar_fitter(
    kind: "pa.DataType", accepted: type, converted: Mapping[type, Callable[[Any], Any]]
) -> Callable[[Any], Any]:
    def fit(value: Any) -> Any:
        given = type(value)
        if given is accepted or value is None:
            return value
        if given not in converted:
            raise _misfit(value, kind)
        return converted[given](value)

    return fit


def _checked(fit: Callable[[Any], Any], kind: "pa.DataType", *types: type) -> Callable[[Any], Any]:
    """Return the function for values of some types, with None for None."""

    def checked(value: Any) -> Any:
        if isinstance(value, types):
            return fit(value)
        if value is None:
            return None
        raise _misfit(value, kind)

    return checked


def _misfit(value: Any, kind: "pa.DataType") -> ValueError:
    return ValueError(f"a {type(value).__name__} instead of {kind}")


def fields_of(message: Any) -> dict[str, Any]:
    """Return the fields of a Protobuf message; enums by name, and None for a field that is absent."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            item = field.message_type.fields_by_name["value"]
            found[field.name] = {key: _plain(value[key], item) for key in value}
        elif _is_repeated(field):
            found[field.name] = [_plain(each, field) for each in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _plain(value, field)
    return found


def _is_repeated(field: Any) -> bool:
    repeated = getattr(field, "is_repeated", None)  # in Protobuf 6.31 and later, where `label` is deprecated
    return bool(field.label == field.LABEL_REPEATED if repeated is None else repeated)


def _plain(value: Any, field: Any) -> Any:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    return fields_of(value) if field.message_type is not None else value
