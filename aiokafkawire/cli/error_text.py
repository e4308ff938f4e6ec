"""Writes errors for people: the name of the error once, and one plain sentence."""

import os
import re
import sys
from typing import Final

from ..error_codes import ErrorCode
from ..errors import BrokerError, KafkaError, UnknownBrokerError
from ..types import TopicPartition
from .shell.partition_names import partition_text
from .shell.safe_text import safe_text

__all__ = ("error_text", "one_line", "reason_text", "resource_text")

_NESTED: Final = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
_INTERNALS: Final = re.compile(rf"(?:Request )?\b\w+\((?:processor|apiKey|clientId)={_NESTED}\)")
"""How Kafka's messages show its own objects: their text says nothing to users, and is long."""
_ERRNO_OF_RESOLVER: Final = re.compile(r"\[Errno -\d+\] ")
_ERRNO: Final = re.compile(r"\[Errno (\d+)\] (?:Connect call failed|[^;:]*)(?: \('[^()]*\))?")
_TWICE: Final = re.compile(r"(\S+): (cannot connect to \1)\b")


def error_text(error: BaseException) -> str:
    """Return the line about an error: its name, and what it says without repetitions."""
    text = str(error)
    if isinstance(error, BrokerError) and not isinstance(error, UnknownBrokerError):
        what, code, meaning = text.partition(f"{ErrorCode(error.code).name}: ")
        if code:
            # The broker's own message says more than the meaning of the code.
            text = what.removesuffix(": ") if error.broker_message else f"{what}{meaning}"
    if isinstance(error, KafkaError | OSError):
        text = reason_text(text)
    return f"{type(error).__name__}: {one_line(text).removesuffix('.')}"


def reason_text(text: str) -> str:
    """Return a message without what the system, Python and Kafka add for themselves."""
    text = _ERRNO_OF_RESOLVER.sub("", text)
    text = _ERRNO.sub(lambda found: os.strerror(int(found[1])).lower(), text)
    return _TWICE.sub(r"\2", _INTERNALS.sub("the request", text))


def one_line(text: object) -> str:
    """Return the text in one line, without characters that a terminal obeys."""
    line = " ".join(str(text).split())
    return line if line.isprintable() else safe_text(line, sys.maxsize)


def resource_text(resource: object) -> str:
    """Return the name of what an error is about."""
    return partition_text(resource) if isinstance(resource, TopicPartition) else str(resource)
