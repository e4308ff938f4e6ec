"""The names of kafka-python, and what stands for them here."""

from collections.abc import Mapping
from typing import Final

from ...other_clients_names import ADMIN, BLOCKING_CONSUMER
from .advice import ERRORS, RECORDS, Advice, Library, hinted, no_counterpart, same

__all__ = ("KAFKA_PYTHON",)

_NAMES: Final[Mapping[str, Advice]] = {
    "kafka": Advice("`aiokafkawire.blocking`, or `aiokafkawire` with an event loop"),
    "KafkaProducer": Advice(
        "`blocking.Client(servers).producer()`; settings of connections are arguments of `Client`",
        "`acks` is all by default, and idempotence on, while older releases of kafka-python have 1, and off; unknown "
        "topics are not created",
    ),
    "KafkaProducer.send": Advice(
        "`producer.enqueue(...)`, which returns a delivery; `producer.send(...)` waits for the acknowledgement",
        "`key` and what follows are keywords; a `send` for each record waits a round trip for each",
    ),
    "KafkaProducer.flush": Advice("`producer.flush()`", "it raises `DeliveryFailed` for failures that no caller took"),
    "KafkaProducer.close": Advice("`producer.close()`; or use it as `with`"),
    "KafkaProducer.partitions_for": Advice("`producer.partitions_for(topic)`", "a tuple, not a set"),
    "KafkaProducer.metrics": Advice("`client.metrics()`", "names of Java's metrics, as a tuple"),
    "KafkaProducer.bootstrap_connected": Advice("`client.health()`"),
    "KafkaProducer.max_usable_produce_magic": no_counterpart("the client negotiates formats itself"),
    "KafkaProducer.init_transactions": Advice("not needed here: entering the producer does it"),
    "KafkaProducer.begin_transaction": Advice("`with producer.transaction() as transaction`"),
    "KafkaProducer.commit_transaction": Advice("leave the `with` block of the transaction"),
    "KafkaProducer.abort_transaction": Advice("raise an exception inside of the `with` block"),
    "KafkaProducer.send_offsets_to_transaction": Advice("`transaction.commit_offsets(consumer)`"),
    "FutureRecordMetadata.get": Advice("`delivery.result()`, or `producer.send(...)`, which waits"),
    "FutureRecordMetadata.add_callback": Advice(
        "`delivery.add_callback(callback)` of what `enqueue()` returns", "the callback takes the metadata and the error"
    ),
    "FutureRecordMetadata.add_errback": Advice(
        "`delivery.add_callback(callback)` of what `enqueue()` returns", "the callback takes the metadata and the error"
    ),
    "FutureRecordMetadata.succeeded": Advice("`delivery.done`, and `delivery.result()`"),
    "KafkaConsumer": Advice(
        "`blocking.Client(servers).consumer(*topics)`; settings of connections are arguments of `Client`",
        "auto-commit covers finished records only, not those that your code still holds; the loop ends after no "
        "`consumer_timeout_ms`: use `poll(timeout=...)`, or `client.read_records()`, which stops at the end",
    ),
    "KafkaConsumer.poll": Advice(
        "`consumer.poll(max_records, timeout=1)`",
        "a list of records, not a dict by partition; the timeout is in seconds, not ms",
    ),
    "KafkaConsumer.subscribe": Advice(
        "`subscribe(*topics, pattern=..., on_assigned=..., on_revoked=..., on_lost=...)`",
        "listeners are functions, and run on a thread of their own",
    ),
    "KafkaConsumer.commit": Advice("`consumer.commit({partition: offset})`, or `commit()`"),
    "KafkaConsumer.commit_async": Advice(BLOCKING_CONSUMER["commit_async"], "there is no callback"),
    "KafkaConsumer.committed": Advice("`committed([partition])`", "a mapping to `OffsetAndMetadata` or None"),
    "KafkaConsumer.assign": Advice("`assign(partitions)`, or with offsets: `assign({partition: 42})`"),
    "KafkaConsumer.assignment": Advice("`assignment`, a property", "a tuple, not a set"),
    "KafkaConsumer.subscription": Advice("`subscription`, a property"),
    "KafkaConsumer.paused": Advice("`paused`, a property"),
    "KafkaConsumer.close": Advice("`consumer.close()`; or use it as `with`"),
    "KafkaConsumer.metrics": Advice("`client.metrics()`", "names of Java's metrics, as a tuple"),
    "KafkaConsumer.bootstrap_connected": Advice("`client.health()`"),
    **hinted(
        "KafkaConsumer",
        BLOCKING_CONSUMER,
        "seek_to_beginning",
        "seek_to_end",
        "beginning_offsets",
        "end_offsets",
        "offsets_for_times",
        "highwater",
        "partitions_for_topic",
        "topics",
    ),
    "KafkaAdminClient": Advice(
        "`blocking.Client(servers).admin`", "methods raise errors, and return values instead of Kafka's responses"
    ),
    "KafkaAdminClient.create_topics": Advice("`admin.create_topics({name: partitions})`, or `NewTopic`s"),
    "KafkaAdminClient.delete_topics": Advice("`admin.delete_topics(names)`"),
    "KafkaAdminClient.close": Advice(ADMIN["close"]),
    **hinted("KafkaAdminClient", ADMIN, "alter_configs", "list_group_offsets", "list_consumer_groups"),
    "KafkaClient": no_counterpart("connections are not public; `client.request(message)` sends any message"),
    "BrokerConnection": no_counterpart("connections are not public; `client.request(message)` sends any message"),
    "SimpleClient": no_counterpart("kafka-python removed it in 2.0"),
    "SimpleConsumer": Advice("`blocking.Client(servers).consumer(...)`; kafka-python removed it in 2.0"),
    "SimpleProducer": Advice("`blocking.Client(servers).producer()`; kafka-python removed it in 2.0"),
    "ConsumerRebalanceListener": Advice(
        "functions: `subscribe(*topics, on_assigned=..., on_revoked=..., on_lost=...)`",
        "lost partitions have a listener of their own: it must not commit",
    ),
    "ConsumerRecord": RECORDS,
    "NewTopic": Advice("`NewTopic`, or a number of partitions by name"),
    "ConfigResource": Advice("`ConfigResource.topic(name)`, `ConfigResource.broker(id)`"),
    "Serializer": Advice("a function, or an object with `serialize(value, context)`"),
    "Deserializer": Advice("a function, or an object with `deserialize(data, context)`"),
    "RangePartitionAssignor": Advice("`partition_assignment_strategy=['range']`"),
    "RoundRobinPartitionAssignor": Advice("`partition_assignment_strategy=['roundrobin']`"),
    "StickyPartitionAssignor": Advice("`partition_assignment_strategy=['sticky']`"),
    "DefaultPartitioner": Advice("`partitioner='default'`", "a key has the same partition in both"),
    "AbstractTokenProvider": Advice("`sasl_oauthbearer_token` of `Client`, a function that returns a token"),
    "admin": Advice("`blocking.Client(servers).admin`, and the classes of `aiokafkawire`"),
    "structs": Advice("the classes of `aiokafkawire`"),
    "consumer": Advice("`blocking.Client(servers).consumer()`"),
    "producer": Advice("`blocking.Client(servers).producer()`"),
    "partitioner": Advice("`partitioner=` of `producer()`"),
    "coordinator": Advice("`partition_assignment_strategy=`, or `assignors=` of `consumer()`"),
    "serializer": Advice("functions, or objects with `serialize(value, context)`"),
    "protocol": Advice("`aiokafkawire.protocol`, with all messages in all versions; send them by `client.request`"),
    "record": Advice("`aiokafkawire.records`"),
    "cluster": Advice("`admin.describe_cluster()`, and `describe_topics()`"),
    "client_async": no_counterpart("connections are not public; `client.request(message)` sends any message"),
    "conn": no_counterpart("connections are not public; `client.request(message)` sends any message"),
    "codec": Advice("`compression_type=`; the codecs need no packages besides this one"),
    **same(
        "AbortTransactionSpec",
        "ConfigResourceType",
        "IsolationLevel",
        "NewPartitions",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "OffsetSpec",
        "ProducerState",
        "ResourcePattern",
        "ResourceType",
        "ScramMechanism",
        "TopicPartition",
        "TopicPartitionReplica",
        "TransactionDescription",
        "TransactionListing",
        "UserScramCredentialDeletion",
        "UserScramCredentialUpsertion",
    ),
    "common": Advice("kafka-python has it in `kafka.errors` and `kafka.structs` since 1.0: see there"),
    "util": no_counterpart("functions of kafka-python's own"),
    "__version__": Advice("`aiokafkawire.__version__`"),
    "errors": ERRORS,
}

KAFKA_PYTHON: Final = Library(
    name="kafka",
    distribution="kafka-python",
    section="From kafka-python",
    names=_NAMES,
    results={"KafkaProducer.send": "FutureRecordMetadata"},
    unknown=Advice("look it up in the classes of `aiokafkawire`, unless `kafka` is a package of your own"),
)
