"""One request as a handler sees it: who asks, which broker, in which version."""

import attrs

from .state import ClusterState, Node

__all__ = ("Call", "Peer")


@attrs.define(eq=False)
class Peer:
    """The client's end of a connection, and what the broker remembers of it."""

    name: str
    """For the log: an address, or which connection over memory it is."""
    host: str = "127.0.0.1"
    """The client's address, as group descriptions show it."""
    number: int = 0
    """Counts the connections of a cluster from 1 on."""
    principal: str = "User:ANONYMOUS"


@attrs.frozen(eq=False)
class Call:
    """One request to one broker."""

    node: Node
    peer: Peer
    version: int
    client_id: str | None = None

    @property
    def cluster(self) -> ClusterState:
        """The cluster that the broker belongs to."""
        return self.node.cluster
