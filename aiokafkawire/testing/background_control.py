"""Blocking methods for callers on other threads; each runs the Broker's method of this name on the broker's thread."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from .background_rules import BackgroundRules
from .broker import Broker
from .logs.log import PartitionLog

__all__ = ("BackgroundControl",)


class BackgroundControl(BackgroundRules):
    """Methods of ``BackgroundBroker`` that call the same method of :class:`Broker`, with its arguments and errors."""

    @abstractmethod
    def do(self, function: Callable[[Broker], Any]) -> Any:
        """Call ``function(broker)``, which may be async, on the broker's thread, and return its result."""

    def delete_topic(self, name: str) -> None:
        """Call :meth:`Broker.delete_topic` on the broker's thread."""
        self.do(lambda broker: broker.delete_topic(name))

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """Call :meth:`Broker.log` on the broker's thread, and return its result."""
        found: PartitionLog = self.do(lambda broker: broker.log(topic, partition))
        return found

    def stop_node(self, node_id: int) -> None:
        """Call :meth:`Broker.stop_node` on the broker's thread."""
        self.do(lambda broker: broker.stop_node(node_id))

    def start_node(self, node_id: int, *, max_versions: str | None = None) -> None:
        """Call :meth:`Broker.start_node` on the broker's thread."""
        self.do(lambda broker: broker.start_node(node_id, max_versions=max_versions))

    def fence_node(self, node_id: int) -> None:
        """Call :meth:`Broker.fence_node` on the broker's thread."""
        self.do(lambda broker: broker.fence_node(node_id))

    def unfence_node(self, node_id: int) -> None:
        """Call :meth:`Broker.unfence_node` on the broker's thread."""
        self.do(lambda broker: broker.unfence_node(node_id))

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """Call :meth:`Broker.isr` on the broker's thread, and return its result."""
        found: list[int] = self.do(lambda broker: broker.isr(topic, partition))
        return found

    def hold_replica(self, topic: str, partition: int, node_id: int) -> None:
        """Call :meth:`Broker.hold_replica` on the broker's thread."""
        self.do(lambda broker: broker.hold_replica(topic, partition, node_id))

    def release_replica(self, topic: str, partition: int, node_id: int) -> None:
        """Call :meth:`Broker.release_replica` on the broker's thread."""
        self.do(lambda broker: broker.release_replica(topic, partition, node_id))

    def shrink_isr(self, topic: str, partition: int, node_id: int) -> None:
        """Call :meth:`Broker.shrink_isr` on the broker's thread."""
        self.do(lambda broker: broker.shrink_isr(topic, partition, node_id))

    def leader(self, topic: str, partition: int = 0) -> int:
        """Call :meth:`Broker.leader` on the broker's thread, and return its result."""
        found: int = self.do(lambda broker: broker.leader(topic, partition))
        return found

    def move_leader(self, topic: str, partition: int, node_id: int, *, unclean: bool = False) -> None:
        """Call :meth:`Broker.move_leader` on the broker's thread."""
        self.do(lambda broker: broker.move_leader(topic, partition, node_id, unclean=unclean))

    def coordinator(self, group: str) -> int:
        """Call :meth:`Broker.coordinator` on the broker's thread, and return its result."""
        found: int = self.do(lambda broker: broker.coordinator(group))
        return found

    def move_coordinator(self, group: str, node_id: int, *, loading: float = 0) -> None:
        """Call :meth:`Broker.move_coordinator` on the broker's thread."""
        self.do(lambda broker: broker.move_coordinator(group, node_id, loading=loading))

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Call :meth:`Broker.transaction_coordinator` on the broker's thread, and return its result."""
        found: int = self.do(lambda broker: broker.transaction_coordinator(transactional_id))
        return found

    def move_transaction_coordinator(self, transactional_id: str, node_id: int, *, loading: float = 0) -> None:
        """Call :meth:`Broker.move_transaction_coordinator` on the broker's thread."""
        self.do(lambda broker: broker.move_transaction_coordinator(transactional_id, node_id, loading=loading))

    def hold_markers(self, transactional_id: str) -> None:
        """Call :meth:`Broker.hold_markers` on the broker's thread."""
        self.do(lambda broker: broker.hold_markers(transactional_id))

    def release_markers(self, transactional_id: str) -> None:
        """Call :meth:`Broker.release_markers` on the broker's thread."""
        self.do(lambda broker: broker.release_markers(transactional_id))

    def expire_transactional_id(self, transactional_id: str) -> None:
        """Call :meth:`Broker.expire_transactional_id` on the broker's thread."""
        self.do(lambda broker: broker.expire_transactional_id(transactional_id))

    def throttle(self, client_id: str | None, ms: int) -> None:
        """Call :meth:`Broker.throttle` on the broker's thread."""
        self.do(lambda broker: broker.throttle(client_id, ms))

    def compact(self, topic: str, *, keep_tombstones: bool = True) -> None:
        """Call :meth:`Broker.compact` on the broker's thread."""
        self.do(lambda broker: broker.compact(topic, keep_tombstones=keep_tombstones))

    def apply_retention(self, topic: str) -> None:
        """Call :meth:`Broker.apply_retention` on the broker's thread."""
        self.do(lambda broker: broker.apply_retention(topic))

    def apply_offsets_retention(self) -> None:
        """Call :meth:`Broker.apply_offsets_retention` on the broker's thread."""
        self.do(lambda broker: broker.apply_offsets_retention())
