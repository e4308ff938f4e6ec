"""A proxy between Kafka clients and a cluster, for tests of clients on real brokers.

async with Tap("kafka:9092") as tap:
    tap.on(ApiKey.PRODUCE, drop="after")
    ...  # any Kafka client, at tap.bootstrap
"""

import logging
import os
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream

from ...argument_checks import INT32, is_integer, shown
from ...config.client import parse_servers
from ...errors import ConfigError
from ...runtime import Owner
from ...types import Address
from ..broker_options import check_index, check_listening, check_name
from ..faults.request_log import RequestLog
from ..faults.rule_control import RuleControl
from ..faults.rules import FaultRules
from .journal import Journal
from .listeners import TapListener, TapListeners
from .state import TapState
from .tap_connection import TapConnection
from .tap_events import TapEvent, TapNotice

__all__ = ("Tap",)

_UNREACHABLE: Final = (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError)

_log = logging.getLogger(__name__)


class Tap(RuleControl):
    """A proxy of a Kafka cluster that decodes the traffic of any client and applies fault rules to it.

    1. Clients connect to :attr:`bootstrap`. In all responses the tap replaces the addresses of brokers by its own, one
       port for each broker, so that all connections go through it.
    2. Fault rules and the request log are those of :class:`~aiokafkawire.testing.broker.Broker`. They apply to requests
       of known APIs and versions; the tap passes all other bytes on as they are, and reports them.
    3. Frames that no rule and no address changes are passed on byte for byte. While one side does not read, the tap
       does not read the other one either.
    4. Leaving the context closes every connection at once and leaves no task behind. Unexpected exceptions, such as of
       a rule's function, close the client's connection; they are kept in ``faults``, and leaving the context raises
       them.

    Args:
        to: the brokers to connect to, as ``"host:port"``; of several, separated by commas, the first that is reached.
        host: the address to listen on.
        port: the port for :attr:`bootstrap`; brokers get the next free ports. 0 means any free ports.
        advertised_host: the host that clients connect to, if it is not ``host``. By default, if ``host`` is "0.0.0.0"
            or "::", it is the address at which the client has connected.
        tls: the context for TLS to the brokers; clients connect to the tap without TLS.
        journal: a pcap file to write, of the bytes that clients send and receive; None for no journal. It contains
            the clients' credentials.
        on_event: called with each :class:`~.tap_events.TappedRequest`, :class:`~.tap_events.TappedResponse` and
            :class:`~.tap_events.TapNotice`, in the order of the traffic. It must not block.
        connect_timeout_ms: how long to try to connect to a broker.
        strict: whether leaving the context raises UnusedFaultRules if ``is_met`` of a fault rule is False.

    Raises:
        ConfigError: an argument is invalid; the message says what is valid. It is a ValueError, too.
    """

    def __init__(
        self,
        to: str,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertised_host: str | None = None,
        tls: ssl.SSLContext | None = None,
        journal: str | os.PathLike[str] | None = None,
        on_event: Callable[[TapEvent], None] | None = None,
        connect_timeout_ms: int = 10_000,
        strict: bool = False,
    ) -> None:
        self.faults: list[Exception] = []
        """Unexpected exceptions since the tap was opened; notes name the connection."""
        _check_hosts(host, advertised_host)
        _check_port(port)
        check_listening(1, port, tls)
        if journal is not None and not isinstance(journal, str | os.PathLike):
            raise ConfigError(f"journal is {shown(journal)}: the path of a file, or None")
        if on_event is not None and not callable(on_event):
            raise ConfigError(f"on_event is {shown(on_event)}: a function of an event, or None")
        if not is_integer(connect_timeout_ms, 1, INT32):
            raise ConfigError(f"connect_timeout_ms is {shown(connect_timeout_ms)}: an integer from 1 to {INT32}")
        if not isinstance(strict, bool):
            raise ConfigError(f"strict is {shown(strict)}: True or False")
        self._targets = parse_servers(to)
        self._host, self._port, self._advertised_host, self._tls = host, port, advertised_host, tls
        self._journal = None if journal is None else Journal(Path(journal))
        self._on_event = on_event
        self._connect_timeout = connect_timeout_ms / 1000
        self._strict = strict
        self._rules, self._log_of_requests = FaultRules(), RequestLog()
        self._numbers = count(1)
        self._owner: Owner | None = None
        self._state: TapState | None = None

    @property
    def bootstrap(self) -> str:
        """The value for clients' ``bootstrap.servers``. Raises RuntimeError if the tap is not open."""
        return str(self._open_state.listeners.first)

    @property
    def nodes(self) -> dict[int, int]:
        """The port of the tap for each broker that a response has named, by the broker's id."""
        return {node_id: listener.port for node_id, listener in self._open_state.listeners.nodes.items()}

    @property
    def requests(self) -> RequestLog:
        """The log of the requests received since the tap was opened."""
        return self._log_of_requests

    @property
    def _fault_rules(self) -> FaultRules:
        return self._rules

    @property
    def _known_nodes(self) -> None:
        return None

    @property
    def _open_state(self) -> TapState:
        if self._state is None:
            raise RuntimeError("this tap is not open: use it inside its 'async with'")
        return self._state

    # --- orders ----------------------------------------------------------------------------------------------------

    def clear_orders(self) -> None:
        """Remove all fault rules, thaw brokers and resume partitions. Held requests stay held until released."""
        self._rules.clear()

    def freeze_node(self, node_id: int) -> None:
        """Keep requests to a broker, and its responses, until :meth:`thaw_node`; clients can connect.

        Raises:
            KeyError: no response has named such a broker.
        """
        check_index("a broker's id", node_id)
        self._open_state.listeners.of_node(node_id)
        self._rules.freeze(node_id)

    def thaw_node(self, node_id: int) -> None:
        """Pass on the requests and responses of a frozen broker again; do nothing for another broker."""
        check_index("a broker's id", node_id)
        self._rules.thaw(node_id)

    async def refuse_connections(self, node_id: int) -> None:
        """Refuse new connections to a broker and keep the existing ones. Raises as :meth:`freeze_node`."""
        check_index("a broker's id", node_id)
        for listener in self._open_state.listeners.of_node(node_id):
            await listener.refuse()

    async def accept_connections(self, node_id: int) -> None:
        """Accept connections to a broker again, at its previous port.

        Raises:
            KeyError: no response has named such a broker.
            OSError: another process took the port.
        """
        check_index("a broker's id", node_id)
        for listener in self._open_state.listeners.of_node(node_id):
            await listener.accept()

    def pause_partition(self, topic: str, partition: int = 0) -> None:
        """Let fetches return no records of a partition, and let produce requests wait, until :meth:`resume_partition`.

        Records that a share group has acquired meanwhile are delivered again when their locks end.
        """
        check_name("a topic's name", topic)
        check_index("a partition", partition)
        self._rules.pause(topic, partition)

    def resume_partition(self, topic: str, partition: int = 0) -> None:
        """Let fetches and produce requests of a paused partition continue."""
        check_name("a topic's name", topic)
        check_index("a partition", partition)
        self._rules.resume(topic, partition)

    # --- opening and closing ---------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the tap.

        Raises:
            OSError: the port is not available, or the journal cannot be created.
            RuntimeError: the tap is open already.
        """
        if self._owner is not None:
            raise RuntimeError("this tap is open already")
        self.faults.clear()
        self._log_of_requests.clear()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._stop)
            if self._journal is not None:
                self._journal.open()
            owner = self._owner = Owner(self._failed)
            await owner.open()
            listeners = TapListeners(owner, self._serve, self._host, self._port, self._advertised_host, self._emit)
            self._state = TapState(
                rules=self._rules,
                requests=self._log_of_requests,
                listeners=listeners,
                emit=self._emit,
                on_fault=self._failed,
                journal=self._journal,
            )
            await listeners.start(self._targets)
            stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()
        if error is not None:
            for fault in self.faults:
                error.add_note(f"the tap failed, too: {fault!r}")
        elif len(self.faults) == 1:
            raise self.faults[0]
        elif self.faults:
            raise ExceptionGroup("the tap failed", self.faults)
        elif self._strict:
            self._rules.check()

    async def _stop(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()
        self._state = None
        if self._journal is not None:
            self._journal.close()

    # --- connections -----------------------------------------------------------------------------------------------

    async def _serve(self, listener: TapListener, client: SocketStream) -> None:
        """Serve one connection of a client to its end."""
        number = next(self._numbers)
        try:
            peer = _address(client.extra(SocketAttribute.remote_address))  # noqa: S610  # not Django's extra
            local = _address(client.extra(SocketAttribute.local_address))  # noqa: S610
            broker = await self._connect(listener, f"connection {number} of {peer}")
            if broker is not None:
                await TapConnection(self._open_state, listener, number, client, broker, (peer, local)).run()
        except anyio.TypedAttributeLookupError:
            return  # the client has disconnected at once
        except Exception as fault:
            # A bug that shows in one connection must not end other connections.
            self._failed(fault)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(client)

    async def _connect(self, listener: TapListener, name: str) -> ByteStream | None:
        """Connect to the first broker of a listener that can be reached; None if there is none."""
        for host, port in listener.targets:
            try:
                with anyio.fail_after(self._connect_timeout):
                    if self._tls is None:
                        return await anyio.connect_tcp(host, port)
                    return await anyio.connect_tcp(
                        host, port, tls=True, ssl_context=self._tls, tls_hostname=host, tls_standard_compatible=False
                    )
            except _UNREACHABLE as error:
                # The text of anyio's own error has no reason.
                cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
                kind = "connection" if self._tls is None else "TLS connection"
                why = str(cause) or f"no {kind} within {self._connect_timeout:g} s"
                self._emit(TapNotice(f"{name}: cannot connect to {Address(host, port)}: {why}"))
        return None

    def _emit(self, event: TapEvent) -> None:
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception as fault:  # it must not end the connection halfway
                self._failed(fault)
        elif isinstance(event, TapNotice):
            _log.info("%s", event.text)

    def _failed(self, fault: Exception) -> None:
        _log.error("the tap failed: %r", fault, exc_info=fault)
        self.faults.append(fault)


def _address(given: Any) -> Address:
    host, port = tuple(given)[:2]
    return Address(str(host), int(port))


def _check_hosts(host: Any, advertised_host: Any) -> None:
    for name, text in (("host", host), ("advertised_host", advertised_host)):
        is_absent = name == "advertised_host" and text is None
        if not is_absent and (not isinstance(text, str) or not text or not text.isprintable()):
            raise ConfigError(f"{name} is {shown(text)}: a string")


def _check_port(port: Any) -> None:
    if port is None:
        raise ConfigError("port is None: from 1 to 65535, or 0 for any free port")
