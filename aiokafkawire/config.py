"""Settings: Kafka's property names with underscores, checked when a client is made.

Each ``...Options`` names the keyword arguments for type checkers; the frozen class beside it holds their defaults
and bounds. A test keeps the two alike.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, TypeVar, cast, get_args

import attrs

from .config_fields import INT32, choice, optional, optional_text, optional_whole, text, whole
from .config_network import NetworkConfig, NetworkOptions
from .errors import ConfigError
from .foreign_names import setting_hint
from .types import Address, IsolationLevel

__all__ = (
    "AssignmentStrategy",
    "AutoOffsetReset",
    "ClientConfig",
    "ClientOptions",
    "CompressionType",
    "ConsumerConfig",
    "ConsumerOptions",
    "Partitioner",
    "PartitionerName",
    "ProducerConfig",
    "ProducerOptions",
    "duration_ms",
    "make",
    "parse_servers",
)

PartitionerName = Literal[
    "default",
    "round_robin",
    "random",
    "consistent",
    "consistent_random",
    "murmur2",
    "murmur2_random",
    "fnv1a",
    "fnv1a_random",
]
Partitioner = Callable[[str, bytes | None, Sequence[int], Sequence[int]], int]
CompressionType = Literal["none", "gzip", "snappy", "lz4", "zstd"]
AutoOffsetReset = str
"""``"earliest"``, ``"latest"``, ``"none"``, or ``"by_duration:"`` with an ISO 8601 duration (KIP-1106)."""
AssignmentStrategy = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]

_MOST_IDEMPOTENT: Final = 5  # brokers remember so many batches of a producer
_FRAME: Final = 128 * 1024 * 1024


def _check_partitioner(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    names = get_args(PartitionerName)
    if not callable(value) and value not in names:
        named = ", ".join(repr(name) for name in names)
        raise ConfigError(f"{attribute.name} must be one of {named}, or a function, got {value!r:.200}")


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _check_strategies(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    names = get_args(AssignmentStrategy)
    if not isinstance(value, tuple) or not value or any(one not in names for one in value):
        named = ", ".join(repr(name) for name in names)
        raise ConfigError(f"{attribute.name} must be a sequence of some of {named}, got {value!r:.200}")
    if len(set(value)) < len(value):
        raise ConfigError(f"{attribute.name} names an assignor twice: {value!r}")


_DURATION: Final = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?")


def _check_reset(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value in ("earliest", "latest", "none") or (isinstance(value, str) and duration_ms(value) is not None):
        return
    known = "'earliest', 'latest', 'none' or 'by_duration:' with an ISO 8601 duration such as P7DT12H"
    raise ConfigError(f"{attribute.name} must be {known}, got {value!r:.200}")


def duration_ms(reset: str) -> int | None:
    """How far back, in ms, an ``auto_offset_reset`` of ``"by_duration:..."`` goes; None if it is none of these.

    Days are of 24 hours; months and years, which are of no fixed length, are not taken, as in Java.
    """
    prefix, colon, text = reset.partition(":")
    found = _DURATION.fullmatch(text) if prefix == "by_duration" and colon else None
    if found is None:
        return None
    days, hours, minutes, seconds = (min(float(part or 0), 1e15) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


class ClientOptions(NetworkOptions, total=False):
    """Keyword arguments of ``Client``; :class:`ClientConfig` describes them, :class:`~.config_network.NetworkConfig`
    those of the way to the brokers, and :class:`~.config_security.SecurityConfig` those of TLS and SASL."""

    client_id: str
    request_timeout_ms: int
    default_api_timeout_ms: int
    bootstrap_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    api_version_request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    metadata_max_age_ms: int
    metadata_max_idle_ms: int
    topic_metadata_propagation_max_ms: int
    connections_max_idle_ms: int
    receive_message_max_bytes: int
    allow_auto_create_topics: bool


@attrs.frozen(kw_only=True)
class ClientConfig(NetworkConfig):
    """What every part of a client shares. Times are in ms, as in Kafka's own properties."""

    client_id: str = text("aiokafkawire")
    """The name that brokers log and apply quotas to."""
    request_timeout_ms: int = whole(30_000, least=1)
    """How long one request waits for its answer; a broker silent for longer loses its connection."""
    default_api_timeout_ms: int = whole(60_000, least=1)
    """How long a call may take in all, with its retries."""
    bootstrap_timeout_ms: int = whole(10_000, least=1)
    """How long opening a client tries the bootstrap addresses before NoBrokerReachable."""
    socket_connection_setup_timeout_ms: int = whole(10_000, least=1)
    """How long one connection may take to open and to agree on versions."""
    api_version_request_timeout_ms: int = whole(1_000, least=1)
    """After how long without an answer a broker that was never reached before is asked whether it is one of Kafka 0.9,
    which keeps silent on ApiVersions, and again after that; at most a quarter of what a connection may take to open.
    The question stays open."""
    retry_backoff_ms: int = whole(100)
    """The first wait before a retry; it doubles up to ``retry_backoff_max_ms`` (KIP-580)."""
    retry_backoff_max_ms: int = whole(1_000)
    """The longest wait before a retry."""
    reconnect_backoff_ms: int = whole(50)
    """The first wait before a broker that failed is dialled again; it doubles."""
    reconnect_backoff_max_ms: int = whole(1_000)
    """The longest wait before a broker is dialled again."""
    metadata_max_age_ms: int = whole(300_000, least=1)
    """How old metadata may grow before it is asked for again, though nothing failed."""
    metadata_max_idle_ms: int = whole(300_000, least=1)
    """How long a topic that nobody uses stays in the metadata that is asked for (KIP-526)."""
    topic_metadata_propagation_max_ms: int = whole(10_000)
    """How long ``send`` and a consumer without a group wait for a topic that the cluster says does not exist, before
    TopicNotReady: a topic that was created just now is unknown to some brokers for a moment. Shorter limits
    (``max_block_ms``, ``default_api_timeout_ms``) hold as well."""
    connections_max_idle_ms: int = whole(540_000, least=1)
    """How long a connection may stay unused before it is closed."""
    receive_message_max_bytes: int = whole(_FRAME, least=1024)
    """The largest frame that is accepted from a broker; a larger one closes the connection."""
    allow_auto_create_topics: bool = choice(False, True, False)
    """Whether asking for an unknown topic may create it, where the brokers allow that too."""


class ProducerOptions(TypedDict, total=False):
    """Keyword arguments of ``Client.producer``; :class:`ProducerConfig` describes them."""

    acks: Literal["all", 0, 1, -1]
    compression_type: CompressionType
    compression_level: int | None
    batch_size: int
    linger_ms: int
    buffer_memory: int
    max_block_ms: int
    max_request_size: int
    max_in_flight_requests_per_connection: int
    request_timeout_ms: int | None
    delivery_timeout_ms: int
    retries: int
    enable_idempotence: bool | None
    transactional_id: str | None
    transaction_timeout_ms: int
    partitioner: PartitionerName | Partitioner
    partitioner_ignore_keys: bool
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int


@attrs.frozen(kw_only=True)
class ProducerConfig:
    """How records are gathered and sent. Sizes are in bytes, times in ms."""

    acks: Literal["all", 0, 1, -1] = choice("all", "all", -1, 1, 0)
    """Who must have a record before it counts as sent: all in-sync replicas, the leader (1), or nobody (0)."""
    compression_type: CompressionType = choice("none", "none", "gzip", "snappy", "lz4", "zstd")
    """How whole batches are compressed."""
    compression_level: int | None = optional(int, "a whole number")
    """The codec's level; None is its default (KIP-390)."""
    batch_size: int = whole(16_384, least=1)
    """The size at which a batch is full. A larger record travels alone."""
    linger_ms: int = whole(0)
    """How long an idle lane waits for more records. A busy one gathers them in any case, so 0 seldom costs batching."""
    buffer_memory: int = whole(33_554_432, least=1)
    """How much may wait to be sent or acknowledged; beyond it ``send`` waits and ``send_nowait`` raises BufferFull."""
    max_block_ms: int = whole(60_000)
    """How long ``send`` and ``enqueue`` wait for room and for the topic's metadata."""
    max_request_size: int = whole(1_048_576, least=1)
    """The largest request, and so the largest record."""
    max_in_flight_requests_per_connection: int = whole(5, least=1)
    """How many produce requests may be on their way to one broker; at most 5 with idempotence."""
    request_timeout_ms: int | None = optional_whole(least=1)
    """How long one produce request waits for its answer; None is what the client's requests wait."""
    delivery_timeout_ms: int = whole(120_000, least=1)
    """How long a record may take from its acceptance to its acknowledgement, with all retries."""
    retries: int = whole(INT32)
    """How often a batch is tried again; best left to ``delivery_timeout_ms``."""
    enable_idempotence: bool | None = choice(None, None, True, False)
    """Whether retries neither double nor reorder records (KIP-98). None is yes where it can be: ``acks`` is "all", and
    the brokers know how (0.11 and later)."""
    transactional_id: str | None = optional_text()
    """The name under which transactions are made; a second producer with it fences the first (KIP-98)."""
    transaction_timeout_ms: int = whole(60_000, least=1)
    """How long a transaction may stay open before the brokers abort it."""
    partitioner: "PartitionerName | Partitioner" = attrs.field(default="default", validator=_check_partitioner)
    """How partitions are chosen; a function takes the topic, the key as bytes or None, and the partitions that have a
    leader and all partitions, by index, and returns an index."""
    partitioner_ignore_keys: bool = choice(False, True, False)
    """Whether the default partitioner spreads records with a key like those without (KIP-794)."""
    partitioner_adaptive_partitioning_enable: bool = choice(True, True, False)
    """Whether partitions of brokers with shorter queues get more of the records without a key (KIP-794)."""
    partitioner_availability_timeout_ms: int = whole(0)
    """After how long with batches that cannot be sent a broker gets no more records without a key; 0: never."""

    def __attrs_post_init__(self) -> None:
        if self.transactional_id == "":
            raise ConfigError("transactional_id must not be empty")
        asked = [name for name in ("enable_idempotence", "transactional_id") if getattr(self, name)]
        if not asked:
            return
        if self.transactional_id is not None and self.enable_idempotence is False:
            raise ConfigError("transactional_id needs enable_idempotence: transactions are built on it")
        if self.required_acks != -1:
            raise ConfigError(f"{asked[0]} needs acks='all', got acks={self.acks!r}")
        if self.max_in_flight_requests_per_connection > _MOST_IDEMPOTENT:
            most = f"at most {_MOST_IDEMPOTENT}, got {self.max_in_flight_requests_per_connection}"
            raise ConfigError(f"{asked[0]} needs max_in_flight_requests_per_connection to be {most}")

    @property
    def required_acks(self) -> int:
        """``acks`` as the wire says it."""
        return -1 if self.acks == "all" else self.acks

    @property
    def idempotent(self) -> bool:
        """Whether records are to be numbered, where the brokers know how."""
        if self.enable_idempotence is not None or self.transactional_id is not None:
            return self.enable_idempotence is not False
        return self.required_acks == -1 and self.max_in_flight_requests_per_connection <= _MOST_IDEMPOTENT


class ConsumerOptions(TypedDict, total=False):
    """Keyword arguments of ``Client.consumer``; :class:`ConsumerConfig` describes them."""

    group_id: str | None
    group_instance_id: str | None
    client_rack: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    partition_assignment_strategy: Sequence[AssignmentStrategy]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    heartbeat_thread: bool
    stall_timeout_ms: int | None
    auto_offset_reset: AutoOffsetReset
    isolation_level: Literal["read_uncommitted", "read_committed"]
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    check_crcs: bool


@attrs.frozen(kw_only=True)
class ConsumerConfig:
    """What is read, and how much at once. Sizes are in bytes, times in ms."""

    group_id: str | None = optional_text()
    """The group that shares the partitions of the topics, and under whose name offsets are committed."""
    group_instance_id: str | None = optional_text()
    """Makes a static member: who comes back under this name within the session timeout keeps its partitions, without
    a rebalance (KIP-345)."""
    client_rack: str = text("")
    """Where this consumer runs, to be given partitions with a replica there and to fetch from it (KIP-392, KIP-881)."""
    session_timeout_ms: int = whole(45_000, least=1)
    """A member that the coordinator has not heard of for so long is out, and others get its partitions."""
    heartbeat_interval_ms: int = whole(3_000, least=1)
    """How often it hears of the member, and the member of a rebalance; a third of the session timeout is usual."""
    max_poll_interval_ms: int = whole(300_000, least=1)
    """How long the member may go without asking for more records before it leaves the group, and how long a rebalance
    waits for members (KIP-62)."""
    partition_assignment_strategy: Sequence[AssignmentStrategy] = attrs.field(
        default=("range", "cooperative-sticky"), converter=_tuple, validator=_check_strategies
    )
    """The assignors that this member knows, the preferred one first; the group uses one that all members know. It
    rebalances cooperatively if all that are named can (KIP-429)."""
    enable_auto_commit: bool = choice(True, True, False)
    """Whether the offsets of what was finished are committed by itself: at intervals, before partitions are given up,
    and on closing. Finished is a record, or a batch, once the next was asked for."""
    auto_commit_interval_ms: int = whole(5_000, least=1)
    """How often; after an assignment sooner at first."""
    heartbeat_thread: bool = choice(False, True, False)
    """Whether a thread sends heartbeats while user code blocks the event loop, up to ``max_poll_interval_ms``."""
    stall_timeout_ms: int | None = optional_whole(least=1)
    """With a number, a consumer that could have got records but has got none for so long raises ConsumerStalled."""
    auto_offset_reset: AutoOffsetReset = attrs.field(default="latest", validator=_check_reset)
    """Where to begin without a position, or with one that is gone: ``"earliest"``, ``"latest"``, or so long ago as
    ``"by_duration:P7DT12H"`` says (ISO 8601, KIP-1106); ``"none"`` raises OffsetOutOfRange instead."""
    isolation_level: Literal["read_uncommitted", "read_committed"] = choice(
        "read_uncommitted", "read_uncommitted", "read_committed"
    )
    """Whether records of open and aborted transactions are shown."""
    fetch_min_bytes: int = whole(1, least=0)
    """How much a broker should gather before it answers a fetch."""
    fetch_max_bytes: int = whole(52_428_800, least=1)
    """How much one fetch may return, and how much fetched data the consumer holds unread."""
    fetch_max_wait_ms: int = whole(500)
    """How long a broker may gather."""
    max_partition_fetch_bytes: int = whole(1_048_576, least=1)
    """How much one fetch may return of one partition; a larger first batch comes whole (KIP-74)."""
    check_crcs: bool = choice(True, True, False)
    """Whether the checksum of every batch is verified."""

    @property
    def isolation(self) -> IsolationLevel:
        """``isolation_level`` as the wire says it."""
        return IsolationLevel[self.isolation_level.upper()]


DEFAULT_PORT: Final = 9092


def parse_servers(servers: str | Sequence[str]) -> tuple[Address, ...]:
    """Read bootstrap servers: ``"host:port,host:port"`` or a sequence of ``"host:port"``; IPv6 as ``"[::1]:9092"``.

    Raises:
        ConfigError: there is none, or one is not an address.
    """
    texts = servers.split(",") if isinstance(servers, str) else servers
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"bootstrap servers are a string or a sequence of strings, got {servers!r}")
    named = [text.strip() for text in texts if text.strip()]
    if not named:
        raise ConfigError("bootstrap servers are needed, such as 'localhost:9092'")
    return tuple(_parse_server(text) for text in named)


def _parse_server(text: str) -> Address:
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon:
        host, port = text, str(DEFAULT_PORT)
    if not port.isdecimal() or len(port) > 5 or not 1 <= int(port) <= 65535:
        raise ConfigError(f"bootstrap server {text!r}: the port must be a number from 1 to 65535, got {port!r}")
    if "//" in host or "/" in host or " " in host:
        raise ConfigError(f"bootstrap server {text!r}: give host:port, without a scheme or a path")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"bootstrap server {text!r}: write an IPv6 address in brackets, such as '[::1]:9092'")
    if not host:
        raise ConfigError(f"bootstrap server {text!r}: the host is missing")
    return Address(host, int(port))


C = TypeVar("C")


def make(cls: type[C], options: Mapping[str, Any]) -> C:
    """Build a config from keyword arguments.

    Raises:
        ConfigError: a name is unknown (the nearest known one is suggested), or a value is out of bounds.
    """
    known = [attribute.name for attribute in attrs.fields(cast("Any", cls))]
    for name in options:
        if name not in known:
            others = {one.__name__: [field.name for field in attrs.fields(one)] for one in _CONFIGS}
            raise ConfigError(f"unknown setting {name!r}: {setting_hint(cls.__name__, name, known, others)}")
    return cls(**options)


_CONFIGS: Final[tuple[type, ...]] = (ClientConfig, ProducerConfig, ConsumerConfig)
