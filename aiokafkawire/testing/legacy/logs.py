"""The logs of a Kafka 0.7 broker, as bytes in segments, and its responses; no event loop is needed.

Logs and responses equal those of a 0.7.2 broker byte for byte, including errors and missing responses.
"""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from ...errors import CorruptBatch, UsageError
from ...legacy.messages import Entry, LegacyMessageSet
from ...legacy.requests import (
    EARLIEST,
    LATEST,
    RANDOM_PARTITION,
    Answer,
    Fetch,
    FetchAnswer,
    MultiFetch,
    MultiFetchAnswer,
    MultiProduce,
    Offsets,
    OffsetsAnswer,
    Produce,
    Request,
    check_legacy_topic,
)

__all__ = ("HangUp", "LegacyLogs", "LegacySettings")

_UNKNOWN: Final = -1
_NONE: Final = 0
_OFFSET_OUT_OF_RANGE: Final = 1
_WRONG_PARTITION: Final = 3


class HangUp(Exception):
    """An invalid request, after which the broker sends ``answer`` and closes the connection.

    ``answer`` is empty, or a frame with a wrong size, as in Kafka.
    """

    def __init__(self, message: str, answer: bytes = b"") -> None:
        super().__init__(message)
        self.answer = answer


@attrs.frozen(kw_only=True)
class LegacySettings:
    """The properties of a Kafka 0.7 broker; sizes are in bytes."""

    num_partitions: int = 1
    topic_partition_count_map: Mapping[str, int] = attrs.field(factory=dict)
    log_file_size: int = 512 * 1024 * 1024
    topic_log_file_size: Mapping[str, int] = attrs.field(factory=dict)
    log_flush_interval: int = 1
    """The number of messages after which a partition is flushed and becomes readable; Kafka's default is 500."""
    log_retention_size: int = -1
    max_message_size: int = 1_000_000
    max_socket_request_bytes: int = 104_857_600


@attrs.define
class _Segment:
    start: int
    data: bytearray = attrs.field(factory=bytearray)
    flushed: int = 0
    modified: int = 0

    @property
    def end(self) -> int:
        """The offset at which the flushed data ends."""
        return self.start + self.flushed


@attrs.define
class _Log:
    segments: list[_Segment] = attrs.field(factory=lambda: [_Segment(0)])
    unflushed: int = 0

    def append(self, data: bytes, messages: int, file_size: int, flush_interval: int, now: int) -> None:
        last = self.segments[-1]
        if len(last.data) > file_size:
            last.flushed = len(last.data)
            last = _Segment(last.start + len(last.data))
            self.segments.append(last)
        last.data += data
        last.modified = now
        self.unflushed += messages
        if self.unflushed >= flush_interval:
            self.flush()

    def flush(self) -> None:
        self.unflushed = 0
        for segment in self.segments:
            segment.flushed = len(segment.data)

    def fetch(self, offset: int, max_bytes: int) -> FetchAnswer:
        if not self.segments[0].start <= offset <= self.segments[-1].end:
            return FetchAnswer(_OFFSET_OUT_OF_RANGE)
        segment = next(segment for segment in reversed(self.segments) if segment.start <= offset)
        begin = offset - segment.start
        return FetchAnswer(_NONE, bytes(segment.data[begin : min(begin + max_bytes, segment.flushed)]))

    def offsets_before(self, time: int, most: int, now: int) -> list[int]:
        offsets = [(segment.start, segment.modified) for segment in self.segments]
        if self.segments[-1].flushed:
            offsets.append((self.segments[-1].end, now))
        if time == EARLIEST:
            offsets = offsets[:1]
        elif time != LATEST:
            offsets = [entry for entry in offsets if entry[1] <= time]
        return [offset for offset, _ in reversed(offsets)][:most]

    def clean(self, retention_size: int) -> None:
        surplus = sum(len(segment.data) for segment in self.segments) - retention_size
        while len(self.segments) > 1 and surplus - len(self.segments[0].data) >= 0:
            surplus -= len(self.segments.pop(0).data)


class LegacyLogs:
    """The logs of one broker, and its responses to requests.

    Args:
        settings: the broker's properties.
        clock: returns the time in ms since the epoch.
        choose: called with a request that names no partition and the number of partitions; returns a partition.
    """

    def __init__(
        self, settings: LegacySettings, *, clock: Callable[[], int], choose: Callable[[Produce, int], int]
    ) -> None:
        self.settings: LegacySettings = settings
        self.choose: Callable[[Produce, int], int] = choose
        self._clock = clock
        self.logs: dict[tuple[str, int], _Log] = {}

    def partitions(self, topic: str) -> int:
        """Return the number of a topic's partitions."""
        return self.settings.topic_partition_count_map.get(topic, self.settings.num_partitions)

    def flush(self) -> None:
        """Flush all logs, as a real broker does every few seconds."""
        for log in self.logs.values():
            log.flush()

    def clean(self) -> None:
        """Delete the oldest segments of every log that exceeds ``log_retention_size``."""
        for log in self.logs.values():
            log.clean(self.settings.log_retention_size)

    def content(self, topic: str, partition: int) -> list[bytes]:
        """Return all messages of a partition, decompressed, including those that are not flushed yet."""
        log = self.logs.get((topic, partition))
        data = b"".join(bytes(segment.data) for segment in log.segments) if log is not None else b""
        return [message.value for message in LegacyMessageSet(data).messages()]

    def answer(self, request: Request) -> Answer | None:
        """Return the response to a request; None if the request gets none.

        Raises:
            HangUp: the request is invalid, and the broker closes the connection.
        """
        match request:
            case Produce():
                self._produce(request)
                return None
            case MultiProduce():
                for part in request.parts:
                    self._produce(part)
                return None
            case Fetch():
                if request.max_bytes < 0:
                    raise HangUp("negative max_bytes", b"\0\0\0\1\0\0")
                return self._fetch(request)
            case MultiFetch():
                return MultiFetchAnswer(_NONE, tuple(map(self._fetch, request.parts)))
            case Offsets():
                return self._offsets(request)

    def _produce(self, request: Produce) -> None:
        try:
            check_legacy_topic(request.topic)
        except UsageError as error:
            raise HangUp("invalid topic name") from error
        count, partition = self.partitions(request.topic), request.partition
        if partition == RANDOM_PARTITION:
            partition = self.choose(request, count)
        if not 0 <= partition < count:
            raise HangUp("no such partition")
        log = self.logs.setdefault((request.topic, partition), _Log())
        entries, messages = _checked(bytes(request.messages))
        if any(len(entry.payload) > self.settings.max_message_size for entry in entries):
            return
        if entries:
            size = self.settings.topic_log_file_size.get(request.topic, self.settings.log_file_size)
            kept = bytes(request.messages[: entries[-1].next_offset])
            log.append(kept, messages, size, self.settings.log_flush_interval, self._clock())

    def _fetch(self, request: Fetch) -> FetchAnswer:
        try:
            check_legacy_topic(request.topic)
        except UsageError:
            return FetchAnswer(_UNKNOWN)
        if not 0 <= request.partition < self.partitions(request.topic):
            return FetchAnswer(_WRONG_PARTITION)
        log = self.logs.get((request.topic, request.partition))
        return FetchAnswer(_NONE) if log is None else log.fetch(request.offset, request.max_bytes)

    def _offsets(self, request: Offsets) -> OffsetsAnswer:
        if not 0 <= request.partition < self.partitions(request.topic) or request.max_offsets < 0:
            raise HangUp("no such partition, or a negative max_offsets")
        log = self.logs.get((request.topic, request.partition))
        if log is None:
            found = [0] if request.time in (LATEST, EARLIEST) else []
        else:
            found = log.offsets_before(request.time, request.max_offsets, self._clock())
        return OffsetsAnswer(_NONE, tuple(found))


def _checked(data: bytes) -> tuple[tuple[Entry, ...], int]:
    """Return the complete entries of a message set, and the number of messages, including compressed ones inside."""
    try:
        found = LegacyMessageSet(data)
        messages = len(list(found.messages()))
    except CorruptBatch as error:
        raise HangUp("corrupt message") from error
    if data and not found:
        raise HangUp("no complete message")
    return tuple(found.entries()), messages
