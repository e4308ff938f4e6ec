"""What ``kafka.*`` options say: Kafka's property names and texts, as this client's settings."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from ..config import ClientOptions, ConsumerOptions, ProducerOptions
from ..errors import ConfigError

__all__ = ("Settings", "read_settings", "write_settings")

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
_SECURITY: Final = ("security.", "sasl.", "ssl.")


@attrs.frozen
class Settings:
    """Whom to connect to and how: all of it is plain data, for it is pickled for every task."""

    bootstrap_servers: str
    client: ClientOptions
    consumer: ConsumerOptions
    producer: ProducerOptions


def read_settings(options: Mapping[str, str]) -> Settings:
    """The settings of a source. ``options`` are those that begin with ``kafka.``, others are passed over.

    Raises:
        ConfigError: ``kafka.bootstrap.servers`` is missing, or an option is refused, unknown, or no such value.
    """
    return _settings(options, _REFUSED_READING, {**_hints(ClientOptions), **_hints(ConsumerOptions)})


def write_settings(options: Mapping[str, str]) -> Settings:
    """The settings of a sink. Raises as :func:`read_settings`."""
    return _settings(options, _REFUSED_WRITING, {**_hints(ClientOptions), **_hints(ProducerOptions)})


def _settings(options: Mapping[str, str], refused: Mapping[str, str], hints: Mapping[str, Any]) -> Settings:
    given = {key.lower()[len(_PREFIX) :]: text for key, text in options.items() if key.lower().startswith(_PREFIX)}
    for name, why in refused.items():
        if name in given:
            raise ConfigError(f"kafka.{name} is not supported: {why}")
    servers = given.pop("bootstrap.servers", None)
    if not servers:
        raise ConfigError("the option kafka.bootstrap.servers is needed, such as 'host1:9092,host2:9092'")
    if given.get("security.protocol", "").upper() == "PLAINTEXT":
        del given["security.protocol"]
    read = {name: text for name, text in given.items() if name not in _OF_NO_MEANING}
    unknown = sorted(name for name in read if _field(name) not in hints)
    if unknown:
        raise _unknown(unknown, hints)
    values = {_field(name): _value(name, text, hints[_field(name)]) for name, text in read.items()}
    # The source assigns partitions by hand, and nothing is committed: a group would mean nothing.
    values.pop("group_id", None)
    return Settings(
        servers,
        ClientOptions(**_of(values, ClientOptions)),  # type: ignore[typeddict-item]
        ConsumerOptions(**_of(values, ConsumerOptions)),  # type: ignore[typeddict-item]
        ProducerOptions(**_of(values, ProducerOptions)),  # type: ignore[typeddict-item]
    )


def _field(name: str) -> str:
    return name.replace(".", "_").replace("-", "_")


def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _of(values: Mapping[str, Any], kind: type) -> dict[str, Any]:
    known = _hints(kind)
    # A consumer's or producer's request timeout is its client's, unless it has one of its own.
    return {name: value for name, value in values.items() if name in known}


def _unknown(names: list[str], hints: Mapping[str, Any]) -> ConfigError:
    if any(name.startswith(_SECURITY) for name in names):
        secure = ", ".join(f"kafka.{name}" for name in names if name.startswith(_SECURITY))
        return ConfigError(
            f"{secure}: this client does not speak TLS or SASL; only security.protocol=PLAINTEXT is known"
        )
    near = get_close_matches(_field(names[0]), list(hints), n=1)
    hint = f"; did you mean kafka.{near[0].replace('_', '.')}?" if near else ""
    return ConfigError(f"unknown options {', '.join(f'kafka.{name}' for name in names)}{hint}")


def _value(name: str, text: str, hint: Any) -> Any:
    """Read the text as what the setting is."""
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if bool in choices:
        if text.strip().lower() not in ("true", "false"):
            raise ConfigError(f"kafka.{name} must be true or false, got {text!r}")
        return text.strip().lower() == "true"
    if int in choices:
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"kafka.{name} must be a whole number, got {text!r}") from None
    named = [one for choice in choices if get_origin(choice) is Literal for one in get_args(choice)]
    for one in named:
        if str(one) == text:
            return one
    if "partition.assignment.strategy" in name:
        return tuple(part.strip() for part in text.split(","))
    return text
