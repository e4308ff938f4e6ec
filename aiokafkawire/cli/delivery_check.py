"""The demo's check of delivery: counters and checksums of the records that were sent and consumed."""

from zlib import crc32

import attrs

__all__ = ("Flow", "Ledger")


class Ledger:
    """Counters of sent or consumed records, with the next sequence number and a checksum of the values for each key.

    The producer and the consumer have a ledger each. If the consumer's ledger has no record out of order, and both have
    the same keys and next numbers, every record arrived exactly once and in its key's order; equal checksums show that
    no byte has changed. The memory grows with the number of keys, not of records.
    """

    def __init__(self) -> None:
        self.records: int = 0
        self.bytes: int = 0
        self.unreadable: int = 0
        self._due: dict[bytes, int] = {}
        self._checksums: dict[bytes, int] = {}
        self._early = self._late = 0
        self._first_early = self._first_late = ""

    @property
    def keys(self) -> int:
        """The number of different keys among the records."""
        return len(self._due)

    def due(self, key: bytes) -> int:
        """Return the sequence number of the key's next record."""
        return self._due.get(key, 0)

    def enter(self, key: bytes, sequence: int, value: bytes) -> None:
        """Count a record of a key; note if its sequence number is not the next number of the key."""
        due = self._due.get(key, 0)
        if sequence == due:
            self._due[key] = due + 1
        else:
            self._enter_out_of_order(key, sequence, due)
        self._checksums[key] = crc32(value, self._checksums.get(key, 0))
        self.records += 1
        self.bytes += len(key) + len(value)

    def enter_unreadable(self) -> None:
        """Count a record that is damaged or was not written by the demo."""
        self.records += 1
        self.unreadable += 1

    def _enter_out_of_order(self, key: bytes, sequence: int, due: int) -> None:
        text = f"{key.decode(errors='replace')} had {sequence} where {due} was due"
        if sequence > due:
            self._due[key] = sequence + 1
            self._early += 1
            self._first_early = self._first_early or text
        else:
            self._late += 1
            self._first_late = self._first_late or text

    def differences(self, sent: "Ledger") -> list[str]:
        """Return a sentence for each difference from the ``sent`` records; an empty list if there is no difference."""
        found = []
        if self.records != sent.records:
            found.append(f"{self.records:,} records came back, {sent.records:,} were sent")
        if self.unreadable:
            found.append(f"unreadable: {self.unreadable:,}")
        if self._early:
            found.append(f"ahead of a record that was due: {self._early:,} (first: {self._first_early})")
        if self._late:
            found.append(f"late or duplicate: {self._late:,} (first: {self._first_late})")
        keys = list({**sent._due, **self._due})
        short = [key for key in keys if self.due(key) != sent.due(key)]
        if short:
            first = f"{short[0].decode(errors='replace')} has {self.due(short[0])} instead of {sent.due(short[0])}"
            found.append(f"keys with another number of records: {len(short):,} (first: {first})")
        changed = [key for key in keys if self._checksums.get(key) != sent._checksums.get(key)]
        if changed and not found:
            first = changed[0].decode(errors="replace")
            found.append(f"keys whose values have changed: {len(changed):,} (first: {first})")
        return found


@attrs.define
class Flow:
    """The producing or the consuming side of the demo, with its counters and times."""

    name: str
    began: float
    ledger: Ledger = attrs.field(factory=Ledger)
    ended: float | None = None

    def seconds(self, now: float) -> float:
        """Return the seconds from start to end, or to ``now`` before the end; never 0, so that division is safe."""
        return max((now if self.ended is None else self.ended) - self.began, 1e-9)
