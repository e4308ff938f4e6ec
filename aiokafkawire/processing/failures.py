"""The headers of records in dead-letter and retry topics: where a record came from, and why it has failed."""

import re
from collections.abc import Iterable
from typing import Final

import attrs

from ..types import Header

__all__ = ("PREFIX", "Failure", "failure_of", "with_failure")

PREFIX: Final = "aiokafkawire.failed."
"""How the names of these headers begin. Their values are text in UTF-8, numbers in decimal digits."""
_TEXT_LIMIT: Final = 8 * 1024
"""The size in characters to which the message and the stack are shortened, from their beginning."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")


@attrs.frozen
class Failure:
    """A record whose handler has failed: its origin, and the last error."""

    topic: str
    """The topic that the record was first read from; likewise the next three."""
    partition: int
    offset: int
    timestamp_ms: int
    group: str
    """The group whose handler has failed."""
    attempts: int
    """How often the handler was called with the record, in all topics."""
    error: str
    """The type of the last exception, with its module."""
    message: str
    """The text of the last exception."""
    stack: str = ""
    """The stack of the last exception."""
    not_before_ms: int = 0
    """When the record is to be handled again, in ms since the epoch, in retry topics; 0 in dead-letter topics."""

    @property
    def origin(self) -> tuple[str, int, int]:
        """The topic, partition and offset at which the record was first read."""
        return self.topic, self.partition, self.offset


_FIELDS: Final = tuple(
    (PREFIX + field.name.removesuffix("_ms").replace("_", "-"), field.name, field.type is int)
    for field in attrs.fields(Failure)
)
"""The name of each header, the field that it holds, and whether that is a number."""


def with_failure(headers: Iterable[Header], failure: Failure) -> list[Header]:
    """Return the headers of a record with those of its failure; those of earlier failures are replaced."""
    kept = [(name, value) for name, value in headers if not name.startswith(PREFIX)]
    for name, field, _ in _FIELDS:
        text = str(getattr(failure, field))
        kept.append((name, text[-_TEXT_LIMIT:].encode(errors="replace")))
    return kept


def failure_of(headers: Iterable[Header]) -> Failure | None:
    """Return the failure that a record's headers describe; None if they describe none, or not all of it."""
    found = {name: value for name, value in headers if name.startswith(PREFIX)}
    values: dict[str, str | int] = {}
    for name, field, is_number in _FIELDS:
        value = found.get(name)
        if value is None:
            return None
        text = value.decode(errors="replace")
        if is_number and not _NUMBER.fullmatch(text):
            return None
        values[field] = int(text) if is_number else text
    return Failure(**values)  # type: ignore[arg-type]
