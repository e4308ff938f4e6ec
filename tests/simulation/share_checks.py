"""What must be true of a share group at every moment: of deliveries, locks, acknowledgements and commits."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from aiokafkawire import Acknowledge, TopicPartition

from .checks import Logs

__all__ = ("GAP", "Delivery", "ShareWatch")

GAP = 0
"""The acknowledgement of an offset without a record."""
_FINAL = (Acknowledge.ACCEPT, Acknowledge.REJECT, GAP)


@attrs.define(eq=False)
class Delivery:
    """One acquisition of one record by one member, as the brokers see it. Times are in virtual seconds."""

    partition: TopicPartition
    offset: int
    member: str
    count: int
    node: int
    lock_end: float
    ended: str | None = None
    """What has ended its lock before its time."""
    is_handed_out: bool = False
    wanted: list[Acknowledge] = attrs.field(factory=list)
    """The user's acknowledgements, in their order."""
    taken: list[int] = attrs.field(factory=list)
    """The acknowledgements that the leader has taken."""

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}, delivery {self.count} to {self.member}"

    def is_locked(self, now: float) -> bool:
        """Whether the record is this member's."""
        return self.ended is None and now < self.lock_end


@attrs.define
class _Offset:
    deliveries: list[Delivery] = attrs.field(factory=list)
    is_led_anew: bool = False
    """Whether the leader is another one since the last delivery, which may not know of it."""
    outcome: str | None = None
    """How the group has finished it."""


@attrs.define
class ShareWatch:
    """Hears of all that happens in one share group, and says what is wrong: to ``tell`` at once, and in ``wrong``."""

    lock: float
    limit: int
    """The most deliveries of a record."""
    now: Callable[[], float]
    tell: Callable[[str], None] = lambda _: None
    wrong: list[str] = attrs.field(factory=list)
    deliveries: int = 0
    again: int = 0
    """The deliveries that were not the first of their records."""
    _offsets: dict[tuple[TopicPartition, int], _Offset] = attrs.field(factory=dict)
    _values: dict[tuple[TopicPartition, int], bytes | None] = attrs.field(factory=dict)

    def fail(self, told: str) -> None:
        """Something is wrong."""
        self.wrong.append(told)
        self.tell(told)

    def _must(self, right: bool, told: str) -> None:
        if not right:
            self.fail(told)

    # --- what brokers do -------------------------------------------------------------------------------------------

    def acquire(self, partition: TopicPartition, offset: int, member: str, count: int, node: int) -> None:
        """The leader ``node`` delivers a record."""
        known = self._offsets.setdefault((partition, offset), _Offset())
        last = known.deliveries[-1] if known.deliveries else None
        this = Delivery(partition, offset, member, count, node, self.now() + self.lock)
        self.deliveries += 1
        self.again += last is not None
        self._must(known.outcome is None, f"{this}: it was finished before: {known.outcome}")
        self._must(count <= self.limit, f"{this}: the limit is {self.limit}")
        due = 1 if last is None else last.count + 1
        if known.is_led_anew:
            self._must(1 <= count <= due, f"{this}: a new leader may count up to {due}")
        else:
            self._must(count == due, f"{this}: the leader has to count {due}")
        if last is not None:
            self._must(not last.is_locked(self.now()), f"{this}: {last} holds until {last.lock_end:.3f}")
        known.is_led_anew = False
        known.deliveries.append(this)

    def acknowledge(self, partition: TopicPartition, offset: int, member: str, kind: int) -> None:
        """The leader takes an acknowledgement."""
        known = self._offsets.get((partition, offset))
        if known is None or not known.deliveries:
            self.fail(f"{member} acknowledges {partition}:{offset}, which was not delivered")
            return
        last = known.deliveries[-1]
        told = f"{last}: {member} acknowledges it ({kind})"
        self._must(last.member == member, f"{told}, whose it is not")
        self._must(last.ended is None and self.now() <= last.lock_end, f"{told} after its lock: {last.ended}")
        last.taken.append(kind)
        if kind == Acknowledge.RENEW:
            last.lock_end = self.now() + self.lock
            return
        last.ended = f"acknowledged ({kind})"
        if kind in (Acknowledge.ACCEPT, Acknowledge.REJECT):
            wanted = self._wanted(known)
            self._must(kind in wanted, f"{told}, and its user has said {wanted}")
        if kind in _FINAL:
            known.outcome = last.ended
        else:
            self._released(known)

    def _wanted(self, known: _Offset) -> list[Acknowledge]:
        """What the member's user has said of the last delivery; or of those before, while the user does not have it.

        A fetch on a connection that is cut may acquire a record again for the member whose user has it. What the user
        says of the record then counts for a delivery that no one will get.
        """
        last = known.deliveries[-1]
        if last.is_handed_out:
            return last.wanted
        return [kind for each in known.deliveries if each.member == last.member for kind in each.wanted]

    def _released(self, known: _Offset) -> None:
        if known.deliveries[-1].count >= self.limit:
            known.outcome = "the limit"

    def end_session(self, member: str, node: int, partitions: Iterable[TopicPartition], why: str) -> None:
        """The session of a member with one broker ends: that broker releases what the member has of it."""
        wanted = set(partitions)
        for known in self._offsets.values():
            last = known.deliveries[-1]
            if last.partition in wanted and (last.member, last.node) == (member, node) and last.is_locked(self.now()):
                last.ended = why
                self._released(known)

    def lead_anew(self, partition: TopicPartition) -> None:
        """The partition has a new leader, who knows what is finished, and of no locks."""
        for (place, _), known in self._offsets.items():
            if place == partition:
                known.is_led_anew = True
                last = known.deliveries[-1]
                if last.is_locked(self.now()):
                    last.ended = "new leader"
                elif last.ended is None:
                    self._released(known)  # its lock has ended, and the last leader has stored that

    # --- what users see --------------------------------------------------------------------------------------------

    def hand_out(
        self,
        member: str,
        partition: TopicPartition,
        offset: int,
        count: int,
        node: int,
        value: bytes | None,
        *,
        may_be_late: bool = False,
    ) -> Delivery | None:
        """The member's user gets a record; return its delivery. ``may_be_late``: its lock may have ended meanwhile."""
        told = f"{member} was given {partition}:{offset}, delivery {count} of broker {node}"
        self._values.setdefault((partition, offset), value)
        self._must(self._values[partition, offset] == value, f"{told}: its value is {value!r}")
        known = self._offsets.get((partition, offset))
        found = [
            delivery
            for delivery in (known.deliveries if known is not None else ())
            if (delivery.member, delivery.count, delivery.node) == (member, count, node) and not delivery.is_handed_out
        ]
        if known is None or not found:
            self.fail(f"{told}, which it has not acquired")
            return None
        this = found[-1]
        this.is_handed_out = True
        ended = this.ended or ("its lock has ended" if not this.is_locked(self.now()) else "")
        is_excused = ended in ("", "new leader", "session", "connection")
        self._must(is_excused or may_be_late, f"{told}, too late: {ended}, at {this.lock_end:.3f}")
        return this

    def committed(self, delivery: Delivery, kind: Acknowledge) -> None:
        """A commit has told the user that the acknowledgement was taken, or the record is finished anyway."""
        known = self._offsets[delivery.partition, delivery.offset]
        is_finished = known.outcome is not None or self._has_failed(known)
        self._must(
            kind in delivery.taken or is_finished,
            f"{delivery}: {kind.name} was committed, and taken were {delivery.taken}",
        )

    # --- the end ---------------------------------------------------------------------------------------------------

    def unfinished(self, logs: Logs) -> list[str]:
        """The records that no member has finished."""
        found = []
        for partition, log in logs.items():
            for offset, _ in log:
                known = self._offsets.get((partition, offset))
                if known is None:
                    found.append(f"{partition}:{offset}, never delivered")
                elif known.outcome is None and not self._has_failed(known):
                    found.append(f"{known.deliveries[-1]}, {known.deliveries[-1].ended}")
        return found

    def _has_failed(self, known: _Offset) -> bool:
        """Whether the lock of the last delivery that there may be has ended."""
        last = known.deliveries[-1]
        return last.count >= self.limit and not last.is_locked(self.now())

    def outcomes(self) -> Mapping[str, int]:
        """How many records were finished in which way."""
        found: dict[str, int] = {}
        for known in self._offsets.values():
            outcome = known.outcome or ("the limit" if self._has_failed(known) else "aborted")
            found[outcome] = found.get(outcome, 0) + 1
        return found

    def check(self, logs: Logs, due: Logs) -> None:
        """Nothing was wrong, all records that are ``due`` are finished, and users have seen them as they are."""
        assert not self.wrong, self.wrong
        unfinished: Sequence[str] = self.unfinished(due)
        assert not unfinished, f"{len(unfinished)} records are not finished, such as {unfinished[:3]}"
        values = {(partition, offset): value for partition, log in logs.items() for offset, value in log}
        for place, known in self._offsets.items():
            if known.outcome == f"acknowledged ({GAP})":
                assert place not in values, f"{known.deliveries[-1]} was taken for a gap"
        visible = {(partition, offset) for partition, log in due.items() for offset, _ in log}
        for place, value in self._values.items():
            assert place in visible, f"{place[0]}:{place[1]} was handed out, of an aborted transaction"
            assert values.get(place) == value, f"another record was handed out for {place[0]}:{place[1]}"
