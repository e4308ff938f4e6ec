"""Names and outcomes of the settings of other clients: applied, without effect, or refused."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..argument_checks import INT32

__all__ = (
    "ALIASES",
    "CONFLUENT_CALLBACKS",
    "KEYTAB",
    "LONGS",
    "MEANINGS",
    "MSK_OAUTH_HANDLER",
    "REFUSED",
    "SPECIAL",
    "WITHOUT_CONSUMER",
    "WITHOUT_EFFECT",
    "RefusedSetting",
    "why_without_effect",
)

ALIASES: Final[Mapping[str, str]] = {
    "auto.commit.enable": "enable.auto.commit",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.assertion.jwt.template.file": "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
}
"""Alternative names of settings, from librdkafka and the Java client, and the names that this client uses. A setting
that is given under both is that of the latter."""

_MSK: Final = "software.amazon.msk.auth.iam"
MSK_OAUTH_HANDLER: Final = f"{_MSK}.IAMOAuthBearerLoginCallbackHandler"
"""The class of AWS's library that logs in at MSK by OAUTHBEARER, as AWS_MSK_IAM does."""

SPECIAL: Final[Mapping[str, str]] = {
    "bootstrap.resolve.timeout.ms": "`bootstrap_timeout_ms` of `Client`; `0`, Java's default, leaves it out",
    "bootstrap.servers": "`KafkaSettings.bootstrap_servers`",
    "compression.gzip.level": "`compression_level`, if `compression.type` is gzip",
    "compression.level": "`compression_level`, at most the highest level of `compression.type`",
    "compression.lz4.level": "`compression_level`, if `compression.type` is lz4",
    "compression.zstd.level": "`compression_level`, if `compression.type` is zstd",
    "interceptor.classes": "Python classes: `KafkaSettings.producer_interceptors`, `.consumer_interceptors`",
    "oauth_cb": "`sasl_oauthbearer_token`",
    "partitioner.class": "`partitioner`: the names of Java's own classes",
    "queue.buffering.max.kbytes": "`buffer_memory`, in bytes",
    "sasl.jaas.config": "`sasl_username`, `sasl_password` and others, by the login module",
    "sasl.login.callback.handler.class": "`sasl_oauthbearer_method`: Java's handler for OAUTHBEARER; "
    f"`sasl_mechanism` AWS_MSK_IAM: `{MSK_OAUTH_HANDLER}`; others are without effect if another setting has the login",
    "sasl.oauthbearer.config": "the argument of `oauth_cb`; with azure_imds, `query` for the endpoint's URL",
    "sasl.oauthbearer.jwt.retriever.class": "`sasl_oauthbearer_grant_type`, by the name of Java's own class",
    "sasl.oauthbearer.metadata.authentication.type": "azure_imds: `sasl_oauthbearer_metadata_authentication_type`",
    "ssl.keystore.type": "PEM: `ssl_certificate_location`; JKS, JCEKS and PKCS12: `ssl_keystore_location`",
    "ssl.truststore.type": "PEM: `ssl_ca_location`; JKS, JCEKS and PKCS12: `ssl_truststore_location`",
}
"""Settings that decide others, or need more than a change of type; for each, what it decides."""

LONGS: Final = frozenset(
    {
        "bootstrap.resolve.timeout.ms",
        "buffer.memory",
        "connections.max.idle.ms",
        "linger.ms",
        "max.block.ms",
        "metadata.max.age.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "partitioner.availability.timeout.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "socket.connection.setup.timeout.ms",
    }
)
"""Settings with 64 bits in Java; here a larger number than 32 bits hold becomes the largest: 24 days, or 2 GiB."""

MEANINGS: Final[Mapping[str, Mapping[int, int]]] = {
    "auto.commit.interval.ms": {0: INT32},
    "batch.size": {0: 1},
    "connections.max.idle.ms": {-1: INT32, 0: INT32},
    "delivery.timeout.ms": {0: INT32},
    "message.timeout.ms": {0: INT32},
    "topic.metadata.refresh.interval.ms": {-1: INT32, 0: INT32},
}
"""Numbers by which other clients turn something off, and the numbers that come nearest to that here."""

WITHOUT_CONSUMER: Final[Mapping[str, str]] = {"max.poll.records": "consumers have poll(max_records=...) instead"}
"""Settings that share consumers have, but consumers do not; for each, what consumers have instead."""

_JVM: Final = "it chooses a part of Java's TLS; this client uses OpenSSL"
_NEGOTIATED: Final = "the client negotiates versions with each broker"
_METRICS: Final = "metrics have two windows of 30 seconds, and cost nothing until they are read"
_CHECKED_BY_BROKER: Final = "brokers validate tokens; the client does not"
_TICKETS: Final = "the client uses the ticket of the system's cache, and starts no kinit"
_LOG: Final = "the client logs through Python's logging, to loggers below aiokafkawire"
_SERIALIZERS: Final = "serializers are arguments of producer() and consumer()"
_OBSERVERS: Final = "calls raise errors, and observers= and metrics() report the rest"
_QUEUE: Final = "the memory of fetched records is limited by fetch.max.bytes"
_BYTES: Final = "batches and buffers are limited by bytes: batch.size, buffer.memory"
_UNUSED: Final = "nothing here corresponds to it"
_REFRESHES: Final = "metadata is refreshed as errors require, with retry.backoff.ms"
_OFFSET_FILES: Final = "offsets are stored by brokers"

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "api.version.fallback.ms": _NEGOTIATED,
    "api.version.request": _NEGOTIATED,
    "auto.include.jmx.reporter": _METRICS,
    "batch.num.messages": _BYTES,
    "broker.address.ttl": "names are resolved for each connection",
    "broker.version.fallback": _NEGOTIATED,
    "buffer.memory.allocation.strategy": _UNUSED,
    "builtin.features": _UNUSED,
    "config.providers": "aiokafkawire.config.providers.resolved replaces references before settings are read",
    "consume.callback.max.messages": "records are read by poll() and iteration, not by callbacks",
    "coordinator.query.interval.ms": "coordinators are looked up as errors require",
    "debug": _LOG,
    "delivery.report.only.error": "each delivery that enqueue() returns can be awaited",
    "enable.random.seed": _UNUSED,
    "enabled_events": _OBSERVERS,
    "error_cb": _OBSERVERS,
    "fetch.error.backoff.ms": "failed fetches wait for retry.backoff.ms",
    "fetch.queue.backoff.ms": _QUEUE,
    "internal.termination.signal": _UNUSED,
    "internal.throw.on.fetch.stable.offset.unsupported": _UNUSED,
    "key.deserializer": _SERIALIZERS,
    "key.serializer": _SERIALIZERS,
    "log.connection.close": _LOG,
    "log.queue": _LOG,
    "log.thread.name": _LOG,
    "log_cb": _LOG,
    "log_level": _LOG,
    "logger": _LOG,
    "message.copy.max.bytes": _UNUSED,
    "metric.reporters": "aiokafkawire.prometheus and aiokafkawire.opentelemetry export metrics",
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "offset.store.path": _OFFSET_FILES,
    "offset.store.sync.interval.ms": _OFFSET_FILES,
    "opaque": _UNUSED,
    "produce.offset.report": "each delivery has its offset",
    "queue.buffering.backpressure.threshold": "batches are filled while requests are in flight",
    "queue.buffering.max.messages": _BYTES,
    "queued.max.messages.kbytes": _QUEUE,
    "queued.min.messages": _QUEUE,
    "reconnect.backoff.jitter.ms": "reconnect.backoff.ms is varied by a fifth",
    "sasl.kerberos.kinit.cmd": _TICKETS,
    "sasl.kerberos.min.time.before.relogin": _TICKETS,
    "sasl.kerberos.ticket.renew.jitter": _TICKETS,
    "sasl.kerberos.ticket.renew.window.factor": _TICKETS,
    "sasl.login.connect.timeout.ms": "a request for a token takes at most 10 s",
    "sasl.login.read.timeout.ms": "a request for a token takes at most 10 s",
    "sasl.oauthbearer.allow.unverified.audience": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.allow.unverified.issuer": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.clock.skew.seconds": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.expected.audience": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.expected.issuer": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwks.endpoint.url": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwt.validator.class": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.scope.claim.name": _CHECKED_BY_BROKER,
    "sasl.oauthbearer.sub.claim.name": _CHECKED_BY_BROKER,
    "security.providers": _JVM,
    "socket.blocking.max.ms": _UNUSED,
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms does not grow",
    "socket.max.fails": "a request that times out closes its connection",
    "socket.nagle.disable": "Nagle's algorithm is off",
    "ssl.ca.certificate.stores": "without ssl.ca.location the system's authorities are trusted",
    "ssl.keymanager.algorithm": _JVM,
    "ssl.protocol": _JVM,
    "ssl.provider": _JVM,
    "ssl.secure.random.implementation": _JVM,
    "ssl.trustmanager.algorithm": _JVM,
    "statistics.interval.ms": _METRICS,
    "stats_cb": _OBSERVERS,
    "sticky.partitioning.linger.ms": "the partition for records without a key changes with each full batch",
    "throttle_cb": _OBSERVERS,
    "topic.metadata.refresh.fast.cnt": _REFRESHES,
    "topic.metadata.refresh.fast.interval.ms": _REFRESHES,
    "topic.metadata.refresh.sparse": "the client asks for the topics in use only",
    "value.deserializer": _SERIALIZERS,
    "value.serializer": _SERIALIZERS,
}
"""Settings that mean nothing here, and why; ``KafkaSettings.ignored`` lists those that were given."""

_PROVIDERS: Final = "config.providers."  # Java's parameters of a provider follow, under names that the user chooses


def why_without_effect(key: str) -> str | None:
    """Return why the setting means nothing here; None if it is not such a setting."""
    return WITHOUT_EFFECT.get("config.providers" if key.startswith(_PROVIDERS) else key)


@attrs.frozen
class RefusedSetting:
    """A setting that asks for something that this client does not do."""

    why: str
    """The sentence after the setting's name: what it is, and what to do."""
    unless: tuple[str, ...] = ("",)
    """The values that ask for nothing, in any case: the default of other clients, or what this client does anyway."""

    def accepts(self, value: Any) -> bool:
        """Return whether the value asks for nothing."""
        given = "" if value is None else str(value).strip().lower()
        return any(given == known.lower() for known in self.unless)


def _refused(instead: str, *unless: str) -> RefusedSetting:
    return RefusedSetting(f"is not supported: {instead}", ("", *unless))


_CONTEXT: Final = _refused("pass ssl_context=, an ssl.SSLContext of your own, to Client")
_SOCKETS: Final = _refused("the client opens its sockets itself; set proxy or advertised_listeners_map of Client")
_PEM: Final = "give the certificate or key as PEM text: ssl.ca.pem, ssl.certificate.pem, ssl.key.pem"
KEYTAB: Final = "get the ticket by kinit before the program starts"
_KEYTAB: Final = _refused(KEYTAB, "kafkaclient")

REFUSED: Final[Mapping[str, RefusedSetting]] = {
    "background_event_cb": _refused("await the calls, and pass observers= to Client"),
    "broker.address.family": _refused("addresses of both families are tried; resolve the names yourself", "any"),
    "closesocket_cb": _SOCKETS,
    "connect_cb": _SOCKETS,
    "consume_cb": _refused("iterate over the consumer, or await poll()"),
    "default_topic_conf": _refused("give its settings beside the others"),
    "dr_cb": _refused("await the delivery that enqueue() or send_nowait() returns, or use its add_callback()"),
    "dr_msg_cb": _refused("await the delivery that enqueue() or send_nowait() returns, or use its add_callback()"),
    "enable.auto.offset.store": _refused("set enable.auto.commit=false, and await commit() with offsets", "true"),
    "enable.gapless.guarantee": _refused("stop at the first send() that raises an error", "false"),
    "enable.partition.eof": _refused("read to the end by Client.read_records()", "false"),
    "enable.sasl.oauthbearer.unsecure.jwt": _refused("set sasl_oauthbearer_token of Client to a function", "false"),
    "enable.ssl.certificate.verification": RefusedSetting(
        "cannot be turned off: set ssl.ca.location to the certificate of the authority that signed the broker's",
        ("", "true"),
    ),
    "exclude.internal.topics": _refused("patterns never match internal topics; name the topics", "true"),
    "group.protocol.type": _refused("members are consumers; remove it", "consumer"),
    "https.ca.location": _refused("set the environment variable SSL_CERT_FILE for the token endpoint", "probe"),
    "https.ca.pem": _refused("set the environment variable SSL_CERT_FILE for the token endpoint"),
    "interceptors": _refused("set interceptor.classes, or pass interceptors= to producer() and consumer()"),
    "msg_order_cmp": _refused("records are sent in the order of the calls; remove it"),
    "oauthbearer_token_refresh_cb": _refused("set oauth_cb, or sasl_oauthbearer_token of Client"),
    "offset.store.method": _refused("brokers store the offsets; remove it", "broker"),
    "offset_commit_cb": _refused("await commit(), or pass observers= to Client"),
    "open_cb": _SOCKETS,
    "partitioner_cb": _refused("set partitioner to a function"),
    "plugin.library.paths": _refused("librdkafka's plug-ins are no Python; pass interceptors= or observers="),
    "queuing.strategy": _refused("records are sent in the order of the calls; remove it", "fifo"),
    "rebalance_cb": _refused("call consumer.subscribe(*topics, on_assigned=..., on_revoked=..., on_lost=...)"),
    "resolve_cb": _SOCKETS,
    "sasl.client.callback.handler.class": _refused(
        "Java classes cannot be used; set sasl_username and others",
        f"{_MSK}.IAMClientCallbackHandler",
        MSK_OAUTH_HANDLER,
    ),
    "sasl.kerberos.keytab": _KEYTAB,
    "sasl.kerberos.principal": _KEYTAB,
    "sasl.login.class": _refused("Java classes cannot be used; set sasl_username and others"),
    "socket_cb": _SOCKETS,
    "ssl.certificate.verify_cb": _CONTEXT,
    "ssl.crl.location": _CONTEXT,
    "ssl.curves.list": _CONTEXT,
    "ssl.engine.factory.class": _CONTEXT,
    "ssl.engine.id": _refused("pass ssl_context=, an ssl.SSLContext of your own, to Client", "dynamic"),
    "ssl.engine.location": _CONTEXT,
    "ssl.providers": _CONTEXT,
    "ssl.sigalgs.list": _CONTEXT,
    "ssl_ca": _refused(_PEM),
    "ssl_certificate": _refused(_PEM),
    "ssl_engine_callback_data": _CONTEXT,
    "ssl_key": _refused(_PEM),
    "topic.blacklist": _refused("subscribe to a pattern that does not match these topics"),
    "transaction.two.phase.commit.enable": _refused("transactions end by the producer that began them", "false"),
}
"""Settings that ask for something that this client does not do."""

_DELIVERIES: Final = "await the delivery that enqueue() or send_nowait() returns, or use its add_callback()"
_SERIALIZER: Final = "is not supported here: pass {}= to {}(), a function or an object that knows the record"

CONFLUENT_CALLBACKS: Final[Mapping[str, str]] = {
    "dr_cb": f"is not supported: {_DELIVERIES}",
    "error_cb": "is not supported: calls raise errors, and health() and observers= report the rest",
    "key.deserializer": _SERIALIZER.format("key_deserializer", "consumer"),
    "key.serializer": _SERIALIZER.format("key_serializer", "producer"),
    "log_cb": "is not supported: the client logs through Python's logging, to loggers below aiokafkawire",
    "on_commit": "is not supported: await commit(), or pass interceptors= with on_commit() to consumer()",
    "on_delivery": f"is not supported: {_DELIVERIES}",
    "stats_cb": "is not supported: call metrics() of Client, which has the same figures, or export them",
    "throttle_cb": "is not supported: pass observers= to Client, or read the throttle times of metrics()",
    "value.deserializer": _SERIALIZER.format("value_deserializer", "consumer"),
    "value.serializer": _SERIALIZER.format("value_serializer", "producer"),
}
"""Functions and objects in confluent-kafka's configuration that this client does not call; for each, what it has
instead. What a text cannot be is not ignored, unlike the settings above."""
