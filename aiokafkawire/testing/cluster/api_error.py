"""Exceptions by which request handlers answer with an error code and a message, or disconnect the client."""

from ...errors import ErrorCode

__all__ = ("Disconnect", "ApiError")


class ApiError(Exception):
    """An error whose code answers a request, or one part of a request such as a partition.

    ``message`` is sent with the code, None if Kafka sends no message; ``reason`` then explains the error in the log.
    ``record_errors`` has the index in the batch and the message of each invalid record (KIP-467).
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
    """An error after which the broker closes the connection without a response, such as an unreadable request."""
