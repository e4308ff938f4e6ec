"""Logs requests and responses at DEBUG: API, version, broker, correlation id and size."""

from functools import cache
from typing import Final

from ..event_log import EventLog
from ..protocol.api import ApiKey

__all__ = ("LOG", "log_answer", "log_request")

LOG: Final = EventLog("aiokafkawire.network")


def log_request(broker: str, frame: bytes) -> None:
    """Log a request; the first piece of its frame begins with its size, API key, version and correlation id."""
    api, version = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")
    number = int.from_bytes(frame[8:12], "big")
    message = "request %(correlation_id)d to %(broker)s: %(api)s v%(version)d, %(size)d bytes"
    size = int.from_bytes(frame[:4], "big")
    LOG.debug(message, correlation_id=number, broker=broker, api=_name(api), version=version, size=size)


def log_answer(broker: str, answer: type[object], version: int, frame: bytes) -> None:
    """Log the frame of a response, which begins with its correlation id."""
    name = answer.__name__.removesuffix("Response")
    number = int.from_bytes(frame[:4], "big")
    message = "answer %(correlation_id)d from %(broker)s: %(api)s v%(version)d, %(size)d bytes"
    LOG.debug(message, correlation_id=number, broker=broker, api=name, version=version, size=len(frame))


@cache
def _name(api: int) -> str:
    try:
        return ApiKey(api).name.title().replace("_", "")
    except ValueError:
        return f"API {api}"
