"""The assignment in a group of Kafka 0.7, which every member computes alone, and all alike."""

from collections.abc import Iterable, Mapping

from .registry import BrokerPartition, LegacySubscription

__all__ = ("assign", "decide")


def assign(partitions: Iterable[BrokerPartition], threads: Iterable[str]) -> dict[BrokerPartition, str]:
    """Assign ranges of one topic's partitions to the threads that read it, the larger ones first.

    Both are sorted as strings, as Java's clients do it: "0-10" stands before "0-2".
    """
    places, readers = sorted(partitions, key=str), sorted(threads)
    if not readers:
        return {}
    share, extra = divmod(len(places), len(readers))
    found: dict[BrokerPartition, str] = {}
    begin = 0
    for index, reader in enumerate(readers):
        end = begin + share + (index < extra)
        found.update(dict.fromkeys(places[begin:end], reader))
        begin = end
    return found


def decide(
    member: str, members: Mapping[str, LegacySubscription], topics: Mapping[str, Mapping[int, int]]
) -> dict[tuple[str, BrokerPartition], str]:
    """Return what ``member`` has to read: its thread, by topic and partition.

    Args:
        member: one of ``members``.
        members: what each reads.
        topics: how many partitions each broker has, by topic.
    """
    reads = {name: subscription.of(topics) for name, subscription in members.items()}
    found: dict[tuple[str, BrokerPartition], str] = {}
    for topic, streams in reads.get(member, {}).items():
        mine = {f"{member}-{number}" for number in range(streams)}
        threads = [f"{name}-{number}" for name, read in reads.items() for number in range(read.get(topic, 0))]
        places = [
            BrokerPartition(broker, number)
            for broker, count in topics.get(topic, {}).items()
            for number in range(count)
        ]
        found |= {(topic, place): thread for place, thread in assign(places, threads).items() if thread in mine}
    return found
