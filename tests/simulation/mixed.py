"""A group whose members are ours and other clients', who share its topics with other clients' producers."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final

import attrs
from histories.checking import History

from aiokafkawire import TopicPartition
from aiokafkawire.config import AssignmentStrategy
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation

from .foreign_clients import CLIENTS, COOPERATIVE, ForeignClient
from .foreign_producers import ForeignProducer

__all__ = ("RELEASES", "Company")

RELEASES: Final = ("2.4", "2.8", "3.9", "4.0", "4.3")
"""The releases of Kafka that brokers may be; 2.4 is the oldest one whose groups `groups.py` can describe."""
_MOST_SEATS: Final = 5
_OURS: Final[Mapping[str, Sequence[Sequence[AssignmentStrategy]]]] = {
    "range": (("range",), ("range", "cooperative-sticky"), ("range", "roundrobin")),
    "roundrobin": (("roundrobin",), ("roundrobin", "range")),
    "sticky": (("sticky",), ("sticky", "range")),
    COOPERATIVE: (("cooperative-sticky",),),
}
"""What our members offer in a group whose members have this assignor in common."""


@attrs.frozen
class Company:
    """Which clients meet in a group, all from the seed."""

    release: str
    """The release of Kafka that the brokers are."""
    strategy: str
    """The assignor that all of them have."""
    ours: Sequence[AssignmentStrategy]
    """What our members offer."""
    seats: Mapping[int, ForeignClient]
    """The seats of other clients; all others are ours."""
    topic_configs: Mapping[str, str]
    writers: int
    """How many producers are other clients."""

    @classmethod
    def of(cls, seed: int) -> "Company":
        """Return the company of this seed."""
        chance = Random(f"{seed}/company")
        release, strategy = chance.choice(RELEASES), chance.choice(list(_OURS))
        able = [client for client in CLIENTS if client.has(strategy) and client.is_served_by(release)]
        first = chance.choice(able)
        alone = [client for client in able if client.lacks_owned_partitions]
        if alone and Random(f"{seed}/alone").random() < 0.3:
            first = alone[0]  # others take every seat, but this one takes the first or none
        if first.lacks_owned_partitions:
            # Java and others could not lead the group, so that nobody uses them together.
            able = [client for client in able if client.reads_truncated]
        else:
            able = [client for client in able if not client.lacks_owned_partitions]
        others = [seat for seat in range(2, _MOST_SEATS) if chance.random() < 0.5]
        return cls(
            release,
            strategy,
            chance.choice(_OURS[strategy]),
            {1: first} | {seat: chance.choice(able) for seat in others},
            {"message.timestamp.type": chance.choice(("CreateTime", "CreateTime", "LogAppendTime"))},
            chance.randint(0, 2),
        )

    @property
    def names(self) -> Sequence[str]:
        """The names of the clients whose members take part, beside ours."""
        return sorted({client.name for client in self.seats.values()})

    def producers(
        self, sim: Simulation, history: History, partitions: Sequence[TopicPartition]
    ) -> Iterator[ForeignProducer]:
        """Yield the producers that are other clients."""
        fetch = min(client.version(ApiKey.FETCH, self.release) for client in self.seats.values())
        for number in range(self.writers):
            yield ForeignProducer.of(sim, history, f"foreign-writer-{number}", partitions, self.release, fetch)
