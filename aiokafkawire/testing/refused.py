"""Why a broker does not do what it was asked: an error code, and a sentence for whoever reads the answer."""

from ..errors import ErrorCode

__all__ = ("Disconnect", "Refused")


class Refused(Exception):
    """The answer to a part of a request is an error code; ``message`` is None where Kafka gives none.

    ``record_errors`` are the records at fault, as index and reason (KIP-467).
    """

    def __init__(
        self, code: ErrorCode, message: str | None = None, record_errors: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.record_errors = record_errors

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


class Disconnect(Exception):
    """The only answer is to hang up: the request cannot be understood, or has no room for an error."""
