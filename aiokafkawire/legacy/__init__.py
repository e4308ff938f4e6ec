"""Clients for Kafka 0.6 and 0.7 and their groups in ZooKeeper; migration to a current cluster. See docs/legacy.md."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .client import LegacyClient
    from .cluster import BrokerClients
    from .consumer import LegacyConsumer, LegacyRecord
    from .migration import MigrationProgress, Sources, migrate, sources_from_zookeeper
    from .producer import LegacyPartitioner, LegacyProducer, java_hash_partitioner
    from .registry import BrokerPartition
    from .settings import LegacyConfig, LegacyOptions

__all__ = (
    "BrokerClients",
    "BrokerPartition",
    "LegacyClient",
    "LegacyConfig",
    "LegacyConsumer",
    "LegacyOptions",
    "LegacyPartitioner",
    "LegacyProducer",
    "LegacyRecord",
    "MigrationProgress",
    "Sources",
    "java_hash_partitioner",
    "migrate",
    "sources_from_zookeeper",
)

_MODULES = {
    "BrokerClients": ".cluster",
    "BrokerPartition": ".registry",
    "LegacyClient": ".client",
    "LegacyConfig": ".settings",
    "LegacyConsumer": ".consumer",
    "LegacyOptions": ".settings",
    "LegacyPartitioner": ".producer",
    "LegacyProducer": ".producer",
    "LegacyRecord": ".consumer",
    "MigrationProgress": ".migration",
    "Sources": ".migration",
    "java_hash_partitioner": ".producer",
    "migrate": ".migration",
    "sources_from_zookeeper": ".migration",
}
__getattr__: Callable[[str], object] = lazy_exports(__name__, _MODULES)
