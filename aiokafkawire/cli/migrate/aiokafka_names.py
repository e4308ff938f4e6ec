"""The names of aiokafka, and what stands for them here."""

from collections.abc import Collection, Mapping
from typing import Final

import attrs

from ...other_clients_names import ADMIN, CONSUMER, PRODUCER
from .advice import ERRORS, PRIVATE, RECORDS, Advice, Library, Severity, hinted, no_counterpart, same

__all__ = ("AIOKAFKA", "DROP_IN_MODULES")


def _changed(advice: Mapping[str, Advice]) -> dict[str, Advice]:
    """Return the advice about names that the drop-in has."""
    return {name: attrs.evolve(one, severity=Severity.DROP_IN) for name, one in advice.items()}


_NAMES: Final[Mapping[str, Advice]] = {
    **_changed(
        {
            "aiokafka": Advice("`aiokafkawire`"),
            "AIOKafkaProducer": Advice(
                "`Client(servers).producer()`; settings of connections are arguments of `Client`",
                "`acks` is all by default, not 1, and idempotence is on; a record is retried for `delivery_timeout_ms` "
                "(120 s), not for `request_timeout_ms` (40 s); unknown topics are not created",
            ),
            "AIOKafkaProducer.start": Advice(PRODUCER["start"]),
            "AIOKafkaProducer.stop": Advice(PRODUCER["stop"]),
            "AIOKafkaProducer.send": Advice(
                "`await producer.enqueue(...)` returns a delivery to await later; `await producer.send(...)` waits",
                "`key` and what follows are keywords; a `send` that is awaited once is acknowledged, while aiokafka's "
                "returns a future",
            ),
            "AIOKafkaProducer.send_and_wait": Advice(PRODUCER["send_and_wait"]),
            "AIOKafkaProducer.flush": Advice(
                "`await producer.flush()`", "it raises `DeliveryFailed` for failures that no caller awaits"
            ),
            "AIOKafkaProducer.create_batch": Advice(PRODUCER["create_batch"]),
            "AIOKafkaProducer.send_batch": Advice(PRODUCER["send_batch"]),
            "AIOKafkaProducer.partitions_for": Advice("`await producer.partitions_for(topic)`", "a tuple, not a set"),
            **hinted(
                "AIOKafkaProducer",
                PRODUCER,
                "begin_transaction",
                "commit_transaction",
                "abort_transaction",
                "send_offsets_to_transaction",
            ),
            "AIOKafkaProducer.transaction": Advice(
                "`async with producer.transaction() as tx`", "send by `tx.enqueue(...)`, which belongs to it"
            ),
            "AIOKafkaConsumer": Advice(
                "`Client(servers).consumer(*topics)`; settings of connections are arguments of `Client`",
                "auto-commit covers finished records only, not those that your code still holds; "
                "`session_timeout_ms` is 45 s, not 10 s; assignors are range and cooperative-sticky, not roundrobin: "
                "set `partition_assignment_strategy=['roundrobin']` while members of both are in a group",
            ),
            "AIOKafkaConsumer.start": Advice(CONSUMER["start"]),
            "AIOKafkaConsumer.stop": Advice(CONSUMER["stop"]),
            "AIOKafkaConsumer.getone": Advice(CONSUMER["getone"]),
            "AIOKafkaConsumer.getmany": Advice(
                CONSUMER["getmany"], "a list of records, not a dict by partition; the timeout is in seconds, not ms"
            ),
            "AIOKafkaConsumer.subscribe": Advice(
                "`subscribe(*topics, pattern=..., on_assigned=..., on_revoked=..., on_lost=...)`",
                "a rebalance waits until your code is done with its records, and auto-commit covers these",
            ),
            "AIOKafkaConsumer.assign": Advice("`assign(partitions)`, or with offsets: `assign({partition: 42})`"),
            "AIOKafkaConsumer.assignment": Advice("`assignment`, a property", "a tuple, not a set"),
            "AIOKafkaConsumer.subscription": Advice("`subscription`, a property"),
            "AIOKafkaConsumer.paused": Advice("`paused`, a property"),
            "AIOKafkaConsumer.position": Advice("`position(partition)`, without `await`"),
            "AIOKafkaConsumer.committed": Advice(
                "`await committed([partition])`", "a mapping to `OffsetAndMetadata` or None, not an offset"
            ),
            "AIOKafkaConsumer.commit": Advice("`await commit({partition: offset})`, or `await commit()`"),
            **hinted(
                "AIOKafkaConsumer",
                CONSUMER,
                "seek_to_beginning",
                "seek_to_end",
                "seek_to_committed",
                "beginning_offsets",
                "end_offsets",
                "offsets_for_times",
                "highwater",
                "last_poll_timestamp",
                "partitions_for_topic",
                "topics",
            ),
            "AIOKafkaConsumer.last_stable_offset": Advice(
                "`await offsets({partition: OffsetSpec.LATEST})` with `isolation_level='read_committed'`"
            ),
            "AIOKafkaAdminClient": Advice(
                "`Client(servers).admin`", "methods raise errors, and return values instead of Kafka's responses"
            ),
            "AIOKafkaAdminClient.start": Advice(ADMIN["start"]),
            "AIOKafkaAdminClient.close": Advice(ADMIN["close"]),
            "AIOKafkaAdminClient.create_topics": Advice("`await admin.create_topics({name: count})`, or `NewTopic`s"),
            "AIOKafkaAdminClient.alter_configs": Advice(ADMIN["alter_configs"]),
            "AIOKafkaAdminClient.find_coordinator": Advice(ADMIN["find_coordinator"]),
            "AIOKafkaAdminClient.list_consumer_groups": Advice(ADMIN["list_consumer_groups"]),
            "ConsumerRebalanceListener": Advice(
                "functions: `subscribe(*topics, on_assigned=..., on_revoked=..., on_lost=...)`",
                "lost partitions have a listener of their own: it must not commit",
            ),
            "AbstractTokenProvider": Advice("`sasl_oauthbearer_token` of `Client`, a function that returns a token"),
            "ConsumerRecord": RECORDS,
            **same("TopicPartition", "OffsetAndMetadata", "OffsetAndTimestamp"),
            "RecordMetadata": Advice("`RecordMetadata`, with topic, partition, offset and timestamp"),
            "ConsumerStoppedError": Advice("`UsageError`: the consumer is closed"),
            "IllegalOperation": Advice("`UsageError`"),
            "create_ssl_context": Advice("`ssl_ca_location`, `ssl_certificate_location` and others of `Client`"),
            "DefaultPartitioner": Advice("`partitioner='default'`", "a key has the same partition in both"),
            "RangePartitionAssignor": Advice("`partition_assignment_strategy=['range']`"),
            "RoundRobinPartitionAssignor": Advice("`partition_assignment_strategy=['roundrobin']`"),
            "StickyPartitionAssignor": Advice("`partition_assignment_strategy=['sticky']`"),
            "AbstractPartitionAssignor": Advice("`assignors=` of `consumer()`, with objects of your own"),
            "admin": Advice("`Client(servers).admin`, and the classes of `aiokafkawire`"),
            "structs": Advice("the classes of `aiokafkawire`"),
            "producer": Advice("`Client(servers).producer()`"),
            "consumer": Advice("`Client(servers).consumer()`"),
            "abc": Advice("functions and settings; see the names"),
            "helpers": Advice("settings of `Client`"),
            "partitioner": Advice("`partitioner=` of `producer()`"),
            "assignors": Advice("`partition_assignment_strategy=`"),
            "errors": ERRORS,
            "util": Advice("functions of `asyncio`"),
            "create_task": Advice("`asyncio.create_task(coroutine)`"),
            "create_future": Advice("`asyncio.get_running_loop().create_future()`"),
            "get_running_loop": Advice("`asyncio.get_running_loop()`"),
            "wait_for": Advice("`asyncio.wait_for(awaitable, timeout)`"),
            "commit_structure_validate": Advice("nothing: `commit()` checks its argument"),
        }
    ),
    "AIOKafkaClient": Advice("`Client(servers)`, whose `request(message)` sends any message of the protocol"),
    "client": Advice("`Client(servers)`"),
    "conn": no_counterpart("connections are internal; `health()` and `metrics()` describe them"),
    "__version__": Advice("`aiokafkawire.__version__`"),
    "protocol": Advice("`aiokafkawire.protocol`, with all messages in all versions; send them by `Client.request`"),
    "record": Advice("`aiokafkawire.records`"),
    "cluster": Advice("`await client.admin.describe_cluster()`, and `describe_topics()`"),
    "codec": Advice("`compression_type=`; the codecs need no packages besides this one"),
}


AIOKAFKA: Final = Library(
    name="aiokafka",
    distribution="aiokafka",
    section="From aiokafka",
    names=_NAMES,
    results={"AIOKafkaConsumer.getone": "ConsumerRecord"},
    unknown=PRIVATE,
)

DROP_IN_MODULES: Final[Mapping[str, Collection[str] | None]] = {
    "aiokafka": (
        "AIOKafkaClient",
        "AIOKafkaConsumer",
        "AIOKafkaProducer",
        "ConsumerRebalanceListener",
        "ConsumerRecord",
        "ConsumerStoppedError",
        "IllegalOperation",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "TopicPartition",
    ),
    "aiokafka.abc": ("AbstractTokenProvider", "ConsumerRebalanceListener"),
    "aiokafka.admin": ("AIOKafkaAdminClient", "NewPartitions", "NewTopic", "RecordsToDelete"),
    "aiokafka.admin.client": ("AIOKafkaAdminClient",),
    "aiokafka.admin.config_resource": ("ConfigResource", "ConfigResourceType"),
    "aiokafka.admin.new_partitions": ("NewPartitions",),
    "aiokafka.admin.new_topic": ("NewTopic",),
    "aiokafka.admin.records_to_delete": ("RecordsToDelete",),
    "aiokafka.client": ("AIOKafkaClient", "ConnectionGroup", "CoordinationType"),
    "aiokafka.cluster": ("ClusterMetadata",),
    "aiokafka.conn": ("AbstractTokenProvider",),
    "aiokafka.consumer": ("AIOKafkaConsumer",),
    "aiokafka.consumer.consumer": ("AIOKafkaConsumer",),
    "aiokafka.coordinator.assignors.abstract": ("AbstractPartitionAssignor",),
    "aiokafka.coordinator.assignors.range": ("RangePartitionAssignor",),
    "aiokafka.coordinator.assignors.roundrobin": ("RoundRobinPartitionAssignor",),
    "aiokafka.coordinator.assignors.sticky.sticky_assignor": ("StickyPartitionAssignor",),
    "aiokafka.coordinator.protocol": ("ConsumerProtocolMemberAssignment", "ConsumerProtocolMemberMetadata"),
    "aiokafka.errors": None,
    "aiokafka.helpers": ("create_ssl_context",),
    "aiokafka.partitioner": ("DefaultPartitioner", "murmur2"),
    "aiokafka.producer": ("AIOKafkaProducer",),
    "aiokafka.producer.message_accumulator": ("BatchBuilder",),
    "aiokafka.producer.producer": ("AIOKafkaProducer",),
    "aiokafka.structs": (
        "BrokerMetadata",
        "ConsumerRecord",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "PartitionMetadata",
        "RecordMetadata",
        "TopicPartition",
    ),
    "aiokafka.util": None,
}
"""The modules that the drop-in has under ``aiokafkawire.aiokafka``, and their names; None for all public ones."""
