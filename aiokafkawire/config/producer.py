"""Settings of a producer."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypedDict, get_args

import attrs

from ..errors import ConfigError
from .fields import INT32, choice, optional, optional_text, optional_whole, whole

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

_MOST_IDEMPOTENT: Final = 5  # brokers remember so many batches of a producer


def _check_partitioner(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    names = get_args(PartitionerName)
    if not callable(value) and value not in names:
        named = ", ".join(repr(name) for name in names)
        raise ConfigError(f"{attribute.name} must be one of {named}, or a function, got {value!r:.200}")


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
