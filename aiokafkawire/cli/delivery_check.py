"""What was sent and what came back, in numbers small enough to keep: how the demo knows that nothing went wrong."""

from zlib import crc32

import attrs

__all__ = ("Flow", "Ledger")


class Ledger:
    """Per key the sequence number that is due next, and a checksum over all values in their order.

    Both sides keep one. When no record came out of turn, and both have the same keys with the same numbers due, every
    record came exactly once and in its key's order; the checksums say that no byte has changed. It grows with the
    keys, not with the records.
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
        """How many keys there are."""
        return len(self._due)

    def due(self, key: bytes) -> int:
        """The sequence number of the key's next record."""
        return self._due.get(key, 0)

    def enter(self, key: bytes, sequence: int, value: bytes) -> None:
        """Enter the next record of a key."""
        due = self._due.get(key, 0)
        if sequence == due:
            self._due[key] = due + 1
        else:
            self._out_of_turn(key, sequence, due)
        self._checksums[key] = crc32(value, self._checksums.get(key, 0))
        self.records += 1
        self.bytes += len(key) + len(value)

    def enter_unreadable(self) -> None:
        """Enter a record that is none of ours, or so damaged that it seems so."""
        self.records += 1
        self.unreadable += 1

    def _out_of_turn(self, key: bytes, sequence: int, due: int) -> None:
        told = f"{key.decode(errors='replace')} had {sequence} where {due} was due"
        if sequence > due:
            self._due[key] = sequence + 1
            self._early += 1
            self._first_early = self._first_early or told
        else:
            self._late += 1
            self._first_late = self._first_late or told

    def differences(self, sent: "Ledger") -> list[str]:
        """What is wrong with this side, compared with what was sent; empty if each record came once and in order."""
        found = []
        if self.records != sent.records:
            found.append(f"{self.records:,} records came back, {sent.records:,} were sent")
        if self.unreadable:
            found.append(f"unreadable: {self.unreadable:,}")
        if self._early:
            found.append(f"ahead of a record that was due: {self._early:,} (first: {self._first_early})")
        if self._late:
            found.append(f"late, or there before: {self._late:,} (first: {self._first_late})")
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
    """One direction: what was counted so far, since when, and until when."""

    name: str
    began: float
    ledger: Ledger = attrs.field(factory=Ledger)
    ended: float | None = None

    def seconds(self, now: float) -> float:
        """How long it has taken; never 0, so that rates can be taken of it."""
        return max((now if self.ended is None else self.ended) - self.began, 1e-9)
