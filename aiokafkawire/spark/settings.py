"""What ``kafka.*`` options say: Kafka's property names and texts, TLS and SASL included, as this client's settings."""

from collections.abc import Mapping
from typing import Final

from ..config.properties import KafkaSettings, settings_from
from ..errors import ConfigError

__all__ = ("read_settings", "write_settings")

_PREFIX: Final = "kafka."
_INSTEAD: Final = "use DataFrame operations on the column instead"
_REFUSED_READING: Final = {
    "auto.offset.reset": "the option startingOffsets says where a query begins; Spark keeps track of what it has read",
    "key.deserializer": f"keys are read as bytes; {_INSTEAD}",
    "value.deserializer": f"values are read as bytes; {_INSTEAD}",
    "enable.auto.commit": "the source commits nothing: Spark keeps the offsets; a listener may commit them to a group",
    "interceptor.classes": "keys and values are read as bytes, and what changes them may break the query",
}
_REFUSED_WRITING: Final = {
    "key.serializer": f"keys are written as they are, bytes or strings; {_INSTEAD}",
    "value.serializer": f"values are written as they are, bytes or strings; {_INSTEAD}",
    "interceptor.classes": "records are written as they are",
    "transactional.id": "the sink makes no transactions; ExactlyOnceSink does, and takes it as an argument",
}
# They say how Java's client does what this one does otherwise, and change nothing of what is read or written.
_OF_NO_MEANING: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "default.list.key.serde.inner",
        "enable.metrics.push",
        "exclude.internal.topics",
        "max.poll.records",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.jitter",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
    }
)


def read_settings(options: Mapping[str, str]) -> KafkaSettings:
    """The settings of a source. ``options`` are those that begin with ``kafka.``, others are passed over.

    All of it is plain data, for it is pickled for every task; no repr of it shows a secret.

    Raises:
        ConfigError: ``kafka.bootstrap.servers`` is missing, or an option is refused, unknown, or no such value.
    """
    return _settings(options, _REFUSED_READING)


def write_settings(options: Mapping[str, str]) -> KafkaSettings:
    """The settings of a sink. Raises as :func:`read_settings`."""
    return _settings(options, _REFUSED_WRITING)


def _settings(options: Mapping[str, str], refused: Mapping[str, str]) -> KafkaSettings:
    given = {key.lower()[len(_PREFIX) :]: text for key, text in options.items() if key.lower().startswith(_PREFIX)}
    for name, why in refused.items():
        if name in given:
            raise ConfigError(f"kafka.{name} is not supported: {why}")
    if not given.get("bootstrap.servers"):
        raise ConfigError("the option kafka.bootstrap.servers is needed, such as 'host1:9092,host2:9092'")
    # The source assigns partitions by hand, and nothing is committed: a group would mean nothing.
    meant = {name: text for name, text in given.items() if name not in _OF_NO_MEANING and name != "group.id"}
    try:
        return settings_from(meant)
    except ConfigError as error:
        raise ConfigError(f"among the options kafka.*: {error}") from error
