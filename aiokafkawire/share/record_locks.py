"""The locks of a share consumer's records: those in the user's hands, and those that wait here."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ..event_log import EventLog
from ._implementation import AcknowledgedRun, ShareRecord, mark_accepted
from .acknowledgement_queue import AcknowledgementQueue
from .acknowledgements import Acknowledge, AcknowledgedOffsets
from .acquired_partition import AcquiredPartition, Acquisitions
from .lock_renewals import LockRenewals
from .share_buffer import ShareBuffer
from .share_fetch_session import PartitionKey

__all__ = ("RecordLocks",)

_log = EventLog("aiokafkawire.share")

_DEFAULT_SECONDS: Final = 30.0


class RecordLocks:
    """The records whose locks a share consumer has, from their arrival until they are acknowledged or lost.

    Args:
        buffer: has the records that the user has not taken yet.
        queue: sends acknowledgements and renewals.
        clock: returns the time in seconds.
        wake: is called when the first acknowledgement waits in the queue.
        place: returns what identifies the running event loop.
    """

    def __init__(
        self,
        buffer: ShareBuffer,
        queue: AcknowledgementQueue,
        clock: Callable[[], float],
        wake: Callable[[], None],
        place: Callable[[], object],
    ) -> None:
        self._buffer, self._queue, self._clock, self._wake = buffer, queue, clock, wake
        self.seconds: float = _DEFAULT_SECONDS
        """How long a lock holds, as brokers say."""
        self.is_known: bool = False
        """Whether a broker has said so."""
        # The records in process, whose locks are renewed, and the fetches of which records were handed out or are read.
        self._held: dict[ShareRecord[Any, Any], None] = {}
        self._handed_out: dict[AcquiredPartition, None] = {}
        self._arriving: dict[AcquiredPartition, None] = {}
        self._acquisitions = Acquisitions()
        self._renewals = LockRenewals()
        self._run = AcknowledgedRun(place)
        self._can_renew = True
        self._has_warned = False

    def use_timeout(self, milliseconds: int) -> None:
        """Use the time that a broker says locks hold; 0 if it does not say."""
        if milliseconds > 0:
            self.seconds, self.is_known = milliseconds / 1000, True

    @property
    def outstanding(self) -> int:
        """The number of records that were handed out and are not acknowledged, as far as their locks hold."""
        return sum(acquisition.outstanding for acquisition in self._handed_out if not acquisition.is_over)

    @property
    def need_attention(self) -> bool:
        """Whether some locks may need a renewal, or a warning when they end."""
        return bool(self._held or self._handed_out or self._buffer)

    # --- records that were acquired --------------------------------------------------------------------------

    def begin(self, acquisition: AcquiredPartition) -> None:
        """End earlier acquisitions of the same records, so that their acknowledgements do not count for the new one."""
        self.end_run()
        if self._acquisitions.add(acquisition):
            self.drop(lambda record: record.acquisition.has_lost(record.offset))
            self._renewals.discard_lost()
            for record in [record for record in self._held if record.acquisition.has_lost(record.offset)]:
                del self._held[record]
        self._queue.lose(acquisition)
        self._arriving[acquisition] = None

    def arrived(self, acquisition: AcquiredPartition) -> None:
        """Take notice that the records of a fetch are read: they wait for the user, or were dropped or acknowledged."""
        self._arriving.pop(acquisition, None)

    def release(self, records: Iterable[ShareRecord[Any, Any]]) -> None:
        """Release records that the user will not get."""
        now = self._clock()
        for record in records:
            self._renewals.discard(record)
            if record.lock_end > now:
                self.add(record.acquisition, AcknowledgedOffsets(record.offset, record.offset, Acknowledge.RELEASE))
            else:
                self._queue.forget(record.acquisition, record.offset)

    def drop(self, unwanted: Callable[[ShareRecord[Any, Any]], bool]) -> None:
        """Drop unread records, whose locks the broker has ended or soon will."""
        for record in self._buffer.drop(unwanted):
            self._renewals.discard(record)
            self._queue.forget(record.acquisition, record.offset)

    def lose(self, is_over: Callable[[AcquiredPartition], bool]) -> None:
        """Drop and renew no more of these records, since the broker has probably released them."""
        self.end_run()
        self.drop(lambda record: is_over(record.acquisition))
        for acquisition in (*self._handed_out, *self._arriving):
            acquisition.is_over = acquisition.is_over or is_over(acquisition)

    # --- records in the user's hands -------------------------------------------------------------------------

    def hand_out(self, parts: Iterable[Sequence[ShareRecord[Any, Any]]]) -> None:
        """Take notice that the user has taken these records, in parts of one acquisition each."""
        for part in parts:
            acquisition = part[0].acquisition
            self._handed_out[acquisition] = None
            acquisition.outstanding += len(part)

    def hold(self, record: ShareRecord[Any, Any]) -> None:
        """Renew the record's lock from now on."""
        self._held[record] = None

    def replace(self, held: ShareRecord[Any, Any], by: ShareRecord[Any, Any]) -> None:
        """Renew the lock of a record for another object that stands for it from now on."""
        if held in self._held:
            del self._held[held]
            self._held[by] = None
        if held in self._renewals:
            self._renewals.discard(held)
            self._renewals.add(by)

    def continues(self, record: object, kind: object) -> bool:
        """Acknowledge a record like the one before it, if it is the next one of the same fetch; return whether it is.

        This is the usual case, without the cost of :meth:`acknowledge`.
        """
        return not self._held and self._run.extend(record, kind)

    def end_run(self) -> None:
        """Add the acknowledgements since the last call of :meth:`acknowledge` to the queue."""
        run = self._run.end()
        if run is not None:
            acquisition, first, last, kind = run
            acquisition.outstanding -= last - first + 1
            is_late = acquisition.first_end <= self._clock()
            self.add(acquisition, AcknowledgedOffsets(first, last, kind, by_user=True, is_late=is_late))

    def acknowledge(self, record: ShareRecord[Any, Any], kind: Acknowledge) -> None:
        """Acknowledge a record that was handed out."""
        if self._held and kind is not Acknowledge.RENEW:
            self._held.pop(record, None)
        if self._run.extend(record, kind):
            return
        self.end_run()
        acquisition, offset = record.acquisition, record.offset
        now = self._clock()
        is_late = acquisition.is_over or (acquisition.first_end <= now and record.lock_end <= now)
        has_lost = (is_late and kind is Acknowledge.RENEW) or (bool(acquisition.lost) and acquisition.has_lost(offset))
        if has_lost:
            self._queue.refuse(acquisition.partition)
        if kind is Acknowledge.RENEW:
            if not has_lost:
                self._renewals.add(record)
        else:
            if self._renewals:
                self._renewals.discard(record)
            acquisition.outstanding -= 1
            record.acknowledged = kind
        if not has_lost:
            self.add(acquisition, AcknowledgedOffsets(offset, offset, kind, by_user=True, is_late=is_late))
            if kind is not Acknowledge.RENEW and not self._renewals and acquisition.is_sound(now):
                self._run.begin(record, kind)

    def accept(self, parts: Iterable[Sequence[ShareRecord[Any, Any]]]) -> None:
        """Accept records that were handed out, in parts of one acquisition each, as far as their locks hold."""
        now = self._clock()
        for part in parts:
            acquisition, first, last = part[0].acquisition, part[0].offset, part[-1].offset
            has_gaps = last - first + 1 != len(part)
            if has_gaps or self._renewals or not acquisition.is_sound(now):
                for record in part:
                    self.acknowledge(record, Acknowledge.ACCEPT)
                continue
            mark_accepted(part)
            acquisition.outstanding -= len(part)
            self.add(acquisition, AcknowledgedOffsets(first, last, Acknowledge.ACCEPT, by_user=True))

    def add(self, acquisition: AcquiredPartition, part: AcknowledgedOffsets) -> None:
        """Add an acknowledgement to the queue."""
        if self._queue.add(acquisition, part, self._clock()):
            self._wake()

    def warn_of_forgotten(self, now: float) -> None:
        """Warn once of records that the user has not acknowledged in time."""
        held = {record.acquisition for record in self._held}
        ended = [part for part in self._handed_out if part.lock_end <= now and part not in held]
        self._handed_out = {part: None for part in self._handed_out if part.outstanding and part not in ended}
        forgotten = next((part for part in ended if part.outstanding), None)
        if forgotten is not None and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%(records)d records of %(partition)s were not acknowledged within their lock of %(elapsed)g s, and go "
                "to other members: process records in 'async with record', or call acknowledge() in time",
                records=forgotten.outstanding,
                partition=forgotten.partition,
                elapsed=self.seconds,
            )

    # --- renewals --------------------------------------------------------------------------------------------

    def renew_due(self, now: float) -> None:
        """Renew the locks of records that are in process or wait here, once half of their time has passed."""
        if self._can_renew:
            soon = now + self.seconds / 2
            held = [record for record in self._held if record.lock_end < soon and not record.acquisition.is_over]
            for record in [*held, *self._buffer.ending(soon)]:
                if record.lock_end > now and record not in self._renewals:
                    self._renewals.add(record)
                    self.add(record.acquisition, AcknowledgedOffsets(record.offset, record.offset, Acknowledge.RENEW))

    def renew_no_more(self) -> None:
        """Renew no more locks, since the brokers cannot (KIP-1222)."""
        self._can_renew = False

    def settle_renewals(self, key: PartitionKey, ranges: Iterable[AcknowledgedOffsets], lock_end: float | None) -> None:
        """End the renewals of a request: the new locks end at ``lock_end``; None if there are none."""
        self._renewals.settle(key, ranges, lock_end, self._clock())
