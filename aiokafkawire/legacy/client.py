"""A client of one broker of Kafka 0.6 or 0.7. The user looks up the broker of a partition, for example in ZooKeeper."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias, Unpack

from ..argument_checks import check_mapping, refuse_list, shown
from ..config import make_config
from ..errors import (
    BrokerError,
    ConfigError,
    KafkaError,
    RecordTooLarge,
    UsageError,
    WireError,
)
from ..network.connector import Connector, connect_tcp
from ..records.compression import Codec
from ..runtime import Runtime
from ..types import Address
from .errors import MisalignedOffset, legacy_error
from .messages import LegacyMessageSet, encode_messages
from .partition_reader import PartitionReader
from .reconnecting_connection import ReconnectingConnection
from .requests import (
    EARLIEST,
    LATEST,
    RANDOM_PARTITION,
    Fetch,
    FetchAnswer,
    MultiFetch,
    MultiFetchAnswer,
    MultiProduce,
    Offsets,
    OffsetsAnswer,
    Produce,
    check_legacy_topic,
    describe,
)
from .settings import LegacyConfig, LegacyOptions

__all__ = ("LegacyClient",)

_SMALLEST_GROWTH = 64

LegacyPartition: TypeAlias = tuple[str, int]
"""A topic, and the number of one of its partitions."""


class LegacyClient:
    """A client of one broker of Kafka 0.6 or 0.7; use it as ``async with``.

    The first request opens a connection; if it breaks, the next request opens another. Several tasks may send requests
    on the connection, which the broker answers in order.

    Args:
        host: the broker's host.
        port: the broker's port.
        connector: opens the byte stream; TCP by default.
        options: see :class:`~aiokafkawire.legacy.settings.LegacyConfig`.

    Every method that sends a request raises:
        ConnectionLost: the broker cannot be reached, or closed the connection. A broker closes the connection after
            damaged messages, and after produce and offset requests for a partition that it does not have.
        RequestTimeout: the broker did not answer within ``request_timeout_ms``.
        WireError: the answer violates the protocol of Kafka 0.7.
        UnsupportedVersion: the broker has Kafka 0.8 or later: use :class:`~aiokafkawire.client.Client`.
        UsageError: an argument is invalid; nothing was sent.
    """

    def __init__(
        self,
        host: str,
        port: int = 9092,
        *,
        connector: Connector = connect_tcp,
        runtime: Runtime | None = None,
        **options: Unpack[LegacyOptions],
    ) -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise ConfigError(f"the port must be a number from 1 to 65535, got {port!r}")
        if not isinstance(host, str) or not host:
            raise ConfigError(f"the host must be a string, got {shown(host)}")
        if not callable(connector):
            raise ConfigError(f"connector must be a coroutine function of host and port, got {shown(connector)}")
        self.config: LegacyConfig = make_config(LegacyConfig, options)
        self._connection = ReconnectingConnection(Address(host, port), connector, self.config, runtime or Runtime())
        self.where: str = self._connection.where
        self._codec = Codec.parse(self.config.compression_type)
        self._produced_to: str | None = None

    async def __aenter__(self) -> Self:
        await self._connection.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.close()

    # --- producing ------------------------------------------------------------------------------------------------

    async def produce(self, topic: str, values: Iterable[bytes], *, partition: int = RANDOM_PARTITION) -> None:
        """Send messages to a partition, by default one that the broker picks. Brokers of 0.7 send no answer.

        The call returns once the bytes are written, even if the broker does not store them. A broker that refuses
        messages closes the connection; then the next call, or :meth:`confirm`, raises ConnectionLost. A broker silently
        drops a message larger than its max.message.size, and all other messages of the call. After a ConnectionLost
        some messages since the last answer may be stored, so sending them again may duplicate them.
        """
        await self._connection.ask(self._produce(topic, partition, values))

    async def multi_produce(self, messages: Mapping[LegacyPartition, Iterable[bytes]]) -> None:
        """Send messages to several partitions in one request, in the order given; see :meth:`produce`.

        A broker that refuses the messages of one partition has stored those of earlier partitions, and drops the rest.
        """
        check_mapping("messages", messages, "{('orders', 0): [b'one']}")
        parts = tuple(self._produce(*_partition(place), values) for place, values in messages.items())
        if parts:
            await self._connection.ask(MultiProduce(parts))

    async def confirm(self) -> None:
        """Check that the broker refused no messages: send a request after all messages, and wait for its answer.

        The answer does not reveal messages that the broker dropped silently. Consumers get messages only after the
        broker has flushed them (log.flush.interval). If no messages were sent, the call does nothing.
        """
        if self._connection.unproven:
            assert self._produced_to is not None
            await self._connection.ask(Fetch(self._produced_to, 0, 0, 0))

    def _produce(self, topic: str, partition: int, values: Iterable[bytes]) -> Produce:
        if isinstance(values, bytes | bytearray | memoryview | str):
            raise UsageError(f"messages are given as several values, such as [b'one'], not as {type(values).__name__}")
        if not isinstance(values, Iterable):
            raise refuse_list("values", values, "[b'one']")
        check_legacy_topic(topic)
        _check_number("the partition", partition, RANDOM_PARTITION)
        self._produced_to = topic
        return Produce(topic, partition, encode_messages(values, codec=self._codec))

    # --- reading --------------------------------------------------------------------------------------------------

    async def fetch(
        self, topic: str, partition: int, offset: int, *, fetch_size: int | None = None
    ) -> LegacyMessageSet:
        """Return complete messages of the log from ``offset`` on; an empty set at the end of the log.

        An answer ends where a segment ends, so it may be shorter than the rest of the log. If no message fits into
        ``fetch_size`` bytes, the client requests more bytes, up to ``fetch_size_max``. For a topic that the broker does
        not know yet, the set is empty at any offset.

        Raises:
            OffsetOutOfRange: the log has no such offset.
            UnknownTopicOrPartition: the broker has no such partition.
            MisalignedOffset: no message begins at the offset.
            CorruptBatch: a message is damaged.
            RecordTooLarge: the next message is larger than ``fetch_size_max``.
        """
        request = self._fetch((topic, partition), offset, fetch_size)
        where = f"{topic}-{partition} at {self.where}"
        size = request.max_bytes
        while True:
            answer = await self._connection.ask(Fetch(topic, partition, offset, size))
            assert isinstance(answer, FetchAnswer)
            found = self._read(request, answer)
            if isinstance(found, BrokerError):
                raise found
            if found or not found.cut:
                return found
            if found.size < size:
                size_told = f"a message of {found.needed} bytes would begin there" if found.needed else "a piece of one"
                raise MisalignedOffset(
                    f"{where}: no message begins at offset {offset} ({size_told}, with {found.size} bytes left of the"
                    " log): it lies inside of one, or the log is damaged"
                )
            size = self._larger(found.needed or max(2 * size, _SMALLEST_GROWTH), where, offset)

    def _larger(self, needed: int, where: str, offset: int) -> int:
        if needed > self.config.fetch_size_max:
            raise RecordTooLarge(
                f"{where}: the message at offset {offset} has {needed} bytes, more than fetch_size_max"
                f" ({self.config.fetch_size_max}); raise that, unless no message begins there"
            )
        return needed

    async def multi_fetch(
        self, places: Mapping[LegacyPartition, int], *, fetch_size: int | None = None
    ) -> dict[LegacyPartition, LegacyMessageSet | KafkaError]:
        """Fetch from several partitions in one request; return the messages, or the error, of each partition.

        ``places`` has the offset of each partition. The errors are those of :meth:`fetch`. The client sends only one
        request: if a set is empty but has ``needed``, fetch again with ``needed`` as ``fetch_size``.
        """
        check_mapping("places", places, "{('orders', 0): 42}")
        parts = tuple(self._fetch(place, offset, fetch_size) for place, offset in places.items())
        if not parts:
            return {}
        answer = await self._connection.ask(MultiFetch(parts))
        assert isinstance(answer, MultiFetchAnswer)
        if answer.error_code:
            raise legacy_error(answer.error_code, f"{self.where} to {describe(MultiFetch(parts))}")
        found: dict[LegacyPartition, LegacyMessageSet | KafkaError] = {}
        for part, part_answer in zip(parts, answer.parts, strict=True):
            try:
                found[part.topic, part.partition] = self._read(part, part_answer)
            except WireError as error:
                found[part.topic, part.partition] = error
        return found

    def _fetch(self, place: LegacyPartition, offset: int, fetch_size: int | None) -> Fetch:
        topic, partition = _partition(place)
        check_legacy_topic(topic)
        _check_number("the partition", partition, 0)
        _check_number("the offset", offset, 0, 2**63 - 1)
        size = self.config.fetch_size if fetch_size is None else fetch_size
        _check_number("fetch_size", size, 1)
        return Fetch(topic, partition, offset, size)

    def _read(self, request: Fetch, answer: FetchAnswer) -> LegacyMessageSet | BrokerError:
        where = f"{request.topic}-{request.partition} at {self.where}"
        if answer.error_code:
            return legacy_error(answer.error_code, f"{where}, fetch from offset {request.offset}")
        return LegacyMessageSet(answer.messages, request.offset, where)

    def read(self, topic: str, partition: int, offset: int) -> PartitionReader:
        """Return an iterator for ``async for`` over the messages from ``offset`` on; see ``PartitionReader``."""
        self._fetch((topic, partition), offset, None)
        return PartitionReader(self.fetch, topic, partition, offset, self.config)

    # --- offsets --------------------------------------------------------------------------------------------------

    async def offsets(self, topic: str, partition: int, time: int, max_offsets: int = 1) -> Sequence[int]:
        """Return up to ``max_offsets`` offsets at which segments begin, the newest first.

        ``time`` selects the segments. A time in ms since the epoch selects those whose file was not written after that
        time, so their messages may be hours older. LATEST (-1) selects all segments, and also returns the end of the
        log; EARLIEST (-2) selects the first segment. For a topic that the broker does not know, LATEST and EARLIEST
        return 0, and a time returns no offsets. The broker closes the connection if the partition is invalid.

        Raises:
            BrokerError: the answer has an error code.
        """
        check_legacy_topic(topic)
        _check_number("the partition", partition, 0)
        _check_number("the time", time, EARLIEST, 2**63 - 1)
        _check_number("max_offsets", max_offsets, 0)
        answer = await self._connection.ask(Offsets(topic, partition, time, max_offsets))
        assert isinstance(answer, OffsetsAnswer)
        where = f"{topic}-{partition} at {self.where}"
        if answer.error_code:
            raise legacy_error(answer.error_code, f"{where}, offsets")
        if answer.offsets and min(answer.offsets) < 0:
            raise WireError(f"{where}: offset {min(answer.offsets)}, which no log has")
        return answer.offsets

    async def earliest(self, topic: str, partition: int) -> int:
        """Return the offset at which the log begins."""
        return await self._one_offset(topic, partition, EARLIEST)

    async def latest(self, topic: str, partition: int) -> int:
        """Return the offset at which the flushed part of the log ends."""
        return await self._one_offset(topic, partition, LATEST)

    async def _one_offset(self, topic: str, partition: int, time: int) -> int:
        found = await self.offsets(topic, partition, time)
        if not found:
            raise WireError(
                f"{topic}-{partition} at {self.where}: the broker returned no offset, where it always returns one"
            )
        return found[0]


def _partition(given: object) -> LegacyPartition:
    """Return the topic and the partition number that a user gave."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise UsageError(f"a partition must be a topic and a number, such as ('orders', 0); got {shown(given)}")
    return given[0], given[1]


def _check_number(what: str, value: int, least: int, most: int = 2**31 - 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"{what} is a whole number from {least} to {most}, got {value!r}")
