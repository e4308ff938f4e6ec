"""What must be true of transactions after a run: all of each or nothing, once, and in order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum

import attrs

from aiokafkawire import TopicPartition

from .checks import Logs

__all__ = ("End", "Group", "Wrote", "check_all_or_nothing", "check_offsets", "check_order")


class End(Enum):
    """How a transaction ended, as far as its writer was told."""

    ABORTED = "aborted"
    COMMITTED = "committed"
    UNKNOWN = "not known"


@attrs.define(eq=False)
class Wrote:
    """One transaction. Those of a writer come in the order of ``turn``: its producer epoch when it began, -1 if it did
    not, and a number."""

    writer: str
    turn: tuple[int, int]
    end: End = End.ABORTED
    values: list[bytes] = attrs.field(factory=list)
    """Of the records that the producer has taken, in that order."""
    offsets: dict[TopicPartition, int] = attrs.field(factory=dict)
    """What it commits for its writer's group."""

    def __str__(self) -> str:
        return f"transaction {self.turn} of {self.writer} ({self.end.value})"


Group = Mapping[TopicPartition, int]
"""The offsets of a group, -1 where there is none."""


def check_all_or_nothing(wrote: Sequence[Wrote], committed: Logs) -> None:
    """Of committed transactions all records are there once, of aborted ones none, of others either.

    How those ended whose writer does not know is noted in them, where it can be told.
    """
    found = Counter(value for log in committed.values() for _, value in log)
    for one in wrote:
        there = [found.pop(value, 0) for value in one.values]
        told = f"of {one} {sum(map(bool, there))} of {len(there)} records are committed, {max(there, default=0)} times"
        assert max(there, default=0) <= 1, told
        if one.end is End.COMMITTED:
            assert all(there), told
        elif one.end is End.ABORTED:
            assert not any(there), told
        elif there:
            assert all(there) or not any(there), told
            one.end = End.COMMITTED if all(there) else End.ABORTED
    assert not found, f"{next(iter(found))!r} is committed, and nobody has sent it"


def check_order(wrote: Sequence[Wrote], logs: Logs) -> None:
    """Each writer's records are in a partition once, and in the order in which it handed them over."""
    turns = {
        value: (one.writer, (*one.turn, index))
        for one in wrote
        for index, value in enumerate(one.values)
    }  # fmt: skip
    for where, log in logs.items():
        last: dict[str, tuple[int, ...]] = {}
        for offset, value in log:
            assert value in turns, f"{value!r} in {where} was never sent"
            writer, turn = turns[value]
            before = last.get(writer, ())
            assert turn != before, f"record {turn} of {writer} is in {where} twice, again at {offset}"
            assert turn > before, f"record {turn} of {writer} is in {where} at {offset}, behind {before}"
            last[writer] = turn


def check_offsets(wrote: Sequence[Wrote], groups: Mapping[str, Group]) -> None:
    """A writer's group has the offsets of its last committed transaction, or of a later one that may have been."""
    for writer, group in groups.items():
        mine = sorted((one for one in wrote if one.writer == writer), key=lambda one: one.turn)
        for where, offset in group.items():
            possible = {-1}
            for one in mine:
                if where in one.offsets and one.end is not End.ABORTED:
                    possible = {one.offsets[where]} | (possible if one.end is End.UNKNOWN else set())
            assert offset in possible, f"the group of {writer} is at {offset} in {where}, and not in {possible}"
