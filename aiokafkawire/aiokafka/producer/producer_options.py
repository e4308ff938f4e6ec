"""The settings of this client's producer for aiokafka's arguments."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ...argument_checks import shown
from ...config import ProducerOptions
from ..client_options import whole_milliseconds

__all__ = ("producer_options",)

_CODECS: Final = ("gzip", "snappy", "lz4", "zstd", None)
_IDEMPOTENT_DELIVERY_MS: Final = 120_000
"""The least ``delivery_timeout_ms`` of an idempotent producer, whose retries are safe."""


def producer_options(
    *,
    acks: Any,
    compression_type: str | None,
    max_batch_size: int,
    max_request_size: int,
    linger_ms: float,
    request_timeout_ms: float,
    enable_idempotence: bool,
    transactional_id: str | None,
    transaction_timeout_ms: float,
    partitioner: Callable[..., int] | None,
) -> ProducerOptions:
    """Return the options of :meth:`.Client.producer`; ``acks`` and ``partitioner`` are None for aiokafka's default.

    Without acks="all", one request at a time is in flight to a broker, since a retry could change the order of records
    otherwise. With it, the producer is idempotent, if the brokers support that.

    Raises:
        ValueError: an argument is wrong, or two contradict one another.
    """
    if acks not in (0, 1, -1, "all", None) or isinstance(acks, bool):
        raise ValueError(f"acks must be 0, 1, -1 or 'all', got {shown(acks)}")
    if compression_type not in _CODECS:
        raise ValueError(f"compression_type must be one of {_CODECS}, got {shown(compression_type)}")
    timeout_ms, wait_ms, transaction_ms = whole_milliseconds(
        request_timeout_ms=request_timeout_ms, linger_ms=linger_ms, transaction_timeout_ms=transaction_timeout_ms
    )
    is_idempotent = bool(enable_idempotence) or transactional_id is not None
    if acks is None:
        acks = -1 if is_idempotent else 1
    waits_for_all = acks in (-1, "all")
    if is_idempotent and not waits_for_all:
        raise ValueError(f"idempotence, which transactions need as well, needs acks='all', got acks={acks!r}")
    delivery_timeout_ms = timeout_ms + wait_ms
    if is_idempotent:
        delivery_timeout_ms = max(delivery_timeout_ms, _IDEMPOTENT_DELIVERY_MS)
    options: ProducerOptions = {
        "acks": "all" if waits_for_all else acks,
        "compression_type": compression_type or "none",  # type: ignore[typeddict-item]  # checked above
        "batch_size": max_batch_size or 1,  # with 0, a batch for every record
        "max_request_size": max_request_size,
        "linger_ms": wait_ms,
        "max_block_ms": timeout_ms,
        "delivery_timeout_ms": delivery_timeout_ms,
        "enable_idempotence": True if is_idempotent else None if waits_for_all else False,
        "max_in_flight_requests_per_connection": 5 if waits_for_all else 1,
    }
    if transactional_id is not None:
        options["transactional_id"] = transactional_id
        options["transaction_timeout_ms"] = transaction_ms
    if partitioner is not None:
        options["partitioner"] = _for_topics(partitioner)
    return options


def _for_topics(partitioner: Callable[..., int]) -> Callable[[str, bytes | None, Sequence[int], Sequence[int]], int]:
    def choose(topic: str, key: bytes | None, available: Sequence[int], all_partitions: Sequence[int]) -> int:
        return partitioner(key, list(all_partitions), list(available))

    return choose
