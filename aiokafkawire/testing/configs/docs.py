"""The documentation of each topic setting, which DescribeConfigs returns on request (KIP-569)."""

from collections.abc import Mapping
from typing import Final

__all__ = ("CONFIG_DOCS",)

CONFIG_DOCS: Final[Mapping[str, str]] = {
    "cleanup.policy": "How old records are removed: by age and size (delete), or by key (compact).",
    "compression.gzip.level": "The level of gzip; -1 is its default.",
    "compression.lz4.level": "The level of lz4.",
    "compression.type": "The codec that batches are stored with; producer keeps the producer's codec.",
    "compression.zstd.level": "The level of zstd.",
    "delete.retention.ms": "How long a compacted topic keeps tombstones.",
    "errors.deadletterqueue.group.enable": "Whether share groups may write records that they could not process here.",
    "file.delete.delay.ms": "How long a deleted file stays on disk.",
    "flush.messages": "After how many records the log is forced to disk.",
    "flush.ms": "After what time the log is forced to disk.",
    "follower.replication.throttled.replicas": "The followers whose copying is throttled, or *.",
    "index.interval.bytes": "How many bytes lie between entries of the offset index.",
    "leader.replication.throttled.replicas": "The leaders whose copying is throttled, or *.",
    "local.retention.bytes": "The largest size of the local part of a tiered log.",
    "local.retention.ms": "The longest time that a tiered log keeps records locally.",
    "max.compaction.lag.ms": "The longest time before a record is compacted.",
    "max.decompressed.message.bytes": "The largest size of a record when it is decompressed.",
    "max.message.bytes": "The largest size of a stored batch.",
    "message.timestamp.after.max.ms": "How much later than the broker's clock a record may be.",
    "message.timestamp.before.max.ms": "How much earlier than the broker's clock a record may be.",
    "message.timestamp.type": "The source of timestamps: the producer (CreateTime) or the broker (LogAppendTime).",
    "min.cleanable.dirty.ratio": "The share of a log that must be dirty before it is compacted.",
    "min.compaction.lag.ms": "The least age at which a record may be compacted.",
    "min.insync.replicas": "How many replicas must be in sync for acks=all.",
    "preallocate": "Whether segment files are created with their full size.",
    "remote.copy.lag.bytes": "How many newer bytes a tiered log has locally before a segment is copied.",
    "remote.copy.lag.ms": "The age from which a tiered log copies a segment.",
    "remote.log.copy.disable": "Whether a tiered log stops copying to remote storage.",
    "remote.log.delete.on.disable": "Whether disabling tiering deletes the remote part of a log.",
    "remote.storage.enable": "Whether the log is tiered.",
    "retention.bytes": "The size of a partition above which its oldest records are deleted; -1 means no limit.",
    "retention.ms": "The age above which records are deleted; -1 means no limit.",
    "segment.bytes": "The size of a segment file.",
    "segment.index.bytes": "The size of a segment's index.",
    "segment.jitter.ms": "The random variation of segment.ms.",
    "segment.ms": "The time after which a new segment begins.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may become leader, which loses records.",
}
