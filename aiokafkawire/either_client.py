"""Finds the asynchronous client for exporters and probes, which take blocking clients, too."""

from .argument_checks import shown
from .client import Client
from .errors import UsageError

__all__ = ("asynchronous_client",)


def asynchronous_client(kafka: object) -> Client:
    """Return the asynchronous client: this one, or that of a blocking client.

    Raises:
        UsageError: the argument is no client.
    """
    if isinstance(kafka, Client):
        return kafka
    from .blocking import Client as BlockingClient

    if not isinstance(kafka, BlockingClient):
        raise UsageError(f"kafka must be a client of aiokafkawire, got {shown(kafka)}")
    return kafka.asynchronous
