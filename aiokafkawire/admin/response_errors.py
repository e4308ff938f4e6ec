"""The errors of the admin's requests: for the codes in responses, and for brokers that are too old."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import BrokerError, ErrorCode, UnsupportedVersion, broker_error

__all__ = ("error_of", "explain_unsupported", "raise_for")


def error_of(code: int, what: str, message: str | None = None) -> BrokerError | None:
    """Return the error for a code in a response; None for success.

    Args:
        code: the error code.
        what: what was requested, and of which resource; begins the error's message.
        message: the broker's message.
    """
    if code == ErrorCode.NONE:
        return None
    error = broker_error(code, f"{what}: {message}" if message else what)
    error.broker_message = message or None
    return error


def raise_for(code: int, what: str, message: str | None = None) -> None:
    """Raise the error that :func:`error_of` returns for a code, a request and the broker's message, if there is one."""
    error = error_of(code, what, message)
    if error is not None:
        raise error


@contextmanager
def explain_unsupported(needs: str) -> Iterator[None]:
    """Raise UnsupportedVersion with ``needs`` before its message: "ACLs need brokers since 0.11 (KIP-140)"."""
    try:
        yield
    except UnsupportedVersion as refused:
        raise UnsupportedVersion(f"{needs}: {refused}") from None
