"""Reads the configuration dict of confluent-kafka."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from ..errors import ConfigError
from ..log_forwarding import forward_log
from .properties import KafkaSettings, settings_from
from .property_names import CONFLUENT_CALLBACKS

__all__ = ("KEPT_DEFAULTS", "from_confluent")

KEPT_DEFAULTS: Final[Mapping[str, str]] = {"isolation.level": "read_committed", "partitioner": "consistent_random"}
"""librdkafka's defaults that decide which records are read, and where they are written: those of Java differ."""

_TOPIC_SETTINGS: Final = "default.topic.config"
_LOGGER: Final = "logger"
_ASK_FOR_NOTHING: Final = {"ssl.ca.location": "probe"}
"""Values of librdkafka that leave a setting out: the system's authorities."""


def from_confluent(config: Mapping[str, Any]) -> KafkaSettings:
    """Read the dict that confluent-kafka's ``Producer``, ``Consumer`` and ``AdminClient`` take.

    The names and values are those of :func:`~aiokafkawire.config.properties.settings_from`, and beside them those that
    confluent-kafka adds. Where the dict does not say otherwise, librdkafka's defaults of ``partitioner`` and
    ``isolation.level`` are kept, so that keys stay in their partitions, and aborted records are left out.

    Args:
        config: the dict. A value of None counts as not given. ``oauth_cb`` becomes ``sasl_oauthbearer_token``.
            The handlers of ``logger`` get the log of all clients in the process, too.

    Returns:
        The arguments for a client, its producers and its consumers, as in
        ``Client(settings.bootstrap_servers, **settings.client)``.

    Raises:
        ConfigError: a key is unknown, or asks for something that this client does not do, or a value is invalid. A
            callback is refused, and the message names what this client has instead.
    """
    if not isinstance(config, Mapping):
        raise ConfigError(f"config must be a mapping, as confluent-kafka takes it, not {type(config).__name__}")
    given = {key: value for key, value in _flat(config).items() if value is not None}
    for key in given:
        if key in CONFLUENT_CALLBACKS:
            raise ConfigError(f"{key} {CONFLUENT_CALLBACKS[key]}")
    logger = given.pop(_LOGGER, None)
    if logger is not None and not isinstance(logger, logging.Logger):
        raise ConfigError(f"logger must be a logging.Logger, not {type(logger).__name__}")
    settings = settings_from({**KEPT_DEFAULTS, **_texts(given)})
    if logger is not None:
        forward_log(logger)
    return settings


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with those of topics beside the others."""
    topic_settings = config.get(_TOPIC_SETTINGS) or {}
    if not isinstance(topic_settings, Mapping):
        raise ConfigError(f"{_TOPIC_SETTINGS} must be a mapping, not {type(topic_settings).__name__}")
    return {**{key: value for key, value in config.items() if key != _TOPIC_SETTINGS}, **topic_settings}


def _texts(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, with numbers and booleans as text, as confluent-kafka gives them to librdkafka."""
    texts = {key: str(value) if isinstance(value, bool | int | float) else value for key, value in given.items()}
    return {key: value for key, value in texts.items() if _ASK_FOR_NOTHING.get(key) != value}
