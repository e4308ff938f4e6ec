"""One client for the producer, the consumers and the admin of a broker."""

from inspect import signature
from typing import Any, TypeVar

from ..aiokafka.client import AIOKafkaClient

__all__ = ("SharedClient", "accepted_arguments", "sharing")

T = TypeVar("T")


class SharedClient(AIOKafkaClient):
    """A client that outlives those who use it: only :meth:`close_shared` closes its connections."""

    async def bootstrap(self) -> None:
        """Connect to a bootstrap server, unless the client is connected."""
        if not self._is_open:
            await super().bootstrap()

    async def close(self) -> None:
        """Leave the connections open for the other users."""

    async def _reset(self) -> None:
        """Leave the connections open for the other users."""

    async def close_shared(self) -> None:
        """Close all connections."""
        await super().close()


def sharing(base: type[T], client: SharedClient) -> type[T]:
    """Return a subclass of aiokafka's producer, consumer or admin client whose objects use ``client``."""

    def shared(**_: object) -> SharedClient:
        return client

    return type(base.__name__, (base,), {"_client_class": staticmethod(shared)})


def accepted_arguments(function: type[Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return those of the arguments that ``function`` has parameters for."""
    parameters = signature(function).parameters
    return {name: value for name, value in arguments.items() if name in parameters}
