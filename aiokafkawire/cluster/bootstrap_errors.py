"""The error to raise when no address led to a broker."""

from collections.abc import Mapping

from ..errors import AuthenticationFailed, ConfigError, KafkaError, NoBrokerReachable, SecurityMismatch, WireError
from ..types import Address

__all__ = ("lasting_error", "bootstrap_error")


def bootstrap_error(errors: Mapping[Address, KafkaError], seconds: float | None = None) -> KafkaError:
    """Return one error for the errors of all addresses.

    An authentication or configuration error is returned as it is, and so is that of a single address without Kafka.
    """
    untrusting = lasting_error(errors)
    if untrusting is not None:
        return untrusting
    first = next(iter(errors.values()))
    if len(errors) == 1 and isinstance(first, WireError):
        return first
    causes = "; ".join(f"{address}: {error}" for address, error in errors.items())
    within = f" within {seconds:g} s" if seconds is not None else ""
    error = NoBrokerReachable(f"no broker reachable{within}: {causes}")
    error.__cause__ = first
    return error


def lasting_error(errors: Mapping[Address, KafkaError]) -> KafkaError | None:
    """Return the first error that no retry mends: of authentication, configuration or a listener's protocol."""
    lasting = (AuthenticationFailed, ConfigError, SecurityMismatch)
    return next((error for error in errors.values() if isinstance(error, lasting)), None)
