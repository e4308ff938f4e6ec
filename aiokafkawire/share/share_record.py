"""The outcomes of records that a share consumer has acquired."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ..tracing import Tracing
from .acknowledgements import Acknowledge

if TYPE_CHECKING:
    from ._pure import ShareRecord

__all__ = ("RecordOwner", "Reject", "outcome_of", "with_failures")


class Reject(Exception):
    """Raise this in the body of ``async with record`` to reject the record: no member gets it again."""


class RecordOwner(Protocol):
    """The consumer that has acquired a record, and acknowledges it."""

    def begin(self, record: "ShareRecord[Any, Any]") -> None:
        """Renew the record's lock from now on."""

    def acknowledge(self, record: "ShareRecord[Any, Any]", kind: Acknowledge) -> None:
        """Acknowledge the record; unless that renews the lock, renew it no more."""


def with_failures(
    acknowledge: Callable[[Any, Acknowledge], None], tracing: Tracing | None
) -> Callable[[Any, Acknowledge], None]:
    """Return ``acknowledge`` for the ends of records' bodies; spans get the errors of bodies that have failed."""
    if tracing is None:
        return acknowledge

    def acknowledge_traced(record: Any, kind: Acknowledge) -> None:
        error = sys.exception()
        if error is not None and kind is not Acknowledge.ACCEPT:
            tracing.failed(error)
        acknowledge(record, kind)

    return acknowledge_traced


def outcome_of(error: BaseException | None) -> Acknowledge:
    """Return the acknowledgement of a record whose body has raised this error; None stands for no error."""
    if error is None:
        return Acknowledge.ACCEPT
    return Acknowledge.REJECT if isinstance(error, Reject) else Acknowledge.RELEASE
