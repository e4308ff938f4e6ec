"""A broker that runs on its own thread, for tests without an event loop and for clients in another event loop."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from inspect import isawaitable
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from .background_control import BackgroundControl
from .background_faults import BackgroundRequestLog
from .broker import Broker
from .broker_options import BrokerArguments
from .cluster.replicas import HostedPartition

__all__ = ("BackgroundBroker",)

T = TypeVar("T")


class BackgroundBroker(BackgroundControl):
    """A :class:`~aiokafkawire.testing.broker.Broker` that runs on a thread while its context is open.

    with BackgroundBroker(nodes=3) as kafka:
        kafka.create_topic("orders", partitions=6)
        ...  # any client, at kafka.bootstrap
        kafka.on(ApiKey.PRODUCE, drop="after")
        kafka.move_leader("orders", 0, 2)

    The methods for tests are those of Broker. Each call blocks until the method has run on the broker's thread. In an
    event loop that also runs a client, call them in a thread (``anyio.to_thread.run_sync``), or open a Broker instead.

    Args:
        nodes: the number of brokers.
        options: the other arguments of Broker; invalid ones raise ConfigError.
    """

    def __init__(self, nodes: int = 1, **options: Unpack[BrokerArguments]) -> None:
        self._broker = Broker(nodes, **options)
        self._portal: BlockingPortal | None = None
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        """The value for clients' ``bootstrap.servers``."""
        return self._broker.bootstrap

    @overload
    def do(self, function: Callable[[Broker], Awaitable[T]]) -> T: ...

    @overload
    def do(self, function: Callable[[Broker], T]) -> T: ...

    def do(self, function: Callable[[Broker], Any]) -> Any:
        """Call ``function(broker)``, which may be async, on the broker's thread, and return its result.

        Raises:
            RuntimeError: the context is not open.
        """
        if self._portal is None:
            raise RuntimeError("this broker is not open: use it as a context manager")

        async def there() -> Any:
            found = function(self._broker)
            return await found if isawaitable(found) else found

        return self._portal.call(there)

    def create_topic(self, name: str, partitions: int = 1, *, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic. Raises as :meth:`Broker.create_topic`."""

        def create(broker: Broker) -> None:
            broker.create_topic(name, partitions, configs=configs)

        self.do(create)

    # --- the methods of Broker ---------------------------------------------------------------------------------

    @property
    def requests(self) -> BackgroundRequestLog:
        """The log of the requests received since the broker was opened."""
        return BackgroundRequestLog(self.do, self._broker.requests)

    @property
    def node_ids(self) -> list[int]:
        """The ids of all brokers, including stopped ones."""
        return self._broker.node_ids

    @property
    def addresses(self) -> dict[tuple[str, int], int]:
        """The id of each broker, by the broker's host and port."""
        return self._broker.addresses

    @property
    def faults(self) -> list[Exception]:
        """The unexpected exceptions that request handlers have raised since the broker was opened."""
        return self._broker.faults

    @property
    def partitions(self) -> list[HostedPartition]:
        """Every partition of every topic, with its replicas."""
        return self.do(lambda broker: broker.partitions)

    # --- lifecycle ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._portal is not None:
            raise RuntimeError("this broker is open already")
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            running: AbstractContextManager[Broker] = portal.wrap_async_context_manager(self._broker)
            stack.enter_context(running)
            self._portal, self._stack = portal, stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        try:
            return self._stack.__exit__(kind, error, traceback)
        finally:
            self._portal = None
