"""One request as a handler sees it: the client, the broker and the version."""

from collections.abc import Callable
from typing import TypeAlias

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from ..cluster.state import BrokerNode, ClusterState
from ..security.authentication import LoginState
from ..security.authorizer import Rights

__all__ = ("Blamed", "ServerCall", "Peer")

Blamed: TypeAlias = Callable[[str, int], ErrorCode | None]
"""A function that returns the error to inject into a partition, by topic and index, or None."""


@attrs.define(eq=False)
class Peer:
    """The client of one connection, and the state of the connection at the broker."""

    name: str
    """The client's name in the log: its address, or the name and number of an in-memory connection."""
    host: str = "127.0.0.1"
    """The client's address without the port."""
    number: int = 0
    """The number of the connection, counted from 1 over all brokers."""
    principal: str = "User:ANONYMOUS"
    """The principal, from authentication or a certificate."""
    software_name: str | None = None
    """The name of the client's software, which ApiVersions has named (KIP-511); None before that."""
    software_version: str | None = None
    login: LoginState | None = attrs.field(default=None, repr=False)
    """The state of SASL authentication; None if SASL is disabled."""

    @property
    def authenticated(self) -> bool:
        """Whether the client has authenticated, or need not authenticate."""
        return self.login is None or self.login.complete


@attrs.frozen(eq=False)
class ServerCall:
    """The circumstances of one request: the broker, the client, the version and the injected errors."""

    node: BrokerNode
    peer: Peer
    version: int
    client_id: str | None = None
    blamed: Blamed | None = None
    """The function that returns the errors to inject into partitions; None to inject no errors."""
    hides_topic: Callable[[str], bool] | None = None
    """The function that returns whether the client may not read a topic; None if it may read all."""

    def check_blame(self, topic: str, partition: int) -> None:
        """Check that no fault rule injects an error into this partition.

        Raises:
            ApiError: the injected error.
        """
        error = None if self.blamed is None else self.blamed(topic, partition)
        if error is not None:
            raise ApiError(error)

    def check_readable(self, topic: str) -> None:
        """Check that the client may read a topic. Raises ApiError: TOPIC_AUTHORIZATION_FAILED."""
        if self.hides_topic is not None and self.hides_topic(topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    @property
    def rights(self) -> Rights:
        """The rights of the client."""
        return Rights(self.cluster.authorizer, self.peer.principal, self.peer.host)

    @property
    def cluster(self) -> ClusterState:
        """The cluster that the broker belongs to."""
        return self.node.cluster
