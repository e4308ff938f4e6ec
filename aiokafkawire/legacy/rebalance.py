"""The assignment of partitions in a group of Kafka 0.7. Every member computes it, with the same result."""

from collections.abc import Iterable, Mapping

from .registry import BrokerPartition, LegacySubscription

__all__ = ("assign", "decide")


def assign(partitions: Iterable[BrokerPartition], threads: Iterable[str]) -> dict[BrokerPartition, str]:
    """Assign ranges of one topic's partitions to the threads that read it; the first ranges may be longer by 1.

    Partitions and threads are sorted as strings, as by Java's clients: "0-10" is before "0-2".
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
    """Return the assignment of ``member``: the member's thread for each topic and partition that it must read.

    Args:
        member: the member's name, one of the names in ``members``.
        members: the subscription of each member, by name.
        topics: by topic and broker id, the number of partitions that the broker has.
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
