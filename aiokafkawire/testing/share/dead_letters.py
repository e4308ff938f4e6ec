"""The dead-letter queues of share groups: topics for the records that a group could not process (KIP-1191)."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ...errors import ErrorCode
from ...records.batch import AnyReader, BatchBuilder, ConsumerRecord, RecordBatch, split
from ...records.layout import HEADER_SIZE
from ..cluster.api_error import ApiError
from ..cluster.replicas import NO_LEADER, HostedPartition
from ..cluster.topics import HostedTopic, TopicStore
from ..configs.configs import Configs
from ..logs.appending import append_batch
from ..logs.log import PartitionLog
from .group_configs import ShareGroupConfigs

__all__ = ("DELIVERED_TOO_OFTEN", "REJECTED", "DeadLetter", "DeadLetterQueues")

REJECTED: Final = "Offset rejected by client."
DELIVERED_TOO_OFTEN: Final = "Offset delivery count exceeded the threshold."
_ENABLED: Final = "errors.deadletterqueue.group.enable"
_READ_BYTES: Final = 1 << 20

_log = logging.getLogger(__name__)


class DeadLetter(NamedTuple):
    """An offset that is archived because it was rejected or delivered too often."""

    offset: int
    delivery_count: int
    cause: str


class _Content(NamedTuple):
    """The parts of a record that a group may have copied."""

    key: bytes | None
    value: bytes | None


class DeadLetterQueues:
    """The writer of dead letters.

    1. Partition n of a topic has its letters in partition n of the queue, modulo the queue's number of partitions.
    2. A letter's headers name the record's topic, partition and offset, the group, the delivery count and the cause.
       Key and value are null unless the group's ``errors.deadletterqueue.copy.record.enable`` is set and the record is
       not larger than the queue's ``max.message.bytes``.
    3. As in Kafka, letters that cannot be written are lost, and the log says why.

    ``clock`` returns the time in ms since the epoch; ``changed`` is called with every partition that got letters.
    """

    def __init__(
        self,
        configs: Configs,
        topics: TopicStore,
        clock: Callable[[], int],
        changed: Callable[[HostedPartition], None],
    ) -> None:
        self._configs = configs
        self._topics = topics
        self._clock = clock
        self._changed = changed

    def write(self, group_id: str, log: PartitionLog, letters: Sequence[DeadLetter]) -> None:
        """Write the letters of one partition to the group's queue, if it has one."""
        configs = ShareGroupConfigs.of(self._configs, group_id)
        name = configs.dead_letter_topic
        if not name or not letters:
            return
        try:
            topic = self._queue(name)
            partition = topic.partitions[log.partition % len(topic.partitions)]
            if partition.leader == NO_LEADER:
                raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
            max_bytes = int(topic.config("max.message.bytes"))
            contents = _contents(log, letters, max_bytes) if configs.copies_dead_letters else {}
            for batch in self._batches(group_id, log, letters, contents, max_bytes):
                append_batch(topic, partition, batch, self._clock(), all_replicas=True)
                self._changed(partition)
        except ApiError as refused:
            _log.warning("share group %s writes no dead letters to topic %s: %s", group_id, name, refused)

    def _queue(self, name: str) -> HostedTopic:
        """Return the queue's topic; create it if that is allowed.

        Raises:
            ApiError: the name or the topic is not allowed to be a queue.
        """
        prefix = self._setting("errors.deadletterqueue.topic.name.prefix")
        topic = self._topics.get(name)
        if topic is not None and topic.config(_ENABLED) != "true":
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{_ENABLED} is not set for the topic")
        if not name.startswith(prefix):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"the topic's name does not begin with {prefix}")
        if topic is not None:
            return topic
        if self._setting("errors.deadletterqueue.auto.create.topics.enable") != "true":
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist and is not created")
        return self._topics.create(name, configs={_ENABLED: "true", "message.timestamp.type": "CreateTime"})

    def _setting(self, name: str) -> str:
        return self._configs.synonyms(name)[0].value or ""

    def _batches(
        self,
        group_id: str,
        log: PartitionLog,
        letters: Sequence[DeadLetter],
        contents: dict[int, _Content],
        max_bytes: int,
    ) -> Iterator[RecordBatch]:
        now, builder = self._clock(), BatchBuilder(limit=max_bytes)
        for letter in letters:
            content = contents.get(letter.offset, _Content(None, None))
            headers = _headers(group_id, log, letter)
            if builder.append(now, content.key, content.value, headers) < 0:
                yield RecordBatch.parse(memoryview(builder.build()))
                builder = BatchBuilder(limit=max_bytes)
                builder.append(now, content.key, content.value, headers)
        yield RecordBatch.parse(memoryview(builder.build()))


def _headers(group_id: str, log: PartitionLog, letter: DeadLetter) -> list[tuple[str, bytes]]:
    known = {
        "topic": log.topic,
        "partition": log.partition,
        "offset": letter.offset,
        "group": group_id,
        "delivery.count": letter.delivery_count,
        "message": letter.cause,
    }
    return [(f"__dlq.errors.{name}", str(value).encode()) for name, value in known.items()]


def _contents(log: PartitionLog, letters: Sequence[DeadLetter], max_bytes: int) -> dict[int, _Content]:
    """Return the records at the letters' offsets that the log still has and that are not too large for the queue."""
    wanted = {letter.offset for letter in letters if letter.offset >= log.log_start_offset}
    found = dict[int, _Content]()
    offset, last = min(wanted, default=0), max(wanted, default=-1)
    while offset <= last and (data := log.read(offset, _READ_BYTES)):
        for batch in split(memoryview(data)):
            assert isinstance(batch, RecordBatch)
            offset = batch.header.next_offset
            records: AnyReader[bytes, bytes] = batch.records(log.topic, log.partition)
            for record in () if batch.header.is_control else records:
                if record.offset in wanted and _size(record) <= max_bytes:
                    found[record.offset] = _Content(record.key, record.value)
    return found


def _size(record: ConsumerRecord[bytes, bytes]) -> int:
    builder = BatchBuilder(limit=0)
    builder.append(0, record.key, record.value, record.headers)
    return builder.size - HEADER_SIZE
