"""One request as a handler sees it: who asks, which broker, in which version."""

from collections.abc import Callable
from typing import TypeAlias

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from ..cluster.state import BrokerNode, ClusterState
from ..security.authentication import LoginState

__all__ = ("Blamed", "ServerCall", "Peer")

Blamed: TypeAlias = Callable[[str, int], ErrorCode | None]
"""The error that a partition gets, by topic and index; None for what it gets by itself."""


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
    """Who has logged in, or whose certificate it is."""
    login: LoginState | None = attrs.field(default=None, repr=False)
    """How far SASL has come; None where it is not asked for."""

    @property
    def authenticated(self) -> bool:
        """Whether it may make requests."""
        return self.login is None or self.login.complete


@attrs.frozen(eq=False)
class ServerCall:
    """One request to one broker."""

    node: BrokerNode
    peer: Peer
    version: int
    client_id: str | None = None
    blamed: Blamed | None = None
    """What an order of the test says of the partitions that are read."""

    def check_blame(self, topic: str, partition: int) -> None:
        """Whether an order lets this partition be read.

        Raises:
            Refused: it does not.
        """
        error = None if self.blamed is None else self.blamed(topic, partition)
        if error is not None:
            raise ApiError(error)

    @property
    def cluster(self) -> ClusterState:
        """The cluster that the broker belongs to."""
        return self.node.cluster
