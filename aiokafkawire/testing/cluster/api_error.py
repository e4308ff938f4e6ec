"""Why a broker does not do what it was asked: an error code, and a sentence for whoever reads the answer."""

from ...errors import ErrorCode

__all__ = ("Disconnect", "ApiError")


class ApiError(Exception):
    """The answer to a part of a request is an error code.

    ``message`` goes into the answer, and is None where Kafka gives none; ``reason`` then says more, for the log.
    ``record_errors`` are the records at fault, as index and message (KIP-467).
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
        said = self.message or self.reason
        return f"{self.code.name}: {said}" if said else self.code.name


class Disconnect(Exception):
    """The only answer is to hang up: the request cannot be understood, or has no room for an error."""
