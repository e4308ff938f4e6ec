"""Logs requests and responses at DEBUG: API, version, broker, correlation id and size."""

import logging
from functools import cache
from typing import Final

from ..protocol.api import ApiKey

__all__ = ("LOG", "log_answer", "log_request")

LOG: Final = logging.getLogger("aiokafkawire.network")


def log_request(broker: str, frame: bytes) -> None:
    """Log the frame of a request, which begins with its size, API key, version and correlation id."""
    api, version = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")
    number = int.from_bytes(frame[8:12], "big")
    LOG.debug("request %d to %s: %s v%d, %d bytes", number, broker, _name(api), version, len(frame) - 4)


def log_answer(broker: str, answer: type[object], version: int, frame: bytes) -> None:
    """Log the frame of a response, which begins with its correlation id."""
    name = answer.__name__.removesuffix("Response")
    LOG.debug(
        "answer %d from %s: %s v%d, %d bytes", int.from_bytes(frame[:4], "big"), broker, name, version, len(frame)
    )


@cache
def _name(api: int) -> str:
    try:
        return ApiKey(api).name.title().replace("_", "")
    except ValueError:
        return f"API {api}"
