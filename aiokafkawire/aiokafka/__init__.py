"""aiokafka 0.14's API on this client: ``from aiokafkawire.aiokafka import AIOKafkaProducer, AIOKafkaConsumer``.

See docs/aiokafka.md. :func:`install` makes ``import aiokafka`` find this package, for frameworks.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .abc import ConsumerRebalanceListener
    from .client import AIOKafkaClient
    from .consumer.consumer import AIOKafkaConsumer
    from .errors import ConsumerStoppedError, IllegalOperation
    from .installation import install
    from .producer.producer import AIOKafkaProducer
    from .structs import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

__all__ = (
    "AIOKafkaClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerStoppedError",
    "IllegalOperation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
    "install",
)

__version__ = "0.14.0"
"""The release of aiokafka whose API this is, for programs that compare it."""

_MODULES = {
    "AIOKafkaClient": ".client",
    "AIOKafkaConsumer": ".consumer.consumer",
    "AIOKafkaProducer": ".producer.producer",
    "ConsumerRebalanceListener": ".abc",
    "ConsumerRecord": ".structs",
    "ConsumerStoppedError": ".errors",
    "IllegalOperation": ".errors",
    "OffsetAndMetadata": ".structs",
    "OffsetAndTimestamp": ".structs",
    "TopicPartition": ".structs",
    "install": ".installation",
}
_SUBMODULES = (
    "abc",
    "admin",
    "client",
    "cluster",
    "conn",
    "consumer",
    "coordinator",
    "errors",
    "helpers",
    "partitioner",
    "producer",
    "structs",
    "util",
)
_COORDINATOR = ("protocol", "assignors.range", "assignors.roundrobin", "assignors.sticky.sticky_assignor")
_lazy: Callable[[str], object] = lazy_exports(__name__, _MODULES, _SUBMODULES)


def __getattr__(name: str) -> object:
    """Return a name that is not loaded yet; ``coordinator`` has its modules then, as after an import of aiokafka."""
    if name == "coordinator":
        for module in _COORDINATOR:
            import_module(f".coordinator.{module}", __name__)
    return _lazy(name)


def __dir__() -> list[str]:
    """Return the names of the module, also of what is not loaded yet."""
    return sorted({*globals(), *__all__})
