"""The settings of a producer."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypedDict, get_args

import attrs

from .._lazy_classes import frozen
from ..errors import ConfigError
from .fields import INT32, choice, integer, optional, optional_integer, optional_text, text

__all__ = ("CompressionType", "Partitioner", "PartitionerName", "ProducerConfig", "ProducerOptions")

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

_MAX_IDEMPOTENT: Final = 5  # brokers store the sequence numbers of a producer's last five batches


def _check_partitioner(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    names = get_args(PartitionerName)
    if not callable(value) and value not in names:
        named = ", ".join(repr(name) for name in names)
        raise ConfigError(
            f"{attribute.name} must be one of {named}, or a function, got {value!r:.200}", setting=attribute.name
        )


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
    partitioner_rack_aware: bool
    client_rack: str


@frozen(kw_only=True)
class ProducerConfig:
    """The settings of a producer. Sizes are in bytes, times in ms."""

    acks: Literal["all", 0, 1, -1] = choice("all", "all", -1, 1, 0)
    """The replicas that must store a record before it is acknowledged: all in sync ("all", -1), the leader (1), or none
    (0)."""
    compression_type: CompressionType = choice("none", "none", "gzip", "snappy", "lz4", "zstd")
    """The codec that compresses whole batches."""
    compression_level: int | None = optional(int, "a whole number")
    """The compression level of the codec (KIP-390); None for the codec's default."""
    batch_size: int = integer(16_384, minimum=1)
    """The size at which a batch is full. A larger record is sent in its own batch."""
    linger_ms: int = integer(0)
    """How long a batch waits for more records when no request is in flight. While requests are in flight, batches are
    filled anyway, so 0 rarely makes batches smaller. Less than ``delivery_timeout_ms``."""
    buffer_memory: int = integer(33_554_432, minimum=1)
    """How much data may wait to be sent or acknowledged. If more is enqueued, ``send`` waits, and ``send_nowait``
    raises BufferFull."""
    max_block_ms: int = integer(60_000)
    """How long ``send`` and ``enqueue`` wait for buffer space and for the topic's metadata."""
    max_request_size: int = integer(1_048_576, minimum=1)
    """The largest size of a produce request, and so of a record."""
    max_in_flight_requests_per_connection: int = integer(5, minimum=1)
    """How many produce requests may be in flight to one broker; at most 5 with idempotence."""
    request_timeout_ms: int | None = optional_integer(minimum=1)
    """How long a produce request may wait for its response; None for the client's ``request_timeout_ms``."""
    delivery_timeout_ms: int = integer(120_000, minimum=1)
    """How long a record may take from being enqueued to being acknowledged, including all retries."""
    retries: int = integer(INT32)
    """The maximal number of retries of a batch. Better keep the default, and set ``delivery_timeout_ms`` instead."""
    enable_idempotence: bool | None = choice(None, None, True, False)
    """Whether retries neither duplicate nor reorder records (KIP-98). None enables idempotence if ``acks`` is "all",
    ``max_in_flight_requests_per_connection`` is at most 5, and the brokers support it (0.11 and later)."""
    transactional_id: str | None = optional_text()
    """The transactional id, which enables transactions. A second producer with the same id fences the first
    (KIP-98)."""
    transaction_timeout_ms: int = integer(60_000, minimum=1)
    """How long a transaction may stay open before the brokers abort it."""
    partitioner: "PartitionerName | Partitioner" = attrs.field(default="default", validator=_check_partitioner)
    """The strategy that chooses the partition of a record, or a function. The function receives the topic, the key as
    bytes or None, the indexes of the partitions that have a leader, and the indexes of all partitions; it returns an
    index."""
    partitioner_ignore_keys: bool = choice(False, True, False)
    """Whether the default partitioner ignores keys, and so treats all records as records without a key (KIP-794)."""
    partitioner_adaptive_partitioning_enable: bool = choice(True, True, False)
    """Whether partitions of brokers with shorter queues get more of the records without a key (KIP-794)."""
    partitioner_availability_timeout_ms: int = integer(0)
    """How long batches may be unsendable to a broker before records without a key avoid its partitions; 0 for no
    limit."""
    partitioner_rack_aware: bool = choice(False, True, False)
    """Whether the default partitioner sends records without a key to partitions whose leader is in ``client_rack``, as
    long as there is one (KIP-1123). Keys still decide where records with a key go."""
    client_rack: str = text("")
    """The rack of this client, as in the brokers' ``broker.rack``."""

    def __attrs_post_init__(self) -> None:
        if self.transactional_id == "":
            raise ConfigError("transactional_id must not be empty", setting="transactional_id")
        if self.linger_ms >= self.delivery_timeout_ms:
            got = f"got {self.linger_ms} and {self.delivery_timeout_ms}"
            raise ConfigError(
                f"linger_ms must be less than delivery_timeout_ms, {got}: records would fail while batches still wait",
                setting="linger_ms",
            )
        asked = [name for name in ("enable_idempotence", "transactional_id") if getattr(self, name)]
        if not asked:
            return
        if self.transactional_id is not None and self.enable_idempotence is False:
            raise ConfigError(
                "transactional_id needs enable_idempotence: transactions are built on it", setting="enable_idempotence"
            )
        if self.required_acks != -1:
            raise ConfigError(f"{asked[0]} needs acks='all', got acks={self.acks!r}", setting="acks")
        if self.max_in_flight_requests_per_connection > _MAX_IDEMPOTENT:
            most = f"at most {_MAX_IDEMPOTENT}, got {self.max_in_flight_requests_per_connection}"
            raise ConfigError(
                f"{asked[0]} needs max_in_flight_requests_per_connection to be {most}",
                setting="max_in_flight_requests_per_connection",
            )

    @property
    def required_acks(self) -> int:
        """The ``acks`` as the number that produce requests have: -1 for "all"."""
        return -1 if self.acks == "all" else self.acks

    @property
    def idempotent(self) -> bool:
        """Whether batches get sequence numbers, if the brokers support them."""
        if self.enable_idempotence is not None or self.transactional_id is not None:
            return self.enable_idempotence is not False
        return self.required_acks == -1 and self.max_in_flight_requests_per_connection <= _MAX_IDEMPOTENT
