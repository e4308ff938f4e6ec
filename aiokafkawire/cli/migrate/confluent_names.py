"""The names of confluent-kafka, and what stands for them here."""

from collections.abc import Mapping
from typing import Final

from ...other_clients_names import ADMIN, CONSUMER, PRODUCER
from .advice import ERRORS, Advice, Library, hinted, no_counterpart, same

__all__ = ("CONFLUENT_KAFKA",)

_NEW_CREDENTIALS: Final = no_counterpart("open another client, or set `sasl_oauthbearer_token` to a function")

_NAMES: Final[Mapping[str, Advice]] = {
    "confluent_kafka": Advice("`aiokafkawire`; in code without an event loop `aiokafkawire.blocking`"),
    "Producer": Advice(
        "`Client(...).producer(**settings.producer)`, with `settings = aiokafkawire.from_confluent(config)`",
        "retries neither repeat nor reorder records; unknown topics are not created; with settings of your own, keys "
        "go to other partitions unless `partitioner='consistent_random'`",
    ),
    "Producer.produce": Advice(
        "`await producer.send(...)`, or `send_nowait(...)`, which returns a delivery",
        "`timestamp` is `timestamp_ms`; a str is not encoded, so give bytes or a `value_serializer`, and headers of "
        "bytes; `BufferError` is `BufferFull`",
    ),
    "Producer.produce_batch": Advice("`await producer.send_many(topic, values)`, or `enqueue_many`"),
    "Producer.poll": Advice(PRODUCER["poll"]),
    "Producer.flush": Advice(
        "`await producer.flush()`", "it returns nothing, and raises `DeliveryFailed`; `anyio.fail_after` bounds it"
    ),
    "Producer.close": Advice("`await close()`; or use it as `async with`"),
    "Producer.list_topics": Advice(PRODUCER["list_topics"]),
    **hinted(
        "Producer",
        PRODUCER,
        "init_transactions",
        "begin_transaction",
        "commit_transaction",
        "abort_transaction",
        "send_offsets_to_transaction",
    ),
    "Producer.purge": Advice("`purge()`; it drops what waits to be sent, never what is in flight"),
    "Producer.set_sasl_credentials": _NEW_CREDENTIALS,
    "Consumer": Advice(
        "`Client(...).consumer(*topics, **settings.consumer)`, with `settings = aiokafkawire.from_confluent(config)`",
        "auto-commit covers finished records only, not those that `poll()` has just returned; with settings of your "
        "own, aborted records are read unless `isolation_level='read_committed'`",
    ),
    "Consumer.poll": Advice(
        "`async for record in consumer`, or `await poll(max_records, timeout=1)`, which returns a list",
        "errors are raised, and are no messages; no record is an empty list, not None",
    ),
    "Consumer.consume": Advice("`await poll(max_records, timeout=1)`", "errors are raised, and are no messages"),
    "Consumer.subscribe": Advice(
        "`subscribe(*topics, on_assigned=..., on_revoked=..., on_lost=...)`",
        "a listener gets the partitions alone, may be a coroutine function, and does not assign; a topic '^...' is "
        "`pattern='...'`",
    ),
    "Consumer.commit": Advice(
        "`await commit({TopicPartition(topic, partition): offset})`, or `await commit()`",
        "it waits for the brokers and raises errors; by default confluent's is asynchronous and raises none; "
        "`message=` is the record's offset + 1",
    ),
    "Consumer.store_offsets": Advice(CONSUMER["store_offsets"]),
    "Consumer.assign": Advice("`assign({TopicPartition(topic, partition): offset})`"),
    "Consumer.seek": Advice("`seek(TopicPartition(topic, partition), offset)`"),
    "Consumer.position": Advice("`position(partition)`, for one partition"),
    "Consumer.committed": Advice("`await committed(partitions)`", "a mapping to `OffsetAndMetadata` or None"),
    "Consumer.assignment": Advice("`assignment`, a property"),
    "Consumer.pause": Advice("`pause(*partitions)`"),
    "Consumer.resume": Advice("`resume(*partitions)`"),
    "Consumer.close": Advice("`await close()`; or use it as `async with`"),
    "Consumer.list_topics": Advice("`await consumer.list_topics()`, or `await client.admin.describe_topics([...])`"),
    "Consumer.unsubscribe": Advice("`await unsubscribe()`"),
    **hinted(
        "Consumer",
        CONSUMER,
        "get_watermark_offsets",
        "offsets_for_times",
        "incremental_assign",
        "incremental_unassign",
        "unassign",
        "memberid",
        "consumer_group_metadata",
    ),
    "Consumer.set_sasl_credentials": _NEW_CREDENTIALS,
    "Message": Advice("`ConsumerRecord`: `topic`, `partition`, `offset`, `key`, `value` are attributes, not methods"),
    "Message.error": Advice("remove it: errors are raised"),
    "Message.value": Advice("`record.value`"),
    "Message.key": Advice("`record.key`"),
    "Message.topic": Advice("`record.topic`"),
    "Message.partition": Advice("`record.partition`"),
    "Message.offset": Advice("`record.offset`"),
    "Message.headers": Advice("`record.headers`", "an empty tuple instead of None"),
    "Message.timestamp": Advice("`record.timestamp`, in ms, and `record.timestamp_type`", "no tuple of both"),
    "Message.leader_epoch": Advice("`record.leader_epoch`"),
    "Message.latency": no_counterpart("`metrics()` has the latency of requests"),
    "TopicPartition": Advice(
        "`TopicPartition(topic, partition)`, without an offset", "offsets are the values of mappings instead"
    ),
    "OFFSET_BEGINNING": Advice("`OffsetSpec.EARLIEST`"),
    "OFFSET_END": Advice("`OffsetSpec.LATEST`"),
    "OFFSET_STORED": Advice("`(await consumer.committed([partition]))[partition]`"),
    "OFFSET_INVALID": Advice("None"),
    "TIMESTAMP_CREATE_TIME": Advice("`TimestampType.CREATE_TIME`"),
    "TIMESTAMP_LOG_APPEND_TIME": Advice("`TimestampType.LOG_APPEND_TIME`"),
    "TIMESTAMP_NOT_AVAILABLE": Advice("`record.timestamp == -1`"),
    "TopicCollection": Advice("a list of names"),
    "KafkaError": Advice(
        "a class of `aiokafkawire.errors` for each code, such as `UnknownTopicOrPartition`",
        "by default confluent-kafka hands out errors as messages, or to callbacks; here calls raise them",
    ),
    "KafkaError.code": Advice("`error.code` of a `BrokerError`, an attribute", "or catch the class"),
    "KafkaError._PARTITION_EOF": Advice("`Client.read_records()`, which stops at the end"),
    "KafkaError._ALL_BROKERS_DOWN": Advice("`NoBrokerReachable`, or `client.health()`"),
    "KafkaError._TIMED_OUT": Advice("`RequestTimeout`"),
    "KafkaError._TRANSPORT": Advice("`ConnectionLost`"),
    "KafkaException": Advice("`KafkaError`"),
    "SerializingProducer": Advice("`producer(key_serializer=..., value_serializer=...)`"),
    "DeserializingConsumer": Advice("`consumer(key_deserializer=..., value_deserializer=...)`"),
    "ShareConsumer": Advice("`client.share_consumer(*topics, group_id=...)`"),
    "AIOProducer": Advice("`Client(...).producer()`", "no thread pool: calls run on the event loop"),
    "AIOConsumer": Advice("`Client(...).consumer()`", "no thread pool: calls run on the event loop"),
    "ThrottleEvent": Advice("`observers=` of `Client`"),
    "AdminClient": Advice(
        "`Client(...).admin`", "methods are awaited and raise errors; they return values, not a dict of futures"
    ),
    "AdminClient.create_topics": Advice("`await admin.create_topics({name: partitions})`, or `NewTopic`s"),
    "AdminClient.delete_topics": Advice("`await admin.delete_topics(names)`"),
    "AdminClient.list_topics": Advice("`await admin.list_topics()`, or `describe_topics([...])`"),
    "AdminClient.create_partitions": Advice("`await admin.create_partitions({topic: total})`"),
    "AdminClient.describe_configs": Advice("`await admin.describe_configs([ConfigResource.topic(name)])`"),
    "AdminClient.list_offsets": Advice("`await admin.list_offsets({partition: OffsetSpec.LATEST})`"),
    "AdminClient.alter_consumer_group_offsets": Advice("`await admin.alter_consumer_group_offsets(...)`"),
    "AdminClient.poll": no_counterpart("methods are awaited"),
    **hinted("AdminClient", ADMIN, "alter_configs", "list_consumer_groups", "delete_consumer_groups"),
    "NewTopic": Advice("`NewTopic`, or a number of partitions by name"),
    "ConfigResource": Advice("`ConfigResource.topic(name)`, `ConfigResource.broker(id)`"),
    "admin": Advice("`Client(...).admin`, and the classes of `aiokafkawire`"),
    "schema_registry": Advice("`aiokafkawire.schema_registry`", "the wire format is the same"),
    "SchemaRegistryClient": Advice("`SchemaRegistry(url)`"),
    "Schema": Advice("`Schema` of `aiokafkawire.schema_registry`"),
    "SchemaReference": Advice("`SchemaReference` of `aiokafkawire.schema_registry`"),
    "AvroSerializer": Advice(
        "`AvroSerializer(registry, schema, to_dict=...)`", "`to_dict` gets the value alone, without a context"
    ),
    "AvroDeserializer": Advice(
        "`AvroDeserializer(registry, from_dict=...)`", "`from_dict` gets the value alone, without a context"
    ),
    "JSONSerializer": Advice("`JsonSchemaSerializer(registry, schema)`"),
    "JSONDeserializer": Advice("`JsonSchemaDeserializer(registry)`"),
    "ProtobufSerializer": Advice("`ProtobufSerializer(registry, message_type)`"),
    "ProtobufDeserializer": Advice("`ProtobufDeserializer(registry, message_type)`"),
    "avro": Advice("`AvroSerializer` and `AvroDeserializer` of `aiokafkawire.schema_registry`"),
    "serialization": Advice("functions, or objects with `serialize(value, context)`"),
    "StringSerializer": Advice("`key_serializer=str.encode`"),
    "StringDeserializer": Advice("`key_deserializer=bytes.decode`", "it is not called for null"),
    "SerializationContext": Advice("the `context` of `serialize(value, context)`: topic, headers, is_key"),
    **same(
        "AclBinding",
        "AclBindingFilter",
        "AclOperation",
        "AclPermissionType",
        "ConfigSource",
        "ElectionType",
        "IsolationLevel",
        "NewPartitions",
        "OffsetSpec",
        "ResourceType",
        "ScramMechanism",
        "UserScramCredentialDeletion",
        "UserScramCredentialUpsertion",
    ),
    "errors": ERRORS,
    "error": ERRORS,
    "cimpl": Advice("the classes of `aiokafkawire`"),
    "aio": Advice("`Client(...)`, which is asynchronous"),
    "__version__": Advice("`aiokafkawire.__version__`"),
    "libversion": no_counterpart("there is no librdkafka"),
    "version": Advice("`aiokafkawire.__version__`"),
}

CONFLUENT_KAFKA: Final = Library(
    name="confluent_kafka",
    distribution="confluent-kafka",
    section="From confluent-kafka",
    names=_NAMES,
    bases={
        "AIOConsumer": "Consumer",
        "AIOProducer": "Producer",
        "AvroConsumer": "Consumer",
        "AvroProducer": "Producer",
        "DeserializingConsumer": "Consumer",
        "SerializingProducer": "Producer",
    },
    results={"Consumer.poll": "Message", "Consumer.consume": "Message", "Message.error": "KafkaError"},
    unknown=Advice("look it up in the classes of `aiokafkawire`"),
)
