"""The methods of Broker that inject faults."""

from collections.abc import Mapping, Sequence

from ..broker_options import check_index, check_name
from ..cluster.state import ClusterState
from ..serving.listening import NodeServer
from .request_log import RequestLog
from .rule_control import RuleControl
from .rules import FaultRules

__all__ = ("Faults",)


class Faults(RuleControl):
    """The part of :class:`~.broker.Broker` for fault rules, the request log, frozen brokers and paused partitions."""

    _cluster: ClusterState
    _servers: Mapping[int, NodeServer]

    @property
    def _fault_rules(self) -> FaultRules:
        return self._cluster.fault_rules

    @property
    def _known_nodes(self) -> Sequence[int]:
        return [node.node_id for node in self._cluster.nodes]

    @property
    def requests(self) -> RequestLog:
        """The log of the requests received since the broker was opened."""
        return self._cluster.requests

    def clear_orders(self) -> None:
        """Remove all fault rules, thaw brokers and resume partitions. Held requests stay held until released."""
        self._cluster.fault_rules.clear()
        for partition in self._cluster.topics.partitions():
            self._cluster.changed(partition)

    def freeze_node(self, node_id: int) -> None:
        """Let a broker accept connections and read requests but answer none, as a suspended process does.

        The broker still leads its partitions; ``fence_node`` lets other brokers take over.

        Raises:
            KeyError: there is no such broker.
        """
        self._cluster.fault_rules.freeze(self._cluster.node(node_id).node_id)

    def thaw_node(self, node_id: int) -> None:
        """Let a frozen broker continue with the requests that have arrived. Raises as :meth:`freeze_node`."""
        self._cluster.fault_rules.thaw(self._cluster.node(node_id).node_id)

    async def refuse_connections(self, node_id: int) -> None:
        """Refuse new connections to a broker and keep the existing ones.

        Raises:
            KeyError: there is no such broker.
        """
        await self._servers[self._cluster.node(node_id).node_id].refuse()

    async def accept_connections(self, node_id: int) -> None:
        """Let a broker accept connections again, at its previous address.

        Raises:
            KeyError: there is no such broker.
            OSError: another process took the broker's port.
        """
        await self._servers[self._cluster.node(node_id).node_id].accept()

    def pause_partition(self, topic: str, partition: int = 0) -> None:
        """Let fetches return no records of a partition, and let produce requests wait, until :meth:`resume_partition`.

        Raises:
            ApiError: there is no such partition.
        """
        check_name("a topic's name", topic)
        check_index("a partition", partition)
        self._cluster.topics.partition(topic, partition)
        self._cluster.fault_rules.pause(topic, partition)

    def resume_partition(self, topic: str, partition: int = 0) -> None:
        """Let fetches and produce requests of a paused partition continue. Raises as :meth:`pause_partition`."""
        check_name("a topic's name", topic)
        check_index("a partition", partition)
        found = self._cluster.topics.partition(topic, partition)
        self._cluster.fault_rules.resume(topic, partition)
        self._cluster.changed(found)
