"""A topic's settings for batches: the limits to check, and the changes to make before a batch is stored."""

import attrs

from ...records.compression import Codec
from ..cluster.topics import HostedTopic

__all__ = ("BatchRules", "rules_for")


@attrs.frozen
class BatchRules:
    """The settings that apply when a batch is appended. Times are in ms."""

    now: int
    max_bytes: int
    """The largest batch size, before and after recompression."""
    before_max_ms: int
    """How much earlier than now a record's timestamp may be."""
    after_max_ms: int
    """How much later than now a record's timestamp may be."""
    log_append_time: bool
    """Whether records get the broker's time instead of the producer's timestamps."""
    compacted: bool
    """Whether records need a key."""
    codec: Codec | None
    """The codec of stored batches; None means the producer's codec."""
    level: int | None
    where: str
    """The topic and partition, for error messages."""


def rules_for(topic: HostedTopic, index: int, node: int, now: int) -> BatchRules:
    """Return the rules for partition ``index`` of a topic on broker ``node``; ``now`` is in ms since the epoch."""

    def number(name: str) -> int:
        return int(topic.config(name, node))

    compression = topic.config("compression.type", node)
    match compression:
        case "producer":
            codec = None
        case "uncompressed":
            codec = Codec.NONE
        case _:
            codec = Codec.parse(compression)
    leveled = codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD)
    return BatchRules(
        now=now,
        max_bytes=number("max.message.bytes"),
        before_max_ms=number("message.timestamp.before.max.ms"),
        after_max_ms=number("message.timestamp.after.max.ms"),
        log_append_time=topic.config("message.timestamp.type", node) == "LogAppendTime",
        compacted="compact" in topic.config("cleanup.policy", node),
        codec=codec,
        level=number(f"compression.{compression}.level") if leveled else None,
        where=f"{topic.name}-{index}",
    )
