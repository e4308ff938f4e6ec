"""Exceptions that request handlers raise to answer with an error code and a message, or to disconnect the client."""

from ...errors import ErrorCode

__all__ = ("Disconnect", "ApiError")


class ApiError(Exception):
    """An error that the broker returns for a request, or for one part of it such as a partition.

    ``message`` is sent with the code. It is None if Kafka sends no message; ``reason`` then explains the error in the
    broker's log. ``record_errors`` has the index in the batch and the message of each invalid record (KIP-467).
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
