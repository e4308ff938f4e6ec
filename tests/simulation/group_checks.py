"""What must be true of a group at every moment: of who reads what, of what is handed out, and of what is committed."""

from collections.abc import Callable, Collection

import attrs

from aiokafkawire import TopicPartition

from .checks import Logs

__all__ = ("Commit", "Watch")


@attrs.frozen
class Commit:
    """One offset that the coordinator has taken, of the client ``by``; ``connection`` is the number of its own."""

    by: str
    generation: int
    member_id: str
    connection: int
    offset: int


@attrs.define
class _Reads:
    """One client's reading of one partition, from its assignment to its end."""

    starts: list[int]
    """Where it may begin: what was committed when it was assigned, and since then."""
    next: int | None = None
    """The offset that has to come; None before the first."""
    end: int | None = None
    """The highest offset that was handed out, and one; None before the first."""


@attrs.define
class _Partition:
    finished: set[int] = attrs.field(factory=set)
    """The offsets that some user is done with."""
    done: int = 0
    """All below this are finished."""
    readers: dict[str, _Reads] = attrs.field(factory=dict)
    committed: Commit | None = None
    highest: Commit | None = None
    """Of those of the last committer's membership."""
    sought: dict[str, int] = attrs.field(factory=dict)
    """Where clients have sought back to."""
    taken: set[tuple[str, int]] = attrs.field(factory=set)
    """The offsets that the coordinator has taken, and from whom."""
    asked: list[tuple[str, int]] = attrs.field(factory=list)
    """The offsets that users have asked to commit, in this order."""

    def was_asked_before(self, commit: Commit, other: Commit) -> bool:
        """Whether a user has asked for this commit before the other, on a connection of its own."""
        if commit.connection == other.connection or (other.by, other.offset) not in self.asked:
            return False
        last = len(self.asked) - self.asked[::-1].index((other.by, other.offset))
        return (commit.by, commit.offset) in self.asked[:last]


@attrs.define
class Watch:
    """Hears of all that happens in one group, and says what is wrong: to ``tell`` at once, and in ``wrong``.

    Logs begin at 0, and have no gaps.
    """

    tell: Callable[[str], None] = lambda _: None
    wrong: list[str] = attrs.field(factory=list)
    values: dict[tuple[TopicPartition, int], bytes | None] = attrs.field(factory=dict)
    """What was handed out, by offset."""
    late: int = 0
    """Commits that arrived behind later ones, since their connection hung: Kafka takes them."""
    generations: set[int] = attrs.field(factory=set)
    _owners: dict[tuple[int, TopicPartition], str] = attrs.field(factory=dict)
    _partitions: dict[TopicPartition, _Partition] = attrs.field(factory=dict)

    def _of(self, where: TopicPartition) -> _Partition:
        return self._partitions.setdefault(where, _Partition())

    def _must(self, right: bool, told: str) -> None:
        if not right:
            self.wrong.append(told)
            self.tell(told)

    # --- who reads what --------------------------------------------------------------------------------------------

    def claim(self, generation: int, where: TopicPartition, owner: str, how: str) -> None:
        """In this generation the partition is this member's, as the coordinator or the member itself says."""
        self.generations.add(generation)
        known = self._owners.setdefault((generation, where), owner)
        self._must(known == owner, f"{where} is {known}'s in generation {generation}, and {owner} {how} it")

    def hand_over(self, where: TopicPartition, client: str, members: Collection[str]) -> None:
        """The coordinator lets this client read the partition: no other member reads it by now."""
        for other in self._of(where).readers:
            is_free = other == client or other not in members
            self._must(is_free, f"{client} is assigned {where}, and {other}, a member too, still reads it")

    def begin(self, client: str, where: TopicPartition) -> None:
        """The client is to read it from now on."""
        one = self._of(where)
        self._must(client not in one.readers, f"{client} was assigned {where} twice")
        one.readers[client] = _Reads([0 if one.committed is None else one.committed.offset])

    def end(self, client: str, where: TopicPartition) -> None:
        """The client reads it no more, and knows that."""
        self._must(self._of(where).readers.pop(client, None) is not None, f"{client} gives up {where}, and had it not")

    def gone(self, client: str) -> None:
        """The client is no more."""
        for one in self._partitions.values():
            one.readers.pop(client, None)

    # --- records ---------------------------------------------------------------------------------------------------

    def hand_out(self, client: str, where: TopicPartition, offset: int, value: bytes | None) -> None:
        """The client gives its user a record."""
        one = self._of(where)
        reads = one.readers.get(client)
        told = f"{client} was given {where}:{offset}"
        self.values[where, offset] = value
        if reads is None:
            self._must(False, f"{told}, and does not read that")
            return
        due = reads.starts if reads.next is None else [reads.next]
        self._must(offset in due, f"{told}, and not {' or '.join(map(str, due))}")
        reads.next = offset + 1
        reads.end = max(offset + 1, reads.end or 0)

    def finish(self, where: TopicPartition, offset: int) -> None:
        """Some user is done with a record."""
        one = self._of(where)
        one.finished.add(offset)
        while one.done in one.finished:
            one.done += 1

    def seek(self, client: str, where: TopicPartition, to: int) -> None:
        """A user goes back, and may commit that."""
        one = self._of(where)
        reads = one.readers[client]
        reads.next, reads.end = to, max(to, reads.end or 0)
        one.sought[client] = min(to, one.sought.get(client, to))

    def done(self, where: TopicPartition) -> int:
        """All records below this are finished."""
        return self._of(where).done

    # --- commits ---------------------------------------------------------------------------------------------------

    def commit(self, where: TopicPartition, commit: Commit, owner: str) -> None:
        """The coordinator has taken an offset, from someone whom it counts as ``owner``."""
        one = self._of(where)
        told = f"{commit.by} commits {commit.offset} of {where}"
        self._must(commit.generation >= 0, f"{told} as nobody's member")
        # A generation that was never complete is lost with its coordinator, and its number is another's then.
        known = self._owners.get((commit.generation, where), owner)
        self._must(known == owner, f"{told} in generation {commit.generation}, when it is {known}'s")
        self._must(commit.offset <= one.done, f"{told}, and {one.done} is not finished")
        one.taken.add((commit.by, commit.offset))
        reads = one.readers.get(commit.by)
        if reads is not None and commit.offset not in reads.starts:
            self._must(commit.offset <= (reads.end or 0), f"{told}, and was handed out less since its assignment")
        before, one.committed = one.committed, commit
        highest = one.highest
        if highest is None or _membership(highest) != _membership(commit) or highest.offset <= commit.offset:
            one.highest = commit
        if before is not None and commit.offset < before.offset:
            self._goes_back(one, commit, f"{told}, and {before.by} had committed {before.offset}")
        for reads in one.readers.values():
            if reads.next is None:
                reads.starts.append(commit.offset)

    def ask(self, client: str, where: TopicPartition, offset: int) -> None:
        """A user asks to commit this."""
        self._of(where).asked.append((client, offset))

    def committed(self, client: str, where: TopicPartition, offset: int) -> None:
        """A user was told that this is committed."""
        is_taken = (client, offset) in self._of(where).taken
        self._must(is_taken, f"{client} was told that {offset} of {where} is committed, which no coordinator has taken")

    def _goes_back(self, one: _Partition, commit: Commit, told: str) -> None:
        if one.sought.get(commit.by, commit.offset + 1) <= commit.offset:
            return
        highest = one.highest
        is_late = (
            highest is not None
            and _membership(highest) == _membership(commit)
            and (commit.connection < highest.connection or one.was_asked_before(commit, highest))
        )
        self.late += is_late
        self._must(is_late, told)

    def check(self, logs: Logs) -> None:
        """Nothing was wrong, and all that there is was handed out as it is, and finished."""
        assert not self.wrong, self.wrong
        for where, log in logs.items():
            assert [offset for offset, _ in log] == list(range(len(log))), f"{where} has gaps"
            assert self.done(where) == len(log), f"{self.done(where)} of {len(log)} records of {where} are finished"
            for offset, value in log:
                assert self.values[where, offset] == value, f"another record was handed out for {where}:{offset}"


def _membership(commit: Commit) -> tuple[int, str]:
    return commit.generation, commit.member_id
