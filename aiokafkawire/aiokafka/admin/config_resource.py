"""The resources that have configs, with aiokafka's names."""

from collections.abc import Mapping
from enum import IntEnum

__all__ = ("ConfigResource", "ConfigResourceType", "as_text")


class ConfigResourceType(IntEnum):
    """The kinds of resources with configs."""

    BROKER = 4
    TOPIC = 2


class ConfigResource:
    """A topic or a broker.

    Args:
        resource_type: a ConfigResourceType, or its name.
        name: the topic's name, or the broker's id.
        configs: for ``alter_configs``, the new values; for ``describe_configs``, a mapping with the names to describe,
            or None for all.
    """

    def __init__(
        self,
        resource_type: ConfigResourceType | str,
        name: str | int,
        configs: Mapping[str, str | float | None] | None = None,
    ) -> None:
        if not isinstance(resource_type, ConfigResourceType):
            resource_type = ConfigResourceType[str(resource_type).upper()]
        self.resource_type = resource_type
        self.name = name
        self.configs = configs


def as_text(value: str | float | None) -> str | None:
    """Return the value of a config as the protocol has it; it may be a number, or True or False."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
