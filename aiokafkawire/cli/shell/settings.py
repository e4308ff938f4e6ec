"""The settings of a command: from its options, a properties file and the environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from ...config.properties import KafkaSettings, settings_from
from ...config.properties_parser import parse_properties
from ...config.property_names import ALIASES
from ...errors import ConfigError
from ..exit_status import MISSING, CommandFailed
from .shared_options import SharedOptions

__all__ = ("BOOTSTRAP", "CONFIG", "read_properties", "read_settings")

BOOTSTRAP: Final = "AIOKAFKAWIRE_BOOTSTRAP"
CONFIG: Final = "AIOKAFKAWIRE_CONFIG"
_SERVERS: Final = "bootstrap.servers"


def read_settings(options: SharedOptions, environment: Mapping[str, str]) -> KafkaSettings:
    """Return the settings for the client, its producers and its consumers.

    The command line wins over the environment: the bootstrap servers are those of ``--bootstrap``, ``-X``,
    ``--config``, AIOKAFKAWIRE_BOOTSTRAP or AIOKAFKAWIRE_CONFIG, in this order. A setting of ``-X`` replaces that of the
    file, and ``--timeout`` replaces the timeouts of both.

    Raises:
        CommandFailed: there are no bootstrap servers, the file cannot be read, or a setting is wrong (exit status 2).
    """
    path = options.config or environment.get(CONFIG)
    properties: dict[str, Any] = read_properties(path) if path else {}
    from_environment = environment.get(BOOTSTRAP)
    has_servers = any(value and ALIASES.get(key, key) == _SERVERS for key, value in properties.items())
    if from_environment and not (options.config and has_servers):
        _replace(properties, _SERVERS, from_environment)
    for setting in options.settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise CommandFailed(f"-X takes KEY=VALUE, got {setting!r}", MISSING)
        _replace(properties, key.strip(), value)
    if options.bootstrap:
        _replace(properties, _SERVERS, options.bootstrap)
    try:
        settings = settings_from(properties)
    except ConfigError as wrong:
        raise CommandFailed(str(wrong), MISSING) from None
    if not settings.bootstrap_servers:
        raise CommandFailed(
            f"which cluster? Use -b HOST:PORT, set {BOOTSTRAP}, or put {_SERVERS} into the file of --config", MISSING
        )
    return settings if options.timeout is None else _with_timeout(settings, options.timeout)


def _replace(properties: dict[str, Any], key: str, value: str) -> None:
    """Set a property in place of the one that is there under this or another name of the setting."""
    setting = ALIASES.get(key, key)
    for other in [name for name in properties if ALIASES.get(name, name) == setting]:
        del properties[other]
    properties[key] = value


def read_properties(path: str) -> dict[str, str]:
    """Return the settings in a .properties file.

    Raises:
        CommandFailed: the file cannot be read, or is no .properties file (exit status 2).
    """
    try:
        return parse_properties(Path(path).read_text("utf-8"))
    except OSError as error:
        hint = "; a setting is -X KEY=VALUE, and a topic's --topic-config KEY=VALUE" if "=" in path else ""
        raise CommandFailed(f"cannot read the settings in {path}: {error.strerror}{hint}", MISSING) from None
    except UnicodeDecodeError:
        raise CommandFailed(f"cannot read the settings in {path}: the file is not UTF-8 text", MISSING) from None
    except ConfigError as wrong:
        raise CommandFailed(f"{path}: {wrong}", MISSING) from None


def _with_timeout(settings: KafkaSettings, seconds: float) -> KafkaSettings:
    """Return the settings with a time limit for connecting, for requests with their retries, and for deliveries."""
    milliseconds = max(1, round(seconds * 1000))
    return attrs.evolve(
        settings,
        client={
            **settings.client,
            "bootstrap_timeout_ms": milliseconds,
            "default_api_timeout_ms": milliseconds,
        },
        producer={
            **settings.producer,
            "max_block_ms": milliseconds,
            "delivery_timeout_ms": milliseconds,
        },
    )
