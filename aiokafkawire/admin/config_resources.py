"""The resources that have configs (KIP-133), their configs, and the changes of configs that users ask for."""

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeAlias

import attrs

from .._lazy_classes import frozen
from ..argument_checks import INT32, check_text, is_integer, shown
from ..errors import UsageError
from ..types import check_group_id, check_topic_name

__all__ = (
    "ConfigChanges",
    "ConfigEntry",
    "ConfigOp",
    "ConfigOpType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
)


class ConfigResourceType(IntEnum):
    """The type of a resource that has configs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@frozen
class ConfigResource:
    """A resource that has configs, such as ``ConfigResource.topic("orders")``."""

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        """Return the resource of a topic. Raises UsageError if the name is not valid."""
        check_topic_name(name)
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int) -> "ConfigResource":
        """Return the resource of a broker. Raises UsageError if the id is not valid."""
        return cls(ConfigResourceType.BROKER, _node_name(node_id))

    @classmethod
    def all_brokers(cls) -> "ConfigResource":
        """Return the resource of the defaults that all brokers of the cluster share (KIP-226)."""
        return cls(ConfigResourceType.BROKER, "")

    @classmethod
    def broker_logger(cls, node_id: int) -> "ConfigResource":
        """Return the resource of a broker's log levels (KIP-412). Raises UsageError if the id is not valid."""
        return cls(ConfigResourceType.BROKER_LOGGER, _node_name(node_id))

    @classmethod
    def group(cls, group_id: str) -> "ConfigResource":
        """Return the resource of a consumer, share or streams group (KIP-848). Raises UsageError for a wrong id."""
        check_group_id(group_id)
        return cls(ConfigResourceType.GROUP, group_id)

    @classmethod
    def client_metrics(cls, name: str) -> "ConfigResource":
        """Return the resource of a subscription to clients' metrics (KIP-714). Raises UsageError for a wrong name."""
        check_text("the name of a subscription to metrics", name)
        return cls(ConfigResourceType.CLIENT_METRICS, name)

    @property
    def node_id(self) -> int | None:
        """The broker that this resource belongs to; None if any broker knows it."""
        is_of_broker = self.type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
        return int(self.name) if is_of_broker and self.name else None

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        if self.type is ConfigResourceType.BROKER:
            return f"broker {self.name}" if self.name else "all brokers"
        return f"{kind} {self.name!r}"


def _node_name(node_id: object) -> str:
    if not is_integer(node_id, 0, INT32):
        raise UsageError(f"a broker's id must be an integer from 0 to {INT32}, got {shown(node_id)}")
    return str(node_id)


class ConfigSource(IntEnum):
    """The source of a config's value (KIP-226)."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


@frozen
class ConfigSynonym:
    """A config from which another one may take its value, such as the brokers' default of a topic's config."""

    name: str
    value: str | None
    source: ConfigSource


@frozen
class ConfigEntry:
    """A config of a resource.

    ``value`` is the effective value, as text; None if the config has none, or if it ``is_sensitive``, such as a
    password. ``source`` says where the value was set; no request can change a config that ``is_read_only``. ``type`` is
    the type of the value, such as "long" or "list" (KIP-569; None from brokers before 2.6). ``synonyms`` are the
    sources of the value, the one in effect first, and ``documentation`` is the brokers' text about the config; both are
    empty unless requested.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False
    is_read_only: bool = False
    type: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether the value is the default of Kafka, which is in effect where no value is set."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class ConfigOpType(IntEnum):
    """The operation of a change of a config (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@frozen
class ConfigOp:
    """A change of a config: a new value, back to the default, or other items in a list. Its repr hides the value."""

    type: ConfigOpType
    value: str | None = attrs.field(default=None, repr=False)

    @classmethod
    def set(cls, value: str) -> "ConfigOp":
        """Return the change to another value; a string alone means the same."""
        return cls(ConfigOpType.SET, value)

    @classmethod
    def delete(cls) -> "ConfigOp":
        """Return the change back to the default; None means the same."""
        return cls(ConfigOpType.DELETE)

    @classmethod
    def append(cls, value: str) -> "ConfigOp":
        """Return the change that adds items, separated by commas, to a list such as ``cleanup.policy``."""
        return cls(ConfigOpType.APPEND, value)

    @classmethod
    def subtract(cls, value: str) -> "ConfigOp":
        """Return the change that removes items, separated by commas, from a list."""
        return cls(ConfigOpType.SUBTRACT, value)


ConfigChanges: TypeAlias = Mapping[ConfigResource, Mapping[str, str | ConfigOp | None]]
"""The changes of the configs of resources, by the configs' names; None means back to the default."""
