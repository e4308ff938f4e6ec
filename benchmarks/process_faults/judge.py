"""The result of instances under fault: what they wrote, compared with what was sent. Plain functions."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[int, int]
"""The partition and the offset of a record."""


class Event(NamedTuple):
    """A line of an instance."""

    at: int
    what: str
    """"began" or "done"; "lost" or "revoked" without a record."""
    partition: int
    offset: int
    key: str


def events_of(lines: Iterable[str]) -> list[Event]:
    """Return the events in the order of their times."""
    found = []
    for line in lines:
        at, what, partition, offset, key = line.split()
        found.append(Event(int(at), what, int(partition), int(offset), key))
    return sorted(found, key=lambda event: event.at)


def done_of(events: Iterable[Event]) -> Counter[Place]:
    """Return how often each record was handled to its end."""
    return Counter((event.partition, event.offset) for event in events if event.what == "done")


def handled_too_early(events: Sequence[Event]) -> int:
    """Return how many records began before all earlier ones of their key in their partition were done."""
    offsets: dict[tuple[int, str], list[int]] = defaultdict(list)
    for partition, offset, key in sorted({(one.partition, one.offset, one.key) for one in events if one.offset >= 0}):
        offsets[partition, key].append(offset)
    done: set[Place] = set()
    finished: Counter[tuple[int, str]] = Counter()
    """For each key the number of its first records that are all done."""
    early = 0
    for event in events:
        if event.offset < 0:
            continue
        lane = event.partition, event.key
        if event.what == "done":
            done.add((event.partition, event.offset))
            own = offsets[lane]
            while finished[lane] < len(own) and (event.partition, own[finished[lane]]) in done:
                finished[lane] += 1
        elif finished[lane] < len(offsets[lane]) and event.offset > offsets[lane][finished[lane]]:
            early += 1
    return early


def check_handled(acknowledged: Collection[Place], events: Sequence[Event], *, ordered: bool) -> dict[str, int]:
    """Return the figures of ``process``: lost and early must be 0; ``ordered`` is whether keys have an order."""
    done = done_of(events)
    return {
        "handled": len(done),
        "repeated": done.total() - len(done),
        "lost": sum(place not in done for place in acknowledged),
        "early": handled_too_early(events) if ordered else 0,
    }


def check_copied(
    acknowledged: Mapping[int, Place], copies: Mapping[int, Sequence[tuple[str, int]]], events: Sequence[Event]
) -> dict[str, int]:
    """Return the figures of ``transform``: lost, doubled and early must be 0.

    Args:
        acknowledged: the place of each number that was sent.
        copies: the keys and numbers that readers of committed records see in each partition, in their order.
        events: what the instances wrote; records that were processed again count as repeated.
    """
    done = done_of(events)
    found = Counter(number for copied in copies.values() for _, number in copied)
    early = 0
    for copied in copies.values():
        last: dict[str, int] = {}
        for key, number in copied:
            early += number < last.get(key, -1)
            last[key] = max(number, last.get(key, -1))
    return {
        "handled": len(found),
        "repeated": done.total() - len(done),
        "lost": sum(number not in found for number in acknowledged),
        "early": early,
        "doubled": found.total() - len(found),
    }
