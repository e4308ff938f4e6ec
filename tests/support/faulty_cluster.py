"""Two scripted brokers as one cluster: partitions move, and a test decides what becomes of each produce and fetch."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID, uuid5

from support.clusters import QUICK, Net, metadata, partition, topic
from support.connecting import eventually, running_tasks
from support.producer_states import ProducerStates
from support.raw_client import batch_of
from support.scripted_broker import Asked, ScriptedBroker

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from aiokafkawire.protocol.messages.metadata import MetadataResponse
from aiokafkawire.protocol.messages.offsets import (
    EpochEndOffset,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from aiokafkawire.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from aiokafkawire.protocol.messages.transactions import InitProducerIdResponse
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.protocol.schema import Response
from aiokafkawire.records.batch import AnyReader, RecordBatch, set_base_offset, split

__all__ = ("FaultyCluster", "a", "fetched", "id_of", "produced", "serving")

_IDS = UUID(int=0)


def id_of(name: str, made: int = 0) -> UUID:
    """The id of a topic, which was made again so often."""
    return uuid5(_IDS, name + "again" * made)


def a(number: int) -> TopicPartition:
    """A partition of the topic ``a``."""
    return TopicPartition("a", number)


class FaultyCluster:
    """Nodes 1 and 2 listen at ``n1`` and ``n2``. ``leaders`` says who leads what: -1 is nobody."""

    def __init__(self, leaders: Mapping[TopicPartition, int]) -> None:
        self.leaders = dict(leaders)
        self.epoch = 0
        self.topic_errors: dict[str, int] = {}
        self.nodes = {1: ScriptedBroker(), 2: ScriptedBroker()}
        self.net = Net(n1=self.nodes[1], n2=self.nodes[2])
        self.log: dict[TopicPartition, list[bytes]] = {where: [] for where in leaders}
        """The batches of each partition, as a fetch gives them."""
        self.states: dict[TopicPartition, ProducerStates] = {where: ProducerStates() for where in leaders}
        self.made: dict[str, int] = {}
        """How often each topic was made again."""
        self.identities = 0
        """How many producer ids were asked for; the first is 7."""
        self.held: list[Asked] = []
        """Produces and fetches that wait for :meth:`answer`, as they came."""
        self.on_produce: Callable[[int, Asked], Response | None] = lambda node, asked: self.written(asked)
        self.on_fetch: Callable[[int, Asked], Response | None] = lambda node, asked: self.read(asked)
        for node, broker in self.nodes.items():
            broker.on[ApiKey.METADATA] = lambda _: self.metadata()
            broker.on[ApiKey.LIST_OFFSETS] = lambda asked: self.offsets(asked)
            broker.on[ApiKey.OFFSET_FOR_LEADER_EPOCH] = lambda asked: self.epoch_ends(asked)
            broker.on[ApiKey.INIT_PRODUCER_ID] = lambda _: self.identify()
            broker.on[ApiKey.PRODUCE] = partial(self._decide, node)
            broker.on[ApiKey.FETCH] = partial(self._decide, node)

    def _decide(self, node: int, asked: Asked) -> Response | None:
        decide = self.on_produce if asked.request.api_key == ApiKey.PRODUCE else self.on_fetch
        answer = decide(node, asked)
        if answer is None:
            self.held.append(asked)
        return answer

    async def holds(self, count: int) -> None:
        """Wait until so many requests are held."""
        await eventually(lambda: len(self.held) >= count)

    def move(self, where: TopicPartition, leader: int) -> None:
        """Another node leads."""
        self.leaders[where] = leader
        self.epoch += 1

    def make_again(self, name: str) -> None:
        """The topic was deleted, and is there again, empty and with another id."""
        self.made[name] = self.made.get(name, 0) + 1
        for where in self.leaders:
            if where.topic == name:
                self.log[where], self.states[where] = [], ProducerStates()

    def id_of(self, name: str) -> UUID:
        """The topic's id now."""
        return id_of(name, self.made.get(name, 0))

    def metadata(self) -> MetadataResponse:
        names = dict.fromkeys(where.topic for where in self.leaders)
        topics = []
        for name in names:
            parts = [
                partition(where.partition, leader, self.epoch)
                for where, leader in self.leaders.items()
                if where.topic == name
            ]
            error = self.topic_errors.get(name, 0)
            topics.append(topic(name, *([] if error else parts), error=error, topic_id=self.id_of(name)))
        return metadata(*topics, hosts=("n1", "n2"))

    # --- produce ---------------------------------------------------------------------------------------

    def identify(self, epoch: int = 0) -> InitProducerIdResponse:
        """The next producer id."""
        self.identities += 1
        return InitProducerIdResponse(error_code=0, producer_id=6 + self.identities, producer_epoch=epoch)

    def written(
        self,
        asked: Asked,
        errors: Mapping[TopicPartition, int] | None = None,
        *,
        without: Collection[TopicPartition] = (),
        time: int = -1,
        tells: bool = False,
    ) -> ProduceResponse:
        """Write what is asked and answer it; ``errors`` are refused, ``without`` is written and not answered.

        A batch with a number is taken as a leader takes it: one that is there already is answered with its offset.
        With ``tells`` refusals name the leader (KIP-951).
        """
        topics = []
        ids = {_topic_of(topic): topic.topic_id for topic in asked.request.topic_data}
        for name, index, records in produced(asked):
            where = TopicPartition(name, index)
            code, base = (errors or {}).get(where, 0), -1
            if ids[name] not in (ZERO_UUID, self.id_of(name)):
                code = ErrorCode.UNKNOWN_TOPIC_ID
            elif not code:
                code, base = self._admit(where, records)
            if where not in without:
                answer = PartitionProduceResponse(
                    index=index, error_code=code, base_offset=base, log_append_time_ms=time
                )
                if tells and code:
                    answer.current_leader = LeaderIdAndEpoch(leader_id=self.leaders[where], leader_epoch=self.epoch)
                topics.append(TopicProduceResponse(name=name, topic_id=ids[name], partition_responses=[answer]))
        nodes = [NodeEndpoint(node_id=node, host=f"n{node}", port=9092) for node in self.nodes] if tells else []
        return ProduceResponse(responses=topics, node_endpoints=nodes)

    def _admit(self, where: TopicPartition, records: memoryview) -> tuple[int, int]:
        """Write the batch if it comes next: the error, and its offset."""
        batch = RecordBatch.parse(records)
        admitted = self.states[where].admit(batch)
        if admitted.error or admitted.offset >= 0:
            return admitted.error, admitted.offset
        base = self.append(where, records)
        self.states[where].wrote(batch, base)
        return 0, base

    def append(self, where: TopicPartition, records: bytes | memoryview) -> int:
        """Write a batch; its offset."""
        base = self.end(where)
        self.log[where].append(set_base_offset(records, base, self.epoch))
        return base

    def fill(self, where: TopicPartition, *values: bytes) -> None:
        """Write each value as a batch of its own."""
        for value in values:
            self.append(where, batch_of(value))

    def end(self, where: TopicPartition) -> int:
        """The offset after the last record."""
        log = self.log[where]
        return next(split(memoryview(log[-1]))).header.next_offset if log else 0

    def values(self, where: TopicPartition) -> list[bytes | None]:
        """What is in the log."""
        batches = [next(split(memoryview(one))) for one in self.log[where]]
        readers: list[AnyReader[bytes, bytes]] = [batch.records(*where) for batch in batches]
        return [record.raw_value for reader in readers for record in reader]

    def numbered(self, where: TopicPartition) -> list[tuple[int, int, int]]:
        """The producer id, epoch and first sequence of each batch in the log."""
        headers = [RecordBatch.parse(memoryview(one)).header for one in self.log[where]]
        return [(header.producer_id, header.producer_epoch, header.base_sequence) for header in headers]

    # --- fetch -----------------------------------------------------------------------------------------

    def read(self, asked: Asked) -> FetchResponse | None:
        """What there is from the offsets on; None where nothing is, for the long poll to last."""
        found = {
            where: b"".join(one for one in self.log[where] if next(split(memoryview(one))).header.last_offset >= offset)
            for where, offset in fetched(asked).items()
        }
        return self.answer(found) if any(found.values()) else None

    def answer(
        self, data: Mapping[TopicPartition, bytes | int], aborted: Mapping[TopicPartition, Any] | None = None
    ) -> FetchResponse:
        """An answer to Fetch: bytes, or an error's code."""
        topics = []
        for where, one in data.items():
            answered = PartitionData(
                partition_index=where.partition,
                error_code=one if isinstance(one, int) else 0,
                high_watermark=self.end(where) if where in self.log else -1,
                aborted_transactions=(aborted or {}).get(where, []),
                records=None if isinstance(one, int) else one,
            )
            found = FetchableTopicResponse(topic=where.topic, topic_id=id_of(where.topic), partitions=[answered])
            topics.append(found)
        return FetchResponse(responses=topics)

    def offsets(self, asked: Asked) -> ListOffsetsResponse:
        topics = []
        for one in asked.request.topics:
            found = []
            for part in one.partitions:
                end = self.end(TopicPartition(one.name, part.partition_index))
                offset = 0 if part.timestamp == -2 else end
                answer = ListOffsetsPartitionResponse(
                    partition_index=part.partition_index, error_code=0, timestamp=-1, offset=offset
                )
                found.append(answer)
            topics.append(ListOffsetsTopicResponse(name=one.name, partitions=found))
        return ListOffsetsResponse(topics=topics)

    def epoch_ends(self, asked: Asked) -> OffsetForLeaderEpochResponse:
        """Where each epoch ended: before the first batch of a newer one."""
        topics = []
        for one in asked.request.topics:
            found = []
            for part in one.partitions:
                where = TopicPartition(one.topic, part.partition)
                headers = [RecordBatch.parse(memoryview(batch)).header for batch in self.log[where]]
                newer = [header.base_offset for header in headers if header.leader_epoch > part.leader_epoch]
                end = newer[0] if newer else self.end(where)
                found.append(
                    EpochEndOffset(
                        error_code=0, partition=part.partition, leader_epoch=part.leader_epoch, end_offset=end
                    )
                )
            topics.append(OffsetForLeaderTopicResult(topic=one.topic, partitions=found))
        return OffsetForLeaderEpochResponse(topics=topics)

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        """A client of it; afterwards no task of it is left."""
        before = running_tasks()
        settings = {**QUICK, **options}
        async with Client("n1:9092", connector=self.net.connect, **settings) as client:
            yield client
        await eventually(lambda: running_tasks() <= before)


def produced(asked: Asked) -> list[tuple[str, int, memoryview]]:
    """What a produce brings: topic, partition, batch."""
    return [
        (_topic_of(topic), data.index, memoryview(data.records))
        for topic in asked.request.topic_data
        for data in topic.partition_data
    ]


def _topic_of(topic: TopicProduceData) -> str:
    names = {id_of(name, made): name for name in ("a", "b", "c") for made in range(2)}
    return topic.name or names[topic.topic_id]


def fetched(asked: Asked) -> dict[TopicPartition, int]:
    """The offsets that a fetch asks for."""
    names = {id_of(name): name for name in ("a", "b", "c")}
    return {
        TopicPartition(topic.topic or names[topic.topic_id], part.partition): part.fetch_offset
        for topic in asked.request.topics
        for part in topic.partitions
    }


@asynccontextmanager
async def serving(leaders: Mapping[TopicPartition, int]) -> AsyncIterator[FaultyCluster]:
    """Such a cluster, open for connections."""
    cluster = FaultyCluster(leaders)
    async with AsyncExitStack() as stack:
        for broker in cluster.nodes.values():
            await stack.enter_async_context(broker)
        yield cluster
