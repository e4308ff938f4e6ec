"""A sentence for each setting of topics, which DescribeConfigs gives on request (KIP-569)."""

from collections.abc import Mapping
from typing import Final

__all__ = ("CONFIG_DOCS",)

CONFIG_DOCS: Final[Mapping[str, str]] = {
    "cleanup.policy": "How old records go: by age and size (delete), or once their key has a newer one (compact).",
    "compression.gzip.level": "The level of gzip; -1 is its default.",
    "compression.lz4.level": "The level of lz4.",
    "compression.type": "The codec that batches are kept with; producer keeps the one they came with.",
    "compression.zstd.level": "The level of zstd.",
    "delete.retention.ms": "How long a compacted topic keeps tombstones.",
    "file.delete.delay.ms": "How long a deleted file stays on disk.",
    "flush.messages": "After how many records the log is forced to disk.",
    "flush.ms": "After what time the log is forced to disk.",
    "follower.replication.throttled.replicas": "The followers whose copying is throttled, or *.",
    "index.interval.bytes": "How many bytes lie between entries of the offset index.",
    "leader.replication.throttled.replicas": "The leaders whose copying is throttled, or *.",
    "local.retention.bytes": "How large the part of a tiered log may be that stays with the broker.",
    "local.retention.ms": "How old the part of a tiered log may be that stays with the broker.",
    "max.compaction.lag.ms": "The longest that a record waits to be compacted.",
    "max.message.bytes": "The largest batch, as it is kept.",
    "message.timestamp.after.max.ms": "How much later than the broker's clock a record may be.",
    "message.timestamp.before.max.ms": "How much earlier than the broker's clock a record may be.",
    "message.timestamp.type": "Whose time a record has: its producer's (CreateTime) or the broker's (LogAppendTime).",
    "min.cleanable.dirty.ratio": "How much of a log must be new before it is compacted.",
    "min.compaction.lag.ms": "The least age at which a record may be compacted.",
    "min.insync.replicas": "How many replicas must be in sync for acks=all.",
    "preallocate": "Whether files are made in their full size.",
    "remote.log.copy.disable": "Whether a tiered log is copied no further.",
    "remote.log.delete.on.disable": "Whether the remote part of a log goes when tiering is turned off.",
    "remote.storage.enable": "Whether the log is tiered.",
    "retention.bytes": "How large a partition may become before its oldest records go; -1 has no limit.",
    "retention.ms": "How old records may become before they go; -1 has no limit.",
    "segment.bytes": "The size of a file of the log.",
    "segment.index.bytes": "The size of the index of a file.",
    "segment.jitter.ms": "By how much the time of a new file is varied.",
    "segment.ms": "After what time a new file is begun.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may lead, and lose records.",
}
