"""aiokafka's AIOKafkaClient: the connection to a cluster that its producers, consumers and admin clients have."""

import random
import socket
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import ExitStack
from enum import IntEnum
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeVar, overload

import anyio

from .. import errors as own
from ..argument_checks import shown
from ..client import Client
from ..config import parse_servers
from ..protocol.schema import Request, Response
from ..types import CoordinatorType
from .abc import AbstractTokenProvider
from .argument_names import with_known_arguments
from .client_options import client_options, servers_of, warn_deprecated
from .cluster import ClusterMetadata
from .error_translation import TRANSLATED, translated
from .errors import KafkaConnectionError, NodeNotReadyError
from .protocol.request import TheirRequest

__all__ = ("AIOKafkaClient", "ConnectionGroup", "CoordinationType")

R = TypeVar("R", bound=Response)

CLIENT_ID = "aiokafka-0.14.0"
"""The default ``client_id`` of aiokafka 0.14, by which quotas and the brokers' logs may know a program."""


class ConnectionGroup(IntEnum):
    """aiokafka's groups of connections to one broker."""

    DEFAULT = 0
    COORDINATION = 1


class CoordinationType(IntEnum):
    """aiokafka's types of coordinators."""

    GROUP = 0
    TRANSACTION = 1


class _Begun:
    """An awaitable for work that goes on by itself: it need not be awaited."""

    __slots__ = ("_wait",)

    def __init__(self, wait: Callable[[], Awaitable[bool]]) -> None:
        self._wait = wait

    def __await__(self) -> Generator[Any, Any, bool]:
        return self._wait().__await__()


class AIOKafkaClient:
    """A client of one cluster, with aiokafka's arguments. Start it with :meth:`bootstrap`, and close it.

    Attributes:
        cluster: the brokers, topics and partitions that the client knows.
        wire_client: the :class:`~aiokafkawire.Client` that does the work; all its methods may be used beside
            aiokafka's.

    Raises:
        ValueError: an argument is wrong.
    """

    @with_known_arguments
    def __init__(
        self,
        *,
        loop: object = None,
        bootstrap_servers: str | Sequence[str] = "localhost",
        client_id: str | None = CLIENT_ID,
        metadata_max_age_ms: float = 300000,
        request_timeout_ms: float = 40000,
        retry_backoff_ms: float = 100,
        ssl_context: Any = None,
        security_protocol: str = "PLAINTEXT",
        api_version: object = None,
        connections_max_idle_ms: float | None = 540000,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_username: str | None = None,
        sasl_plain_password: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: AbstractTokenProvider | None = None,
    ) -> None:
        warn_deprecated(loop, api_version, stacklevel=3)
        client_id = CLIENT_ID if client_id is None else client_id
        options = client_options(
            client_id=client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            connections_max_idle_ms=connections_max_idle_ms,
            security_protocol=security_protocol,
            ssl_context=ssl_context,
            sasl_mechanism=sasl_mechanism,
            sasl_plain_username=sasl_plain_username,
            sasl_plain_password=sasl_plain_password,
            sasl_kerberos_service_name=sasl_kerberos_service_name,
            sasl_kerberos_domain_name=sasl_kerberos_domain_name,
            sasl_oauth_token_provider=sasl_oauth_token_provider,
        )
        self._bootstrap_servers = bootstrap_servers
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._make_wire_client = partial(Client, servers_of(bootstrap_servers), **options)
        with TRANSLATED:
            self.wire_client: Client = self._make_wire_client()
        self.cluster: ClusterMetadata = ClusterMetadata(lambda: self._metadata.snapshot)
        self._following = ExitStack()
        self._is_open = False

    def __repr__(self) -> str:
        return f"<AIOKafkaClient client_id={self._client_id}>"

    @property
    def hosts(self) -> list[tuple[str, int, socket.AddressFamily]]:
        """The bootstrap addresses, each with its address family: AF_UNSPEC for a name."""
        addresses = parse_servers(servers_of(self._bootstrap_servers))
        return [(at.host, at.port, _family(at.host)) for at in addresses]

    async def bootstrap(self) -> None:
        """Connect to a bootstrap server, and request the metadata; repeated calls request it anew.

        Raises:
            KafkaConnectionError: no server answered as a broker; the message has each server's error.
        """
        if self._is_open:
            await self.force_metadata_update()
            return
        try:
            await self.wire_client.open()
            self._is_open = True
        except own.UsageError as error:
            raise translated(error) from error
        except own.KafkaError as error:
            raise KafkaConnectionError(str(error)) from error

    async def close(self) -> None:
        """Close all connections; a client that is closed, or was not started, stays as it is."""
        self._following.close()
        self._is_open = False
        with TRANSLATED:
            await self.wire_client.close()

    async def _reset(self) -> None:
        """Close all connections after a start that failed, so that the client can be started again."""
        with anyio.CancelScope(shield=True):
            await self.close()
        self.wire_client = self._make_wire_client()  # one whose opening has failed cannot be opened again

    # --- metadata ----------------------------------------------------------------------------------------

    @property
    def _metadata(self) -> Any:
        return self.wire_client._cluster.metadata

    def add_topic(self, topic: str) -> Awaitable[bool]:
        """Request the metadata of a topic from now on; await the result to wait until it is known."""
        self._metadata.track_topics((topic,))
        if topic in self._metadata.snapshot.topics:
            return _Begun(_return_true)
        return self.force_metadata_update()

    def set_topics(self, topics: Iterable[str]) -> Awaitable[bool]:
        """Request the metadata of these topics from now on, or of all if there is none; await the result to wait."""
        wanted = tuple(topics)
        self._following.close()
        if wanted:
            self._following.enter_context(self._metadata.following(lambda: wanted))
        else:
            self._following.enter_context(self._metadata.all_topics())
        return self.force_metadata_update()

    def force_metadata_update(self) -> Awaitable[bool]:
        """Request the metadata anew; await the result to wait for it, and to get whether it has arrived."""
        seen = self._metadata.snapshot
        self._metadata.mark_stale(seen)

        async def wait() -> bool:
            try:
                await self._metadata.refresh(seen, self._deadline())
            except own.KafkaError:
                return False
            return True

        return _Begun(wait)

    async def fetch_all_metadata(self) -> ClusterMetadata:
        """Return the metadata of all topics."""
        with TRANSLATED, self._metadata.all_topics():
            snapshot = await self._metadata.refresh(self._metadata.snapshot, self._deadline())
        return ClusterMetadata(lambda: snapshot)

    async def _wait_on_metadata(self, topic: str) -> set[int]:
        """Return the partitions of a topic; wait until they are known. Instrumentations call this method."""
        with TRANSLATED:
            known = await self._metadata.topic(topic, self._deadline())
        return {partition.index for partition in known.partitions}

    def _deadline(self) -> Any:
        return self.wire_client._cluster.deadline(self._request_timeout_ms / 1000)

    # --- brokers -----------------------------------------------------------------------------------------

    def get_random_node(self) -> int | None:
        """Return the id of any broker; None if none is known."""
        nodes = list(self._metadata.snapshot.nodes)
        return random.choice(nodes) if nodes else None  # noqa: S311, no secret

    async def ready(self, node_id: int, *, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> bool:
        """Return whether a connection to the broker is open, or can be opened."""
        node = self._metadata.snapshot.nodes.get(node_id)
        if node is None:
            return False
        try:
            await self.wire_client._cluster.connection(node, deadline=self._deadline())
        except own.KafkaError:
            return False
        return True

    @overload
    async def send(self, node_id: int, request: Request[R], *, group: ConnectionGroup = ...) -> R: ...
    @overload
    async def send(self, node_id: int, request: TheirRequest, *, group: ConnectionGroup = ...) -> Any: ...
    async def send(
        self, node_id: int, request: Request[Any] | TheirRequest, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> Any:
        """Send a request of :mod:`aiokafkawire.protocol.messages` to a broker, and return the response.

        Raises:
            NodeNotReadyError: the broker cannot be reached.
            TypeError: the request is of another kind, such as aiokafka's own.
        """
        if isinstance(request, TheirRequest):
            return request.answer(await self.send(node_id, request.message))
        if not isinstance(request, Request):
            raise TypeError(f"a request must be one of aiokafkawire.protocol.messages, got {shown(request)}")
        if not await self.ready(node_id):
            raise NodeNotReadyError(f"broker {node_id} cannot be reached, or is not known")
        with TRANSLATED:
            return await self.wire_client.request(request, broker=node_id)

    async def coordinator_lookup(self, coordinator_type: int, coordinator_key: str) -> int:
        """Return the id of the broker that coordinates a group, or the transactions of a ``transactional_id``."""
        with TRANSLATED:
            kind = CoordinatorType(coordinator_type)
            node = await self.wire_client._cluster.coordinator(kind, coordinator_key, self._deadline())
        return node.node_id


async def _return_true() -> bool:
    return True


def _family(host: str) -> socket.AddressFamily:
    try:
        version = ip_address(host).version
    except ValueError:
        return socket.AF_UNSPEC
    return socket.AF_INET if version == 4 else socket.AF_INET6
