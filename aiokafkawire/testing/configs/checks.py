"""Kafka's checks of settings: unknown names, values out of range, and contradictory pairs."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .broker_configs import BROKER_RATES
from .configs import ALL_BROKERS, Configs
from .topic_configs import CLIENT_METRICS_CONFIGS

__all__ = (
    "DEAD_LETTER_TOPIC",
    "check_broker_configs",
    "check_group_configs",
    "check_metrics_configs",
    "check_min_insync",
    "check_topic_configs",
)

_ONLY_PER_LISTENER: Final = ("ssl.key", "ssl.trust")
_THREADS: Final = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
_MATCHES: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_MIN_ISR: Final = "min.insync.replicas"
DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
"""The topic for the records that a share group could not process (KIP-1191)."""


def broker_id(name: str) -> int | None:
    """Parse the name of a broker resource as a broker id; return None if the name is not an int32."""
    found = re.fullmatch(r"([+-]?)0*(\d{1,10})", name)  # int() raises for thousands of digits
    number = int("".join(found.groups())) if found else 2**31
    return number if -(2**31) <= number < 2**31 else None


def check_topic_configs(settings: Configs, configs: Mapping[str, str]) -> None:
    """Check the settings of a topic.

    Raises:
        ApiError: INVALID_CONFIG.
    """
    definitions = settings.tables.topics
    for name in sorted(configs):
        if name not in definitions:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    parsed = {name: definition.parse(configs[name]) for name, definition in definitions.items() if name in configs}
    least, most = (
        int(parsed.get(name, definitions[name].default or "0"))
        for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
    )
    if least > most:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
        )
    if parsed.get("remote.storage.enable") == "true":
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def check_group_configs(settings: Configs, group: str, configs: Mapping[str, str]) -> None:
    """Check the settings of a group against the limits that the brokers' settings define.

    Raises:
        ApiError: INVALID_REQUEST, INVALID_CONFIG.
    """
    if not group:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    definitions = settings.tables.groups
    for name in sorted(configs):
        if name not in definitions:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    parsed = {name: definition.parse(configs[name]) for name, definition in definitions.items() if name in configs}
    if parsed.get(DEAD_LETTER_TOPIC, "").startswith("__"):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'")
    for name, value in parsed.items():
        family, _, rest = name.partition(".")
        for word, least in (("min", True), ("max", False)):
            limit = f"group.{family}.{word}.{rest.removeprefix('num.')}"
            found = settings.synonyms(limit)
            if found and (int(value) < int(found[0].value or 0) if least else int(value) > int(found[0].value or 0)):
                than = "greater than or equal to" if least else "less than or equal to"
                raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} must be {than} {limit}")


def check_metrics_configs(subscription: str, configs: Mapping[str, str]) -> None:
    """Check the settings of a client metrics subscription (KIP-714).

    Raises:
        ApiError: INVALID_REQUEST, INVALID_CONFIG.
    """
    if not subscription:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for name, value in configs.items():
        if name not in CLIENT_METRICS_CONFIGS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
        parsed = CLIENT_METRICS_CONFIGS[name].parse(value)
        if name == "interval.ms" and not 100 <= int(parsed) <= 3_600_000:
            fault = f"Invalid value {parsed} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
            raise ApiError(ErrorCode.INVALID_REQUEST, fault)
        for pattern in parsed.split(",") if name == "match" and parsed else ():
            key, _, expression = pattern.partition("=")
            if key.strip() not in _MATCHES or not _is_pattern(expression):
                raise ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def _is_pattern(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True


def check_broker_configs(settings: Configs, node: int, name: str, configs: Mapping[str, str]) -> None:
    """Check the dynamic settings of the broker ``name``, or of ``ALL_BROKERS`` (KIP-226).

    Raises:
        ApiError: INVALID_REQUEST.
    """
    every = {**settings.tables.brokers, **BROKER_RATES}
    known = {setting: every[setting] for setting in configs if setting in every}
    _none_of(
        [setting for setting, definition in known.items() if definition.dynamic == "-"],
        "Cannot update these configs dynamically",
    )
    _none_of(
        [key for key in known if key.startswith(_ONLY_PER_LISTENER) and key != "ssl.keymanager.algorithm"],
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    if name == ALL_BROKERS:
        _none_of(
            [setting for setting, definition in known.items() if definition.dynamic == "broker"],
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    for setting, definition in known.items():
        try:
            parsed = definition.parse(configs[setting])
        except ApiError as refused:
            raise ApiError(ErrorCode.INVALID_REQUEST, refused.message) from None
        if setting in _THREADS:
            now = settings.synonyms(setting, node)[0].value or "1"
            _check_threads(setting, int(now), int(parsed))


def _check_threads(name: str, now: int, value: int) -> None:
    if value > 2 * now:
        fault = f"value should not be greater than double the current value {now}"
    elif value < now // 2:
        fault = f"value should be at least half the current value {now}"
    else:
        return
    raise ApiError(
        ErrorCode.INVALID_REQUEST,
        "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed "
        f"for {name}={value}, {fault} for configuration Invalid dynamic configuration",
    )


def _none_of(names: Sequence[str], fault: str) -> None:
    if names:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{fault}: [{', '.join(names)}]")


def check_min_insync(name: str, before: Mapping[str, str], after: Mapping[str, str], touched: Sequence[str]) -> None:
    """Check that ``min.insync.replicas`` is changed only for all brokers together, and never removed (KIP-966).

    ``name`` is that of the changed resource, ``touched`` are the names of the changed settings.

    Raises:
        ApiError: INVALID_CONFIG.
    """
    if name != ALL_BROKERS and _MIN_ISR in touched:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled.")
    if name == ALL_BROKERS and _MIN_ISR in before and _MIN_ISR not in after:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled.")
