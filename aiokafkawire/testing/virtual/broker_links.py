"""The effect of separations in a simulated network on the brokers' replication and sessions."""

import anyio

from ...runtime import Owner
from ..broker import Broker
from .network import Network
from .trace import Trace

__all__ = ("BrokerLinks",)

SESSION_SECONDS = 9.0
"""Kafka's default of ``broker.session.timeout.ms``, in seconds."""
_CHECK_SECONDS = 0.05
"""The time between two checks of which followers cannot copy, while brokers are separated."""


class BrokerLinks:
    """The effect of the network's separations on the brokers.

    1. A follower that does not reach its leader copies no records, so that producers with acks=all wait.
    2. A broker that does not reach a majority of the brokers is fenced after ``broker.session.timeout.ms``: other
       brokers lead its partitions, without the records that only it has. When it reaches a majority, it is unfenced.

    All brokers share the cluster's state. Hence a fenced broker knows that it does not lead any more, and answers so to
    clients that still reach it.
    """

    def __init__(self, broker: Broker, network: Network, trace: Trace, owner: Owner) -> None:
        self._broker, self._network, self._trace, self._owner = broker, network, trace, owner
        self._sessions: dict[int, anyio.CancelScope] = {}
        self._separated: set[tuple[int, int]] = set()
        self._held: dict[tuple[str, int, int], None] = {}
        self._checking: anyio.CancelScope | None = None

    def changed(self) -> None:
        """Apply a change of the network's separations to the brokers."""
        nodes = self._broker.node_ids
        separated = {(one, other) for one in nodes for other in nodes if self._network.separated(one, other)}
        self._separated = separated
        for node in nodes:
            self._renew_or_end(node)
        self._copy_or_hold()
        if separated and self._checking is None:
            self._checking = anyio.CancelScope()
            self._owner.spawn(self._keep_checking, self._checking)
        elif not separated and self._checking is not None:
            self._checking.cancel()
            self._checking = None

    def _reached(self, node: int) -> int:
        return sum((node, other) not in self._separated for other in self._broker.node_ids)

    def _renew_or_end(self, node: int) -> None:
        ending = self._sessions.get(node)
        if 2 * self._reached(node) > len(self._broker.node_ids):
            if ending is not None:
                ending.cancel()
                del self._sessions[node]
                self._broker.unfence_node(node)
        elif ending is None:
            ending = self._sessions[node] = anyio.CancelScope()
            self._owner.spawn(self._end_session, node, ending)

    async def _end_session(self, node: int, scope: anyio.CancelScope) -> None:
        with scope:
            await anyio.sleep(SESSION_SECONDS)
            self._trace.add(f"broker {node} is fenced")
            self._broker.fence_node(node)
            self._copy_or_hold()

    async def _keep_checking(self, scope: anyio.CancelScope) -> None:
        """Check at intervals which followers reach their leaders, since leaders may move and topics may be created."""
        with scope:
            while True:
                await anyio.sleep(_CHECK_SECONDS)
                self._copy_or_hold()

    def _copy_or_hold(self) -> None:
        separated = self._separated
        if not separated and not self._held:
            return
        apart: dict[tuple[str, int, int], None] = {}
        existing: dict[tuple[str, int, int], None] = {}
        for partition in self._broker.partitions:
            topic, index, leader = partition.log.topic, partition.index, partition.leader
            for node in partition.replicas:
                existing[topic, index, node] = None
                if (node, leader) in separated:
                    apart[topic, index, node] = None
        for key in self._held:
            if key not in apart and key in existing:
                self._broker.release_replica(*key)
        for key in apart:
            if key not in self._held:
                self._broker.hold_replica(*key)
        self._held = apart
