"""The conversion of ``kafka.*`` options, with TLS and SASL, from Kafka's properties to this client's settings."""

from collections.abc import Mapping
from typing import Final

from ..config.properties import KafkaSettings, settings_from
from ..errors import ConfigError

__all__ = ("read_settings", "write_settings")

_PREFIX: Final = "kafka."
_INSTEAD: Final = "use DataFrame operations on the column instead"
_REFUSED_READING: Final = {
    "auto.offset.reset": "the option startingOffsets says where a query begins; Spark keeps the query's offsets",
    "key.deserializer": f"keys are read as bytes; {_INSTEAD}",
    "value.deserializer": f"values are read as bytes; {_INSTEAD}",
    "enable.auto.commit": "the source commits nothing: Spark keeps the offsets; a listener may commit them to a group",
    "interceptor.classes": "an interceptor that changes keys or values may break the query",
}
_REFUSED_WRITING: Final = {
    "key.serializer": f"keys are written as they are, bytes or strings; {_INSTEAD}",
    "value.serializer": f"values are written as they are, bytes or strings; {_INSTEAD}",
    "interceptor.classes": "records are written as they are",
    "transactional.id": "the sink makes no transactions; ExactlyOnceSink does, and takes it as an argument",
}
# Settings of Java's client that this client does not need, and that do not change the records.
_IGNORED: Final = frozenset(
    {
        "auto.include.jmx.reporter",
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
    """Return the settings of a source from the options that begin with ``kafka.``; ignore other options.

    The settings are plain data, which is pickled for every task; their repr shows no secret.

    Raises:
        ConfigError: ``kafka.bootstrap.servers`` is missing, or an option is not supported, unknown, or invalid.
    """
    return _settings(options, _REFUSED_READING)


def write_settings(options: Mapping[str, str]) -> KafkaSettings:
    """Return the settings of a sink. Raise as :func:`read_settings`."""
    return _settings(options, _REFUSED_WRITING)


def _settings(options: Mapping[str, str], refused: Mapping[str, str]) -> KafkaSettings:
    given = {key.lower()[len(_PREFIX) :]: text for key, text in options.items() if key.lower().startswith(_PREFIX)}
    for name, why in refused.items():
        if name in given:
            raise ConfigError(f"kafka.{name} is not supported: {why}")
    # The source assigns partitions itself and commits no offsets, so it does not use the group.
    used = {name: text for name, text in given.items() if name not in _IGNORED and name != "group.id"}
    try:
        settings = settings_from(used)
    except ConfigError as error:
        raise ConfigError(f"in the options kafka.*: {error}") from error
    if not settings.bootstrap_servers:
        raise ConfigError("the option kafka.bootstrap.servers is required, such as 'host1:9092,host2:9092'")
    return settings
