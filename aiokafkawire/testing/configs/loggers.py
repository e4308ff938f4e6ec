"""The loggers of a broker and their levels, which requests can change (KIP-412); the levels have no effect here."""

from collections.abc import Sequence
from typing import Final

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .changes import ConfigChange, ConfigOperation
from .checks import broker_id
from .configs import Configs
from .types import ConfigKind

__all__ = ("alter_levels", "log_levels")

ROOT: Final = "root"
_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
_LOGGERS: Final = (ROOT, "kafka", "org.apache.kafka")


def log_levels(settings: Configs, node: int) -> dict[str, str]:
    """Return the level of each of a broker's loggers: its own, or the root logger's."""
    own = settings.own(ConfigKind.BROKER_LOGGER, str(node))
    return {logger: own.get(logger) or own.get(ROOT) or "INFO" for logger in _LOGGERS}


def alter_levels(settings: Configs, node: int, name: str, changes: Sequence[ConfigChange], validate_only: bool) -> None:
    """Apply all changes to the levels of a broker's loggers; with ``validate_only`` only check the changes.

    Raises:
        ApiError: one change is invalid; then none is applied.
    """
    number = broker_id(name)
    if number is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if number != node:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node}, but received {name}")
    levels = settings.own(ConfigKind.BROKER_LOGGER, name)
    for logger, operation, level in changes:
        if operation not in tuple(ConfigOperation):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
            fault = f"{ConfigOperation(operation).name} operation is not allowed for the BROKER_LOGGER resource"
            raise ApiError(ErrorCode.INVALID_REQUEST, fault)
        if logger not in _LOGGERS:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {logger} does not exist!")
        if operation == ConfigOperation.DELETE:
            if logger == ROOT:
                fault = "Removing the log level of the root logger is not allowed"
                raise ApiError(ErrorCode.INVALID_REQUEST, fault)
            levels.pop(logger, None)
        elif level not in _LEVELS:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
                f"Valid log levels are {', '.join(_LEVELS)}",
            )
        else:
            levels[logger] = level or ""
    if not validate_only:
        settings.replace(ConfigKind.BROKER_LOGGER, str(node), levels)
