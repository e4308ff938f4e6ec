"""The records whose locks are being renewed."""

from collections.abc import Iterable
from typing import Any

from ._implementation import ShareRecord
from .acknowledgements import Acknowledge, AcknowledgedOffsets
from .share_fetch_session import PartitionKey

__all__ = ("LockRenewals",)


class LockRenewals:
    """The records whose renewals are requested. A lock holds no longer before the broker has renewed it."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[PartitionKey, int], ShareRecord[Any, Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, record: ShareRecord[Any, Any]) -> bool:
        return self._waiting.get(_place(record)) is record

    def add(self, record: ShareRecord[Any, Any]) -> None:
        """Take notice that the record's renewal is requested."""
        self._waiting[_place(record)] = record

    def discard(self, record: ShareRecord[Any, Any]) -> None:
        """Take notice that the record needs no renewal any more."""
        if record in self:
            del self._waiting[_place(record)]

    def discard_lost(self) -> None:
        """Discard the records that were acquired again."""
        for record in list(self._waiting.values()):
            if record.acquisition.has_lost(record.offset):
                self.discard(record)

    def settle(
        self, key: PartitionKey, ranges: Iterable[AcknowledgedOffsets], lock_end: float | None, now: float
    ) -> None:
        """End the renewals of a request: the new locks end at ``lock_end``; None if there are none.

        A response after the end of the old lock proves nothing: leaders refuse no acknowledgement of a record that
        another member has accepted meanwhile.
        """
        for part in ranges:
            for offset in range(part.first, part.last + 1) if part.kind == Acknowledge.RENEW else ():
                record = self._waiting.pop((key, offset), None)
                if record is not None and lock_end is not None and now <= record.lock_end:
                    acquisition = record.acquisition
                    acquisition.renewed[offset] = max(record.lock_end, lock_end)
                    acquisition.lock_end = max(acquisition.lock_end, lock_end)


def _place(record: ShareRecord[Any, Any]) -> tuple[PartitionKey, int]:
    return record.acquisition.key, record.offset
