"""Names and values of attributes in OpenTelemetry's semantic conventions for messaging and for Kafka."""

from collections.abc import Iterable
from typing import Any, Final

from opentelemetry.trace import Span, Status, StatusCode

from ..error_codes import ErrorCode
from ..errors import BrokerError

__all__ = (
    "CLIENT_ID",
    "COUNT",
    "DESTINATION",
    "ERROR_TYPE",
    "GROUP",
    "KEY",
    "OFFSET",
    "OPERATION",
    "OPERATION_TYPE",
    "PARTITION",
    "SCHEMA_URL",
    "SERVER_ADDRESS",
    "SERVER_PORT",
    "SYSTEM",
    "TOMBSTONE",
    "common_place",
    "end_with_error",
    "error_type",
    "key_text",
    "set_error",
)

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.37.0"
SYSTEM: Final = "messaging.system"
OPERATION: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
CLIENT_ID: Final = "messaging.client.id"
GROUP: Final = "messaging.consumer.group.name"
COUNT: Final = "messaging.batch.message_count"
OFFSET: Final = "messaging.kafka.offset"
KEY: Final = "messaging.kafka.message.key"
TOMBSTONE: Final = "messaging.kafka.message.tombstone"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"
_MAX_KEY: Final = 256
"""The maximum number of a key's bytes in an attribute."""


def error_type(error: BaseException) -> str:
    """Return the name of Kafka's error code, or else of the exception's class."""
    if isinstance(error, BrokerError):
        try:
            return ErrorCode(error.code).name
        except ValueError:
            return f"error code {error.code}"
    return type(error).__qualname__


def set_error(span: Span, error: BaseException) -> None:
    """Give a span the error of its operation."""
    span.set_attribute(ERROR_TYPE, error_type(error))
    span.set_status(Status(StatusCode.ERROR, str(error)))


def end_with_error(span: Span, error: BaseException) -> None:
    """End a span whose operation has failed."""
    set_error(span, error)
    span.end()


def key_text(key: Any) -> str | None:
    """Return a key as text; None for keys that are no text, are long, or are null."""
    if isinstance(key, bytes) and len(key) <= _MAX_KEY:
        try:
            key = key.decode()
        except UnicodeDecodeError:
            return None
    return key if isinstance(key, str) and key.isprintable() and len(key) <= _MAX_KEY else None


def common_place(records: Iterable[Any]) -> tuple[str | None, int | None]:
    """Return the topic of these records, and their partition; None for what differs."""
    places = {(record.topic, record.partition) for record in records}
    topics = {topic for topic, _ in places}
    return next(iter(topics)) if len(topics) == 1 else None, next(iter(places))[1] if len(places) == 1 else None
