"""What it means for the brokers among themselves that a simulated network separates them."""

import anyio

from ...runtime import Owner
from ..broker import Broker
from .network import Network
from .trace import Trace

__all__ = ("BrokerLinks",)

SESSION_SECONDS = 9.0
"""``broker.session.timeout.ms``, as Kafka has it."""
_LOOK_EVERY = 0.05
"""Seconds between two looks at who leads, while brokers are separated."""


class BrokerLinks:
    """Applies separations to the cluster.

    1. A follower that does not reach its leader does not copy: with acks=all its leader's producers wait.
    2. A broker that reaches no majority of all brokers is fenced after ``broker.session.timeout.ms``: others lead where
       it led, without what only it has. It returns as soon as it reaches them again.

    All brokers know the same of the cluster at once: one that is fenced and still reached says that it does not lead.
    """

    def __init__(self, broker: Broker, network: Network, trace: Trace, owner: Owner) -> None:
        self._broker, self._network, self._trace, self._owner = broker, network, trace, owner
        self._sessions: dict[int, anyio.CancelScope] = {}
        self._held: dict[tuple[str, int, int], None] = {}
        self._looking: anyio.CancelScope | None = None

    def changed(self) -> None:
        """Someone was separated, or is no more."""
        separated = [node for node in self._broker.node_ids if self._reached(node) < len(self._broker.node_ids)]
        for node in self._broker.node_ids:
            self._renew_or_end(node)
        self._copy_or_hold()
        if separated and self._looking is None:
            self._looking = anyio.CancelScope()
            self._owner.spawn(self._keep_looking, self._looking)
        elif not separated and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _reached(self, node: int) -> int:
        return sum(not self._network.separated(node, other) for other in self._broker.node_ids)

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

    async def _keep_looking(self, scope: anyio.CancelScope) -> None:
        """Leaders may move and topics be made meanwhile."""
        with scope:
            while True:
                await anyio.sleep(_LOOK_EVERY)
                self._copy_or_hold()

    def _copy_or_hold(self) -> None:
        apart: dict[tuple[str, int, int], None] = {}
        for one in self._broker.partitions:
            for node in one.replicas:
                if node != one.leader and one.leader >= 0 and self._network.separated(node, one.leader):
                    apart[one.log.topic, one.index, node] = None
        there = {(one.log.topic, one.index, node): None for one in self._broker.partitions for node in one.replicas}
        for key in self._held:
            if key not in apart and key in there:
                self._broker.release_replica(*key)
        for key in apart:
            if key not in self._held:
                self._broker.hold_replica(*key)
        self._held = apart
