"""The settings of topics, groups and client metrics in Apache Kafka 4.3; see :func:`read_table` for the columns."""

from collections.abc import Mapping
from typing import Final

from .types import Definition, read_table

__all__ = ("CLIENT_METRICS_CONFIGS", "GROUP_CONFIGS", "TOPIC_CONFIGS")

# The settings are in the order in which Kafka checks them; Kafka's error names the first invalid one.
TOPIC_CONFIGS: Final[Mapping[str, Definition]] = read_table("""
segment.bytes                           int     1073741824 1048576.. log.segment.bytes
segment.ms                              long    604800000 1.. log.roll.ms
segment.jitter.ms                       long    0 0.. log.roll.jitter.ms
segment.index.bytes                     int     10485760 4.. log.index.size.max.bytes
flush.messages                          long    9223372036854775807 1.. log.flush.interval.messages
flush.ms                                long    9223372036854775807 0.. log.flush.interval.ms
retention.bytes                         long    -1 - log.retention.bytes
retention.ms                            long    604800000 -1.. log.retention.ms
max.message.bytes                       int     1048588 0.. message.max.bytes
index.interval.bytes                    int     4096 0.. log.index.interval.bytes
delete.retention.ms                     long    86400000 0.. log.cleaner.delete.retention.ms
min.compaction.lag.ms                   long    0 0.. log.cleaner.min.compaction.lag.ms
max.compaction.lag.ms                   long    9223372036854775807 1.. log.cleaner.max.compaction.lag.ms
file.delete.delay.ms                    long    60000 0.. log.segment.delete.delay.ms
min.cleanable.dirty.ratio               double  0.5 0..1 log.cleaner.min.cleanable.ratio
cleanup.policy                          list    delete compact|delete log.cleanup.policy
unclean.leader.election.enable          boolean false - unclean.leader.election.enable
min.insync.replicas                     int     1 1.. min.insync.replicas
compression.type                        string  producer uncompressed|zstd|lz4|snappy|gzip|producer compression.type
compression.gzip.level                  int     -1 -1..9 compression.gzip.level
compression.lz4.level                   int     9 1..17 compression.lz4.level
compression.zstd.level                  int     3 -131072..22 compression.zstd.level
preallocate                             boolean false - log.preallocate
message.timestamp.type                  string  CreateTime CreateTime|LogAppendTime log.message.timestamp.type
message.timestamp.before.max.ms         long    9223372036854775807 0.. log.message.timestamp.before.max.ms
message.timestamp.after.max.ms          long    3600000 0.. log.message.timestamp.after.max.ms
leader.replication.throttled.replicas   list    "" throttled
follower.replication.throttled.replicas list    "" throttled
remote.storage.enable                   boolean false
local.retention.ms                      long    -2 -2.. log.local.retention.ms
local.retention.bytes                   long    -2 -2.. log.local.retention.bytes
remote.log.copy.disable                 boolean false
remote.log.delete.on.disable            boolean false
""")

GROUP_CONFIGS: Final[Mapping[str, Definition]] = read_table("""
consumer.assignment.interval.ms         int     1000 0.. group.consumer.assignment.interval.ms
consumer.heartbeat.interval.ms          int     5000 1.. group.consumer.heartbeat.interval.ms
consumer.session.timeout.ms             int     45000 1.. group.consumer.session.timeout.ms
share.assignment.interval.ms            int     1000 0.. group.share.assignment.interval.ms
share.auto.offset.reset                 string  latest reset share.auto.offset.reset
share.delivery.count.limit              int     5 2.. group.share.delivery.count.limit
share.heartbeat.interval.ms             int     5000 1.. group.share.heartbeat.interval.ms
share.isolation.level                   string  read_uncommitted read_committed|read_uncommitted share.isolation.level
share.partition.max.record.locks        int     2000 100.. group.share.partition.max.record.locks
share.record.lock.duration.ms           int     30000 1000.. group.share.record.lock.duration.ms
share.renew.acknowledge.enable          boolean true - share.renew.acknowledge.enable
share.session.timeout.ms                int     45000 1.. group.share.session.timeout.ms
streams.assignment.interval.ms          int     1000 0.. group.streams.assignment.interval.ms
streams.heartbeat.interval.ms           int     5000 1.. group.streams.heartbeat.interval.ms
streams.initial.rebalance.delay.ms      int     3000 0.. group.streams.initial.rebalance.delay.ms
streams.num.standby.replicas            int     0 0.. group.streams.num.standby.replicas
streams.session.timeout.ms              int     45000 1.. group.streams.session.timeout.ms
""")

CLIENT_METRICS_CONFIGS: Final[Mapping[str, Definition]] = read_table("""
interval.ms                             int     300000
match                                   list    ""
metrics                                 list    ""
""")
