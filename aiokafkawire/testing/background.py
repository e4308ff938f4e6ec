"""The broker on a thread of its own: for tests without an event loop, and for clients in any."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from inspect import isawaitable
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from .arguments import BrokerArguments
from .broker import Broker

__all__ = ("BackgroundBroker",)

T = TypeVar("T")


class BackgroundBroker:
    """A :class:`~aiokafkawire.testing.broker.Broker` that runs on a thread while its context is open.

    with BackgroundBroker(nodes=3) as kafka:
        kafka.create_topic("orders", partitions=6)
        ...  # any client, at kafka.bootstrap
        kafka.do(lambda broker: broker.move_leader("orders", 0, 2))

    Args:
        nodes: how many brokers.
        options: what else Broker takes, and refuses with ValueError.
    """

    def __init__(self, nodes: int = 1, **options: Unpack[BrokerArguments]) -> None:
        self._broker = Broker(nodes, **options)
        self._portal: BlockingPortal | None = None
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        """What to give clients as ``bootstrap.servers``."""
        return self._broker.bootstrap

    @overload
    def do(self, function: Callable[[Broker], Awaitable[T]]) -> T: ...

    @overload
    def do(self, function: Callable[[Broker], T]) -> T: ...

    def do(self, function: Callable[[Broker], Any]) -> Any:
        """Call ``function`` with the broker, on its thread, and give what it returns; it may be async.

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
        """Make a topic. Raises as :meth:`Broker.create_topic`."""

        def create(broker: Broker) -> None:
            broker.create_topic(name, partitions, configs=configs)

        self.do(create)

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
