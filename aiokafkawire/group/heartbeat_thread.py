"""A thread that sends heartbeats while user code blocks the event loop, over its own blocking connection."""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias, TypeVar

from ..errors import ConnectionLost, ErrorCode, KafkaError, UnsupportedVersion, broker_error
from ..network.connection import ANY_VERSION
from ..network.pipeline import Pipeline
from ..protocol.api import choose_version
from ..protocol.compiler import decode
from ..protocol.messages.group import HeartbeatRequest
from ..protocol.messages.metadata import ApiVersionsRequest
from ..protocol.pre_api_versions import SPOKEN_UNTOLD
from ..protocol.schema import Request, Response, Versions
from ..types import Address
from .blocking_connection import BlockingConnection
from .heartbeat_schedule import HeartbeatAction, HeartbeatMember, HeartbeatReport, HeartbeatResult, HeartbeatSchedule
from .thread_worker import ThreadWorker, Wait, wait_for

__all__ = ("Connect", "HeartbeatThread", "LogIn", "connect_tcp")

Connect: TypeAlias = Callable[[Address, float], socket.socket]
"""Opens a blocking connection, ready for Kafka's requests, within so many seconds; raises OSError if it fails."""

LogIn: TypeAlias = Callable[[BlockingConnection, float], float]
"""Authenticates on a connection before a deadline of the clock, and returns for how many seconds that is valid."""

R = TypeVar("R", bound=Response)

_MAX_FRAME: Final = 1024 * 1024
_READ: Final = 64 * 1024

_log = logging.getLogger("aiokafkawire.group")


def connect_tcp(broker: Address, within: float) -> socket.socket:
    """Open a plain TCP connection, within ``within`` seconds for each of the name's addresses.

    Raises:
        OSError: it cannot be opened.
    """
    return socket.create_connection(broker, within)


class _Answer:
    """The response handler of the request in flight."""

    frame: bytes | None = None
    position = 0

    def resolve(self, frame: bytes, position: int) -> None:
        self.frame, self.position = frame, position

    def fail(self, error: KafkaError) -> None:
        """Ignore the error: the thread that waits has raised it itself."""


class _Connection:
    """A blocking connection to a broker that sends one request at a time."""

    until = float("inf")
    """When its authentication expires, on the thread's clock."""

    def __init__(self, sock: socket.socket, broker: Address, client_id: str, now: Callable[[], float]) -> None:
        self.broker, self._socket, self._now = broker, sock, now
        self.versions: Mapping[int, Versions] = {}
        self._pipeline = Pipeline(client_id=client_id, where=str(broker), max_frame=_MAX_FRAME)

    def negotiate_versions(self, deadline: float) -> None:
        # Version 0 suffices: every broker with ApiVersions knows it.
        answer = self.ask(ApiVersionsRequest(), 0, deadline)
        if answer.error_code != ErrorCode.NONE:
            raise broker_error(answer.error_code, f"{self.broker} to ApiVersions")
        self.versions = {api.api_key: Versions(api.min_version, api.max_version) for api in answer.api_keys}

    def ask(self, request: Request[R], version: int, deadline: float) -> R:
        handler = _Answer()
        frame = self._pipeline.send(request, version, handler)
        self._socket.settimeout(self._left(deadline))
        self._socket.sendall(frame)
        while handler.frame is None:
            self._socket.settimeout(self._left(deadline))
            data = self._socket.recv(_READ)
            if not data:
                raise ConnectionLost(f"{self.broker} closed the heartbeat thread's connection")
            self._pipeline.receive(data)
        answer: Any = type(request).response
        return decode(answer, version, handler.frame, handler.position)  # type: ignore[no-any-return]

    def _left(self, deadline: float) -> float:
        left = deadline - self._now()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    def cut(self) -> None:
        """Shut the connection down from another thread, so that a waiting one fails at once."""
        with contextlib.suppress(OSError):
            # Not SSLSocket.shutdown(): it would change the TLS state that the other thread is using.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


class HeartbeatThread:
    """Sends heartbeats for a member whose event loop is blocked; :mod:`.heartbeat_schedule` has the rules.

    The event loop calls the methods. None of them waits for the network, none raises, and after a fork none does
    anything in the child. The thread starts with the first membership.

    Args:
        max_poll_interval: for how many seconds after the last poll() it sends heartbeats (KIP-62).
        connect: opens a connection.
        log_in: authenticates on each connection, if needed.
        on_report: is called in the thread for each report. Without it, call :meth:`reports` regularly.
        backoff: the backoff after the first failure, in seconds; it doubles up to ``backoff_max``.
        now: a monotonic clock in seconds, which may be read in any thread.
        wait: how the thread waits.
    """

    def __init__(
        self,
        *,
        max_poll_interval: float,
        connect: Connect = connect_tcp,
        log_in: LogIn | None = None,
        on_report: Callable[[], None] | None = None,
        backoff: float = 0.05,
        backoff_max: float = 1.0,
        now: Callable[[], float] = time.monotonic,
        wait: Wait = wait_for,
    ) -> None:
        self._connect, self._log_in, self._on_report, self._now = connect, log_in, on_report, now
        self._schedule = HeartbeatSchedule(
            max_poll_interval=max_poll_interval, backoff=backoff, backoff_max=backoff_max
        )
        self._reports: SimpleQueue[HeartbeatReport] = SimpleQueue()
        # Guards the schedule and the connection. Never held while a thread waits.
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._worker = ThreadWorker("aiokafkawire-heartbeat", self._step, on_end=self._close_connection, wait=wait)

    # --- the loop's side -----------------------------------------------------------------------------------

    def keep(self, member: HeartbeatMember | None) -> None:
        """Send heartbeats for this membership from now on, or for none: during a JoinGroup or LeaveGroup, and after its
        end.

        Call it when the membership was just confirmed. An equal membership changes nothing: an error that has ended it
            still holds.
        has ended it stays true.
        """
        if not self._worker.is_here:
            return
        with self._lock:
            if not self._schedule.keep(member, self._now()):
                return
            if self._connection is not None and member is not None and member.broker != self._connection.broker:
                self._connection.cut()  # it may be waiting for a dead broker
        if member is not None:
            self._worker.start()
        self._worker.wake()

    def beat(self) -> None:
        """Note that the event loop has received a heartbeat response."""
        if self._worker.is_here:
            with self._lock:
                self._schedule.beat(self._now())

    def polled(self) -> None:
        """Note that user code has called poll()."""
        if self._worker.is_here:
            with self._lock:
                was_over = self._schedule.polled(self._now())
            if was_over:
                self._worker.wake()

    def reports(self) -> list[HeartbeatReport]:
        """Return the new reports about the current membership; drop those about others."""
        if not self._worker.is_here:
            return []
        reports = []
        with contextlib.suppress(Empty):
            while True:
                reports.append(self._reports.get_nowait())
        with self._lock:
            return [report for report in reports if report.member == self._schedule.member]

    def close(self, within: float = 1.0) -> bool:
        """End the thread and wait for its end, at most ``within`` seconds; return whether it has ended. May be
        repeated.

        A thread that waits for a response ends at once. One that is connecting or resolving a name ends after that,
        without sending anything.
        """
        if not self._worker.is_here:
            return True
        self._worker.end()
        with self._lock:
            if self._connection is not None:
                self._connection.cut()
        return self._worker.join(within)

    # --- the thread's side ---------------------------------------------------------------------------------

    def _step(self) -> float | None:
        with self._lock:
            now = self._now()
            do, wait = self._schedule.step(now)
            member = self._schedule.member
        if do is HeartbeatAction.CLOSE:
            self._close_connection()
        elif member is not None and do is HeartbeatAction.REPORT_TIMEOUT:
            self._report(HeartbeatReport(member, HeartbeatResult.POLL_TIMEOUT, now))
        elif member is not None and do is HeartbeatAction.BEAT:
            self._report(self._beat(member, now))
        return wait

    def _beat(self, member: HeartbeatMember, asked_at: float) -> HeartbeatReport | None:
        """Send a heartbeat and return the report of its result."""
        try:
            code = self._ask(member, asked_at + member.request_timeout)
        except UnsupportedVersion as refusal:
            with self._lock:
                return self._schedule.refused(member, refusal, self._now())
        except Exception as cause:  # ``connect`` and ``log_in`` may raise any exception
            self._close_connection()
            error = cause
            if not isinstance(error, KafkaError):
                error = ConnectionLost(f"the heartbeat thread received no response from {member.broker}: {cause}")
                error.__cause__ = cause
            with self._lock:
                return self._schedule.failed(member, error, self._now())
        with self._lock:
            return self._schedule.answered(member, code, asked_at, self._now())

    def _ask(self, member: HeartbeatMember, deadline: float) -> int:
        connection = self._connection
        if connection is None or connection.broker != member.broker or self._now() >= connection.until:
            self._close_connection()
            connection = self._open(member, deadline)
        # Encoding fails in a version without static members (KIP-345).
        version = choose_version(HeartbeatRequest, connection.versions, ANY_VERSION, str(connection.broker))
        request = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
        )
        return connection.ask(request, version, deadline).error_code

    def _open(self, member: HeartbeatMember, deadline: float) -> _Connection:
        sock = self._connect(member.broker, deadline - self._now())
        connection = _Connection(sock, member.broker, member.client_id, self._now)
        with self._lock:
            self._connection = connection
            if self._worker.ending:
                connection.cut()
        if member.release is not None:
            connection.versions = SPOKEN_UNTOLD[member.release]
        else:
            connection.negotiate_versions(deadline)
        if self._log_in is not None:
            connection.until = self._now() + self._log_in(connection, deadline)
        return connection

    def _close_connection(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _report(self, report: HeartbeatReport | None) -> None:
        if report is None or self._worker.ending:
            return
        self._reports.put(report)
        if self._on_report is not None:
            try:
                self._on_report()
            except Exception:  # the loop may be closed; reports() returns it later
                _log.debug("the heartbeat thread cannot report to the event loop", exc_info=True)
