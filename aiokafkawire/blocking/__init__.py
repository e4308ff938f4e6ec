"""A blocking client, for code without an event loop: scripts, notebooks, Spark's executors.

with blocking.Client("localhost:9092") as kafka, kafka.producer() as producer:
    producer.send("flights", b"UA 1545")

A client has one thread with an event loop, which runs all asynchronous code. Calls on other threads wait for results.

1. Ctrl-C may interrupt every call: the call is cancelled, and the client remains usable.
2. Any thread may call the client and its producers. A consumer accepts one call at a time.
3. A forked process lacks the thread: calls in that process raise UsageError, and leaving the ``with`` does nothing.
4. Leaving the ``with`` ends the thread. An unclosed client does not keep the process from ending.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .admin import Admin
    from .client import Client
    from .consumer import Consumer
    from .producer import Delivery, Producer, Transaction
    from .schema_registry import SchemaRegistry
    from .share_consumer import ShareConsumer

__all__ = ("Admin", "Client", "Consumer", "Delivery", "Producer", "SchemaRegistry", "ShareConsumer", "Transaction")

__getattr__: Callable[[str], object] = lazy_exports(
    __name__,
    {
        "Admin": ".admin",
        "Client": ".client",
        "Consumer": ".consumer",
        "Delivery": ".producer",
        "Producer": ".producer",
        "SchemaRegistry": ".schema_registry",
        "ShareConsumer": ".share_consumer",
        "Transaction": ".producer",
    },
)


def __dir__() -> list[str]:
    """Return the exported names, which are imported when they are first used."""
    return sorted({*globals(), *__all__})
