"""Exceptions by which request handlers answer with an error code and a message, or disconnect the client."""

from ...errors import ErrorCode

__all__ = ("Disconnect", "ApiError")


class ApiError(Exception):
    """The error code that answers a request or a part of it.

    ``message`` is sent with the code, and is None if Kafka sends none; ``reason`` then explains the error in the log.
    ``record_errors`` are the index and message of each invalid record (KIP-467).
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        *,
        reason: str | None = None,
        record_errors: tuple[tuple[int, str], ...] = (),
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.reason = reason
        self.record_errors = record_errors

    def __str__(self) -> str:
        message = self.message or self.reason
        return f"{self.code.name}: {message}" if message else self.code.name


class Disconnect(Exception):
    """An error that disconnects the client: the request is unreadable, or its response has no field for an error."""
