"""The outcomes of records that a share consumer has acquired."""

from typing import TYPE_CHECKING, Any, Protocol

from .acknowledgements import Acknowledge

if TYPE_CHECKING:
    from ._pure import ShareRecord

__all__ = ("RecordOwner", "Reject", "outcome_of")


class Reject(Exception):
    """Raise this in the body of ``async with record`` to reject the record: no member gets it again."""


class RecordOwner(Protocol):
    """The consumer that has acquired a record, and acknowledges it."""

    def begin(self, record: "ShareRecord[Any, Any]") -> None:
        """Renew the record's lock from now on."""

    def acknowledge(self, record: "ShareRecord[Any, Any]", kind: Acknowledge) -> None:
        """Acknowledge the record; unless that renews the lock, renew it no more."""


def outcome_of(error: BaseException | None) -> Acknowledge:
    """Return the acknowledgement of a record whose body has raised this error; None stands for no error."""
    if error is None:
        return Acknowledge.ACCEPT
    return Acknowledge.REJECT if isinstance(error, Reject) else Acknowledge.RELEASE
