"""The error to raise when no broker is reachable at any address."""

import errno
from collections.abc import Mapping
from typing import Final

from ..errors import AuthenticationFailed, ConfigError, KafkaError, NoBrokerReachable, SecurityMismatch, WireError
from ..types import Address

__all__ = ("lasting_error", "bootstrap_error")

_IN_MEMORY: Final = "; a Broker(port=None) for tests is reached by Client(..., connector=broker.connect) only"
_REFUSED: Final = (
    "; nothing listens there: start a broker (for development: aiokafkawire broker), or correct the address"
)


def bootstrap_error(errors: Mapping[Address, KafkaError], seconds: float | None = None) -> KafkaError:
    """Return one error for the errors of all addresses, after ``seconds`` of attempts.

    If retries cannot fix one of the errors, return the first such error. If there is only one address, and its error is
    a WireError, return this error. Otherwise return a NoBrokerReachable that lists all errors.
    """
    untrusting = lasting_error(errors)
    if untrusting is not None:
        return untrusting
    first = next(iter(errors.values()))
    if len(errors) == 1 and isinstance(first, WireError):
        return first
    causes = "; ".join(f"{address}: {error}" for address, error in errors.items())
    within = f" within {seconds:g} s" if seconds is not None else ""
    remedy = _REFUSED if all(_is_refused(error) for error in errors.values()) else ""
    if any(address.host.startswith("memory-") for address in errors):
        remedy = _IN_MEMORY
    error = NoBrokerReachable(f"no broker reachable{within}: {causes}{remedy}")
    error.__cause__ = first
    return error


def _is_refused(error: KafkaError) -> bool:
    return getattr(error.__cause__, "errno", None) == errno.ECONNREFUSED


def lasting_error(errors: Mapping[Address, KafkaError]) -> KafkaError | None:
    """Return the first error that retries cannot fix (authentication, settings, security protocol), or None."""
    lasting = (AuthenticationFailed, ConfigError, SecurityMismatch)
    return next((error for error in errors.values() if isinstance(error, lasting)), None)
