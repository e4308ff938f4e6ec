"""The resources that have configs, with aiokafka's names."""

from collections.abc import Mapping
from enum import IntEnum

__all__ = ("ConfigResource", "ConfigResourceType")


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
        configs: Mapping[str, str | None] | None = None,
    ) -> None:
        if not isinstance(resource_type, ConfigResourceType):
            resource_type = ConfigResourceType[str(resource_type).upper()]
        self.resource_type = resource_type
        self.name = name
        self.configs = configs
