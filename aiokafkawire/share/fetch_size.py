"""How many records to acquire at a time: as many as the user takes soon, since acquired records are locked."""

from typing import Final

__all__ = ("FetchSize",)

_POLLS: Final = 4
_SOON: Final = 1 / 20
_LATE: Final = 1 / 4


class FetchSize:
    """The number of records that the next fetch requests.

    It begins with one record. It doubles whenever the user has taken all records within a twentieth of the lock's time,
    up to the records of four calls of ``poll()``: a broker needs milliseconds for a fetch, whatever it brings. It is
    halved if the user took more than a quarter of the lock's time. The next fetch of a user that quick begins while
    half of the last one's records are left, which may be more than requested, since brokers acquire whole batches.
    """

    def __init__(self, max_poll_records: int) -> None:
        self.records: int = 1
        self._limit = _POLLS * max_poll_records
        self._arrived = 0
        self._is_quick = False

    def arrived(self, count: int) -> None:
        """Take notice that a fetch has brought ``count`` records."""
        self._arrived = count

    def taken(self, seconds: float, lock_seconds: float) -> None:
        """Take notice that the user has taken all records ``seconds`` after they arrived."""
        self._is_quick = seconds <= lock_seconds * _SOON
        if self._is_quick:
            self.records = min(self._limit, self.records * 2)
        elif seconds > lock_seconds * _LATE:
            self.records = max(1, self.records // 2)

    def wants(self, unread: int, requested: int) -> bool:
        """Return whether to fetch more: ``unread`` records are left, and the user waits for ``requested``."""
        if requested:
            return unread == 0
        ahead = max(self.records, self._arrived) if self._is_quick else self.records
        return self.records > 1 and unread < ahead / 2
