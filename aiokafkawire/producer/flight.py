"""A produce request on its way: what is in it, and what its answer says of each batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import attrs

from ..cluster.metadata import Snapshot
from ..errors import KafkaError
from ..network.connection import Connection
from ..protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ..types import TopicPartition
from .batch import Batch
from .old_formats import NEWEST_MAGIC

__all__ = ("Answered", "Flight", "message")

Answered: TypeAlias = tuple[Batch, PartitionProduceResponse | None]
"""A batch with what the broker says of it; None where it says nothing."""


@attrs.define(eq=False)
class Flight:
    """The slot that the connection resolves. ``arrived`` and ``lost`` hear of it, each at most once."""

    node_id: int
    batches: Sequence[Batch]
    snapshot: Snapshot
    connection: Connection
    sent_at: float
    arrived: "Callable[[Flight, bytes, int], None]"
    lost: "Callable[[Flight, KafkaError], None]"
    version: int = -1

    def resolve(self, frame: bytes, position: int) -> None:
        """The answer's body begins at ``position``."""
        self.arrived(self, frame, position)

    def fail(self, error: KafkaError) -> None:
        """There will be no answer."""
        self.lost(self, error)

    def answer(self, response: ProduceResponse) -> PartitionProduceResponse | None:
        """What is said of a batch that travels alone, where nothing else is said: there is nothing to sort."""
        if len(self.batches) != 1 or len(response.responses) != 1:
            return None
        batch, topic = self.batches[0], response.responses[0]
        answers = topic.partition_responses
        is_it = topic.name == batch.where.topic or (not topic.name and topic.topic_id.int == batch.topic_id.int)
        return answers[0] if is_it and len(answers) == 1 and answers[0].index == batch.where.partition else None

    def answers(self, response: ProduceResponse) -> Iterator[Answered]:
        """Each batch, answered."""
        names = {batch.topic_id: batch.where.topic for batch in self.batches}
        found: dict[Any, PartitionProduceResponse] = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for answer in topic.partition_responses:
                found[TopicPartition(name, answer.index)] = answer
        for batch in self.batches:
            yield batch, found.get(batch.where)


def message(
    batches: Sequence[Batch], *, acks: int, timeout_ms: int, transactional_id: str | None, magic: int = NEWEST_MAGIC
) -> ProduceRequest:
    """The request with these batches, which have their numbers by now, in the format of that ``magic``."""
    topics: dict[str, TopicProduceData] = {}
    for batch in batches:
        name, partition = batch.where
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = TopicProduceData(name=name, topic_id=batch.topic_id, partition_data=[])
        topic.partition_data.append(PartitionProduceData(index=partition, records=batch.seal(magic)))
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=list(topics.values())
    )
