"""What to say when no address led to a broker."""

from collections.abc import Mapping

from ..errors import AuthenticationFailed, ConfigError, KafkaError, NoBrokerReachable, SecurityMismatch, WireError
from ..types import Address

__all__ = ("distrust", "unreachable")


def unreachable(errors: Mapping[Address, KafkaError], seconds: float | None = None) -> KafkaError:
    """One error for what every address said; of a single address that is no broker, its own, and so of one that is not
    trusted, or does not trust this client."""
    untrusting = distrust(errors)
    if untrusting is not None:
        return untrusting
    first = next(iter(errors.values()))
    if len(errors) == 1 and isinstance(first, WireError):
        return first
    told = "; ".join(f"{address}: {error}" for address, error in errors.items())
    within = f" within {seconds:g} s" if seconds is not None else ""
    error = NoBrokerReachable(f"no broker reachable{within}: {told}")
    error.__cause__ = first
    return error


def distrust(errors: Mapping[Address, KafkaError]) -> KafkaError | None:
    """The first error that says who is not trusted, or that a listener is another one than the settings say; it will
    say so again, however often it is tried."""
    lasting = (AuthenticationFailed, ConfigError, SecurityMismatch)
    return next((error for error in errors.values() if isinstance(error, lasting)), None)
