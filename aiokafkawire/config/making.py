"""Makes config objects from keyword arguments."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

import attrs

from ..errors import ConfigError
from ..other_clients_names import setting_hint
from .client import ClientConfig
from .consumer import ConsumerConfig
from .producer import ProducerConfig

__all__ = ("make_config",)

C = TypeVar("C")


def make_config(cls: type[C], options: Mapping[str, Any]) -> C:
    """Build a config object of class ``cls`` from keyword arguments.

    Raises:
        ConfigError: a name is unknown (the message suggests a known name), or a value is invalid.
    """
    known = [attribute.name for attribute in attrs.fields(cast("Any", cls))]
    for name in options:
        if name not in known:
            others = {config.__name__: [field.name for field in attrs.fields(config)] for config in _CONFIGS}
            raise ConfigError(f"unknown setting {name!r}: {setting_hint(cls.__name__, name, known, others)}")
    return cls(**options)


_CONFIGS: Final[tuple[type, ...]] = (ClientConfig, ProducerConfig, ConsumerConfig)
