"""Input of records: bytes become lines, and lines become records."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import attrs

from ...producer.delimited_values import DelimitedValues
from ...types import Header
from ..exit_status import CommandFailed

__all__ = ("InputRecord", "LineSplitter", "decode_json", "split_keys")


_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class LineSplitter:
    """Splits bytes that arrive in pieces at a delimiter."""

    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter
        self._rest = b""

    @property
    def unfinished(self) -> int:
        """The number of bytes since the last delimiter."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete with this piece, without their delimiter."""
        if self._rest and len(self._delimiter) == 1:
            lines = data.split(self._delimiter)
            lines[0] = self._rest + lines[0]  # without a copy of the whole piece
        else:
            lines = (self._rest + data).split(self._delimiter)  # two pieces may share a delimiter
        self._rest = lines.pop()
        return lines

    def feed_values(self, data: bytes) -> DelimitedValues:
        """Return the same lines, without an object for each."""
        lines = DelimitedValues(self._rest + data, self._delimiter)
        self._rest = lines.rest
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line if no delimiter stands after it, and begin anew."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


def split_keys(
    lines: Sequence[bytes], separator: bytes, first_number: int
) -> tuple[list[bytes], list[bytes], CommandFailed | None]:
    """Return the keys and the values of lines, which a separator divides at its first occurrence.

    If a line has no separator, return the keys and values of the lines before it, and an error that names the line.

    Args:
        lines: the lines.
        separator: stands between key and value.
        first_number: the number of the first line, for the error.
    """
    pairs = [line.split(separator, 1) for line in lines]
    try:
        return [key for key, _ in pairs], [value for _, value in pairs], None
    except ValueError:
        index = next(index for index, pair in enumerate(pairs) if len(pair) < 2)
        wrong = f"line {first_number + index} has no key separator {_excerpt(separator)}: {_excerpt(lines[index])}"
        return [key for key, _ in pairs[:index]], [value for _, value in pairs[:index]], CommandFailed(wrong)


@attrs.frozen
class InputRecord:
    """A record that a line of JSON describes."""

    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp_ms: int | None
    headers: tuple[Header, ...]


_IGNORED = frozenset(("topic", "offset", "timestamp_type"))
"""Fields that ``consume --json`` writes, and that a new record gets from the broker."""
_KNOWN = frozenset(("key", "value", "partition", "timestamp", "headers"))


def decode_json(line: bytes, number: int) -> InputRecord:
    """Return the record that a line of JSON describes, as ``consume --json`` writes it.

    ``key``, ``value`` and the values of ``headers`` are strings, null, ``{"base64": "..."}`` for bytes, or other JSON,
    whose text without spaces is sent. ``headers`` is a list of [name, value], or an object. All fields are optional.

    Raises:
        CommandFailed: the line is no JSON object, or a field is wrong; the message names the line.
    """
    try:
        found = json.loads(line, parse_float=_Fraction, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CommandFailed(f"line {number} is not JSON ({error}): {_excerpt(line)}") from None
    if not isinstance(found, dict):
        raise CommandFailed(f"line {number} is no JSON object: {_excerpt(line)}")
    unknown = found.keys() - _KNOWN - _IGNORED
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        raise CommandFailed(f"line {number} has an unknown field {sorted(unknown)[0]!r}; known: {known}")
    return InputRecord(
        value=_bytes(found.get("value"), "value", number),
        key=_bytes(found.get("key"), "key", number),
        partition=_integer(found.get("partition"), "partition", number, 2**31 - 1),
        timestamp_ms=_integer(found.get("timestamp"), "timestamp", number, 2**63 - 1),
        headers=_headers(found.get("headers"), number),
    )


def _bytes(value: Any, field: str, number: int) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise CommandFailed(f"line {number}: {field} is not base64: {error}") from None
    try:
        return _json_text(value).encode("utf-8", "surrogatepass")
    except RecursionError as error:
        raise CommandFailed(f"line {number}: {field} is nested too deeply: {error}") from None


@attrs.frozen(repr=False)
class _Fraction:
    """A number with a fraction or an exponent, which a float would change."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _json_text(value: Any) -> str:
    try:
        return _encode(value)
    except TypeError:  # there is a _Fraction in it
        pass
    if isinstance(value, dict):
        return f"{{{','.join([f'{_encode(name)}:{_json_text(part)}' for name, part in value.items()])}}}"
    if isinstance(value, list):
        return f"[{','.join([_json_text(part) for part in value])}]"
    return str(value.text)


def _integer(value: Any, field: str, number: int, maximum: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
        raise CommandFailed(f"line {number}: {field} must be an integer from 0 to {maximum}, got {value!r:.100}")
    return value


def _headers(value: Any, number: int) -> tuple[Header, ...]:
    if value is None:
        return ()
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise CommandFailed(f"line {number}: headers must be a list of [name, value], or an object; got {value!r:.100}")
    return tuple((name, _bytes(given, f"header {name!r}", number)) for name, given in pairs)


def _excerpt(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
