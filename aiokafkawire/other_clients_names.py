"""Names that other Kafka clients use, and the corresponding names of this client.

The names are from aiokafka, kafka-python, confluent-kafka (librdkafka) and the Java client. Errors for a missing
attribute or an unknown setting suggest the corresponding name.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NoReturn

__all__ = (
    "ADMIN",
    "BLOCKING_CONSUMER",
    "BLOCKING_PRODUCER",
    "CLIENT",
    "CONSUMER",
    "MODULE",
    "PRODUCER",
    "TRANSACTION",
    "add_hints",
    "refuse_keywords",
    "setting_hint",
)

_OPENS: Final = "use it as 'async with', which opens and closes it"
_OFFSETS: Final = "await offsets({partition: OffsetSpec.EARLIEST}), OffsetSpec.LATEST or OffsetSpec.at(timestamp_ms)"
_TRANSACTION: Final = "use 'async with producer.transaction() as transaction': it commits, or aborts on an exception"
_POLL: Final = "await poll(max_records=..., timeout=...), or iterate with 'async for'"

CLIENT: Final[Mapping[str, str]] = {
    "start": f"open(); or {_OPENS}",
    "stop": f"close(); or {_OPENS}",
    "bootstrap": f"open(); or {_OPENS}",
    "create_topics": "await client.admin.create_topics({name: partitions})",
    "list_topics": "await client.admin.list_topics()",
    "cluster": "client.admin",
    "send": "client.producer() makes a producer, which has send()",
    "subscribe": "client.consumer(*topics, group_id=...) makes a consumer",
}

PRODUCER: Final[Mapping[str, str]] = {
    "send_and_wait": "await send(...), which waits for the acknowledgement",
    "produce": "send_nowait(topic, value, key=...), or await send(...)",
    "start": _OPENS,
    "stop": f"await close(); or {_OPENS}",
    "poll": "not needed here: await the deliveries, or flush(), which waits for all",
    "partitions_for_topic": "await partitions_for(topic)",
    "create_batch": "not needed here: send_nowait() and enqueue_many() make batches",
    "send_batch": "await enqueue_many(topic, values), or await send_many(topic, values)",
    "init_transactions": f"not needed here: entering the producer does it; then {_TRANSACTION}",
    "begin_transaction": _TRANSACTION,
    "commit_transaction": _TRANSACTION,
    "abort_transaction": _TRANSACTION,
    "send_offsets_to_transaction": "await transaction.commit_offsets(consumer)",
    "list_topics": "await client.admin.list_topics()",
}

TRANSACTION: Final[Mapping[str, str]] = {
    "commit": "leave the 'async with' block, which commits",
    "abort": "raise an exception inside the 'async with' block, which aborts",
    "send_offsets_to_transaction": "await commit_offsets(consumer)",
    "send_and_wait": "await send(...), which waits for the acknowledgement",
    "produce": "send_nowait(topic, value, key=...), or await send(...)",
}

CONSUMER: Final[Mapping[str, str]] = {
    "getmany": _POLL,
    "getone": "await anext(consumer), or iterate with 'async for'",
    "consume": _POLL,
    "start": _OPENS,
    "stop": f"await close(); or {_OPENS}",
    "commit_async": "await commit(); enable_auto_commit commits in the background",
    "commit_sync": "await commit()",
    "seek_to_beginning": "seek(partition, OffsetSpec.EARLIEST)",
    "seek_to_end": "seek(partition, OffsetSpec.LATEST)",
    "seek_to_committed": "seek(partition, (await committed([partition]))[partition].offset), if that is not None",
    "beginning_offsets": _OFFSETS,
    "end_offsets": _OFFSETS,
    "offsets_for_times": _OFFSETS,
    "get_watermark_offsets": _OFFSETS,
    "highwater": "high_watermark(partition)",
    "last_poll_timestamp": "health()",
    "partitions_for_topic": "await partitions_for(topic)",
    "topics": "await list_topics()",
    "consumer_group_metadata": "group_metadata()",
    "incremental_assign": "assign(partitions): partitions that stay keep their position",
    "incremental_unassign": "assign(partitions): partitions that stay keep their position",
    "unassign": "assign([])",
    "store_offsets": "not needed here: auto-commit commits processed records; or await commit({partition: offset})",
    "wakeup": "cancel the task, or give poll() a timeout",
    "memberid": "health(), or group_metadata().member_id",
}

ADMIN: Final[Mapping[str, str]] = {
    "list_consumer_groups": "list_groups()",
    "delete_consumer_groups": "delete_groups(*group_ids)",
    "find_coordinator": "find_coordinators(group_id)",
    "list_client_metrics_resources": "list_config_resources([ConfigResourceType.CLIENT_METRICS])",
    "describe_quorum": "describe_metadata_quorum()",
    "list_group_offsets": "list_consumer_group_offsets(group_id)",
    "alter_configs": "incremental_alter_configs({ConfigResource.topic(name): {config: value}})",
    "list_share_groups": "list_groups(types=['share'])",
    "remove_members_from_consumer_group": "remove_members(group_id, members)",
    "start": "not needed here: the client opens it",
    "close": "not needed here: the client closes it",
}

MODULE: Final[Mapping[str, str]] = {
    "AIOKafkaProducer": "Client(servers).producer()",
    "AIOKafkaConsumer": "Client(servers).consumer(*topics)",
    "AIOKafkaAdminClient": "Client(servers).admin",
    "KafkaProducer": "Client(servers).producer(), or aiokafkawire.blocking.Client without an event loop",
    "KafkaConsumer": "Client(servers).consumer(*topics), or aiokafkawire.blocking.Client without an event loop",
    "KafkaAdminClient": "Client(servers).admin",
    "AdminClient": "Client(servers).admin",
    "OffsetAndTimestampSpec": "OffsetSpec",
    "ConsumerRebalanceListener": "functions: consumer.subscribe(*topics, on_assigned=..., on_revoked=..., on_lost=...)",
}


def _blocking(hints: Mapping[str, str]) -> dict[str, str]:
    """Return the hints without ``await`` and ``async``, for the blocking client."""
    return {
        name: hint.replace("await ", "").replace("async ", "").replace("anext(consumer)", "next(iter(consumer))")
        for name, hint in hints.items()
    }


BLOCKING_PRODUCER: Final[Mapping[str, str]] = _blocking(PRODUCER) | {
    "produce": "enqueue_many(topic, [value], keys=[key]), or send(topic, value, key=...), which waits",
    "send_nowait": "enqueue_many(topic, [value], keys=[key])",
}
BLOCKING_CONSUMER: Final[Mapping[str, str]] = _blocking(CONSUMER)

# Hints for other clients' settings given to each config class. A setting of another config class needs no hint here.
_LISTENER: Final = "consumer.subscribe(*topics, on_assigned=..., on_revoked=..., on_lost=...)"
_METRICS: Final = "leave it out: metrics() of Client has Java's metrics, and exporters read them"
_COMMON: Final[Mapping[str, str]] = {
    "bootstrap_servers": "it is the first argument of Client: Client('host:port', ...)",
    "bootstrap_server": "it is the first argument of Client: Client('host:port', ...)",
    "metadata_broker_list": "it is the first argument of Client: Client('host:port', ...)",
    "brokers": "it is the first argument of Client: Client('host:port', ...)",
    "loop": "leave it out: the client uses the running loop",
    "api_version": "leave it out: the client negotiates versions with each broker",
    "api_version_auto_timeout_ms": "api_version_request_timeout_ms of Client",
    "connections_max_idle": "connections_max_idle_ms of Client",
    "sasl_plain_username": "sasl_username of Client",
    "sasl_plain_password": "sasl_password of Client",
    "sasl_oauth_token_provider": "sasl_oauthbearer_token of Client",
    "sasl_mechanisms": "sasl_mechanism of Client",
    "ssl_cafile": "ssl_ca_location of Client",
    "ssl_certfile": "ssl_certificate_location of Client",
    "ssl_keyfile": "ssl_key_location of Client",
    "ssl_password": "ssl_key_password of Client",
    "ssl_check_hostname": "ssl_endpoint_identification_algorithm='none' of Client",
    "topic_metadata_refresh_interval_ms": "metadata_max_age_ms of Client",
    "socket_timeout_ms": "request_timeout_ms of Client",
    "reconnect_backoff_max": "reconnect_backoff_max_ms of Client",
    "logger": "leave it out: configure the logger 'aiokafkawire' of Python's logging",
    "debug": "leave it out: configure the logger 'aiokafkawire' of Python's logging",
    "error_cb": "leave it out: calls raise errors",
    "sasl_kerberos_name": "sasl_kerberos_service_name of Client",
    "sasl_kerberos_domain_name": "leave it out: tickets are for the host of each broker",
    "proxy_url": "proxy of Client: 'socks5://host:port' or 'http://host:port'",
    "socks5_proxy": "proxy of Client: 'socks5://host:port' or 'http://host:port'",
    "ssl_ciphers": "ssl_cipher_suites of Client",
    "ssl_crlfile": "ssl_context of Client, an ssl.SSLContext of your own",
    "socket_options": "send_buffer_bytes, receive_buffer_bytes and socket_keepalive_enable of Client",
    "selector": "leave it out: the client uses the running loop",
    "kafka_client": "leave it out: the client opens its connections itself",
    "metric_reporters": _METRICS,
    "metric_group_prefix": _METRICS,
    "metrics_enabled": _METRICS,
    "metrics_num_samples": _METRICS,
    "metrics_sample_window_ms": _METRICS,
}
_OF_PRODUCERS: Final[Mapping[str, str]] = {
    "max_batch_size": "batch_size",
    "batch_num_messages": "batch_size, in bytes",
    "compression_codec": "compression_type",
    "request_required_acks": "acks",
    "message_send_max_retries": "retries, best left to delivery_timeout_ms",
    "message_timeout_ms": "delivery_timeout_ms",
    "message_max_bytes": "max_request_size",
    "queue_buffering_max_ms": "linger_ms",
    "queue_buffering_max_kbytes": "buffer_memory, in bytes",
    "queue_buffering_max_messages": "buffer_memory, in bytes",
    "max_in_flight": "max_in_flight_requests_per_connection",
    "on_delivery": "await the delivery that enqueue() or send_nowait() returns, or use its add_callback()",
    "dr_cb": "await the delivery that enqueue() or send_nowait() returns, or use its add_callback()",
}
_OF_CONSUMERS: Final[Mapping[str, str]] = {
    "max_poll_records": "an argument of poll(): poll(max_records=...)",
    "consumer_timeout_ms": "an argument of poll(), in seconds: poll(timeout=...)",
    "listener": _LISTENER,
    "rebalance_listener": _LISTENER,
    "on_assign": f"on_assigned: {_LISTENER}",
    "on_revoke": f"on_revoked: {_LISTENER}",
    "on_assigned": _LISTENER,
    "on_revoked": _LISTENER,
    "on_lost": _LISTENER,
    "pattern": "consumer.subscribe(pattern=...)",
    "topics": "positional arguments: 'orders', 'returns', or one list of them",
    "fetch_wait_max_ms": "fetch_max_wait_ms",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "enable_auto_offset_store": "enable_auto_commit, which commits the offsets of processed records",
    "rebalance_timeout_ms": "max_poll_interval_ms",
    "enable_incremental_fetch_sessions": "leave it out: fetches are in sessions where brokers have them",
    "default_offset_commit_callback": "interceptors= of consumer(), with on_commit()",
    "exclude_internal_topics": "leave it out: patterns never match internal topics",
}

_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "ClientConfig": _COMMON,
    "ProducerConfig": {**_COMMON, **_OF_PRODUCERS},
    "ConsumerConfig": {**_COMMON, **_OF_CONSUMERS},
}


_ARGUMENTS: Final[Mapping[str, Sequence[str]]] = {
    "ClientConfig": ("connector", "observers"),
    "ProducerConfig": ("interceptors",),
    "ConsumerConfig": ("interceptors",),
}
"""The arguments that are no settings, and may be misspelt as well."""

_MADE_BY: Final[Mapping[str, str]] = {
    "ClientConfig": "Client(servers, {}=...)",
    "ProducerConfig": "client.producer({}=...)",
    "ConsumerConfig": "client.consumer({}=...)",
}


def setting_hint(config: str, name: str, known: Sequence[str], others: Mapping[str, Sequence[str]]) -> str:
    """Return a hint for an unknown setting: its name here, the class that has it, a similar name, or all known names.

    Args:
        config: the name of the config class, which does not have the setting.
        name: the unknown setting.
        known: the settings of the config class.
        others: the settings of all config classes, by class name.
    """
    plain = name.replace(".", "_").replace("-", "_")
    if plain in known:
        return f"did you mean {plain}?"
    foreign = _SETTINGS.get(config, {}).get(plain)
    if foreign is not None:
        return f"here: {foreign}"
    for owner, settings in others.items():
        if config in _SETTINGS and owner != config and plain in settings:
            return f"here: {_MADE_BY[owner].format(plain)}"
    near = get_close_matches(plain, [*known, *_ARGUMENTS.get(config, ())], n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"


class _ForeignName:
    """A descriptor for an attribute name of other clients, whose AttributeError suggests this client's name."""

    def __init__(self, hint: str) -> None:
        self._hint, self._name = hint, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        text = f"{owner.__name__!r} object has no attribute {self._name!r}; here: {self._hint}"
        raise AttributeError(text, name=self._name, obj=owner if instance is None else instance)


def add_hints(cls: type, names: Mapping[str, str]) -> None:
    """Add other clients' attribute names to a class, so that their AttributeError suggests this client's name.

    A ``__getattr__`` would do the same, but slows down CPython's lookup of every other attribute.
    """
    for name, hint in names.items():
        assert not hasattr(cls, name), f"{cls.__name__}.{name} exists: it needs no hint"
        foreign = _ForeignName(hint)
        foreign.__set_name__(cls, name)
        setattr(cls, name, foreign)


def refuse_keywords(method: str, given: Iterable[str]) -> TypeError:
    """Return the error for unknown keyword arguments ``given`` to a method of the consumer."""
    name = next(iter(given))
    hint = f"; here: {_OF_CONSUMERS[name]}" if name in _OF_CONSUMERS else ""
    return TypeError(f"{method}() got an unexpected keyword argument {name!r}{hint}")
