"""A thread that keeps a membership while user code blocks the event loop, over a blocking connection of its own."""

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
"""Opens a blocking connection, ready for Kafka's requests, within so many seconds; raises OSError if it cannot."""

LogIn: TypeAlias = Callable[[BlockingConnection, float], float]
"""Logs in on a connection until a moment of the clock, and says for how many seconds that holds."""

R = TypeVar("R", bound=Response)

_MAX_FRAME: Final = 1024 * 1024
_READ: Final = 64 * 1024

_log = logging.getLogger("aiokafkawire.group")


def connect_tcp(broker: Address, within: float) -> socket.socket:
    """A plain TCP connection, within so many seconds for each of the name's addresses.

    Raises:
        OSError: there is none.
    """
    return socket.create_connection(broker, within)


class _Answer:
    """The slot of the one request that is under way."""

    frame: bytes | None = None
    position = 0

    def resolve(self, frame: bytes, position: int) -> None:
        self.frame, self.position = frame, position

    def fail(self, error: KafkaError) -> None:
        """Whoever waits is who has met the error."""


class _Line:
    """A blocking connection to a broker, for one request after the other."""

    until = float("inf")
    """When its login is about to end, on the thread's clock."""

    def __init__(self, sock: socket.socket, broker: Address, client_id: str, now: Callable[[], float]) -> None:
        self.broker, self._socket, self._now = broker, sock, now
        self.versions: Mapping[int, Versions] = {}
        self._pipeline = Pipeline(client_id=client_id, broker=str(broker), max_frame=_MAX_FRAME)

    def agree_on_versions(self, deadline: float) -> None:
        # Every broker that tells versions knows version 0 of the question, and nothing newer in the answer is needed.
        answer = self.ask(ApiVersionsRequest(), 0, deadline)
        if answer.error_code != ErrorCode.NONE:
            raise broker_error(answer.error_code, f"{self.broker} to ApiVersions")
        self.versions = {one.api_key: Versions(one.min_version, one.max_version) for one in answer.api_keys}

    def ask(self, request: Request[R], version: int, deadline: float) -> R:
        slot = _Answer()
        frame = self._pipeline.send(request, version, slot)
        self._socket.settimeout(self._left(deadline))
        self._socket.sendall(frame)
        while slot.frame is None:
            self._socket.settimeout(self._left(deadline))
            data = self._socket.recv(_READ)
            if not data:
                raise ConnectionLost(f"{self.broker} closed the connection of the heartbeat thread")
            self._pipeline.receive(data)
        answer: Any = type(request).response
        return decode(answer, version, slot.frame, slot.position)  # type: ignore[no-any-return]

    def _left(self, deadline: float) -> float:
        left = deadline - self._now()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    def cut(self) -> None:
        """End it from another thread: whoever waits for it hears of that at once."""
        with contextlib.suppress(OSError):
            # Not TLS's own, which would have this thread touch what the other is using.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


class HeartbeatThread:
    """Sends heartbeats for a member whose event loop is silent; :mod:`.heartbeat_pace` has the rules.

    The methods are for the loop's side. None of them waits for the network, none raises, and after a fork none does
    anything in the child. The thread begins with the first member to keep.

    Args:
        max_poll_interval: how long it keeps a member that asks for no records, in seconds (KIP-62).
        connect: opens its connections.
        log_in: logs in on each, where that is wanted.
        on_report: called in the thread whenever there is a report. Without it, look by :meth:`reports` now and then.
        backoff: the first rest after a failure, in seconds; it doubles up to ``backoff_max``.
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
        self._pace = HeartbeatSchedule(max_poll_interval=max_poll_interval, backoff=backoff, backoff_max=backoff_max)
        self._reports: SimpleQueue[HeartbeatReport] = SimpleQueue()
        # Guards the pace, and which connection there is. Never held while anything waits.
        self._lock = threading.Lock()
        self._line: _Line | None = None
        self._worker = ThreadWorker("aiokafkawire-heartbeat", self._turn, on_end=self._hang_up, wait=wait)

    # --- the loop's side -----------------------------------------------------------------------------------

    def keep(self, member: HeartbeatMember | None) -> None:
        """Keep this member from now on, or none: while it joins or leaves, and once it is lost.

        Call it when the membership was just confirmed. A member equal to the one that is kept changes nothing: what
        has ended it stays true.
        """
        if not self._worker.is_here:
            return
        with self._lock:
            if not self._pace.keep(member, self._now()):
                return
            if self._line is not None and member is not None and member.broker != self._line.broker:
                self._line.cut()  # it may be waiting for a broker that is dead
        if member is not None:
            self._worker.start()
        self._worker.wake()

    def beat(self) -> None:
        """The loop itself has had a heartbeat answered."""
        if self._worker.is_here:
            with self._lock:
                self._pace.beat(self._now())

    def polled(self) -> None:
        """User code has asked for records."""
        if self._worker.is_here:
            with self._lock:
                was_over = self._pace.polled(self._now())
            if was_over:
                self._worker.wake()

    def reports(self) -> list[HeartbeatReport]:
        """What was heard about the member that is kept, since the last call; what is about another is dropped."""
        if not self._worker.is_here:
            return []
        heard = []
        with contextlib.suppress(Empty):
            while True:
                heard.append(self._reports.get_nowait())
        with self._lock:
            return [report for report in heard if report.member == self._pace.member]

    def close(self, within: float = 1.0) -> bool:
        """End the thread, and wait for that, ``within`` so many seconds at most; whether it has ended. May be repeated.

        A thread that waits for an answer ends at once. One that is connecting, or looking up a name, ends when that
        does, and sends nothing any more.
        """
        if not self._worker.is_here:
            return True
        self._worker.end()
        with self._lock:
            if self._line is not None:
                self._line.cut()
        return self._worker.join(within)

    # --- the thread's side ---------------------------------------------------------------------------------

    def _turn(self) -> float | None:
        with self._lock:
            now = self._now()
            do, wait = self._pace.step(now)
            member = self._pace.member
        if do is HeartbeatAction.HANG_UP:
            self._hang_up()
        elif member is not None and do is HeartbeatAction.TELL_OVER:
            self._tell(HeartbeatReport(member, HeartbeatResult.POLL_INTERVAL_OVER, now))
        elif member is not None and do is HeartbeatAction.BEAT:
            self._tell(self._beat(member, now))
        return wait

    def _beat(self, member: HeartbeatMember, asked_at: float) -> HeartbeatReport | None:
        """Send a heartbeat; what came of it."""
        try:
            code = self._ask(member, asked_at + member.request_timeout)
        except UnsupportedVersion as refusal:
            with self._lock:
                return self._pace.refused(member, refusal, self._now())
        except Exception as cause:  # a connection of another's making may fail in a way of its own
            self._hang_up()
            error = cause
            if not isinstance(error, KafkaError):
                error = ConnectionLost(f"the heartbeat thread had no answer from {member.broker}: {cause}")
                error.__cause__ = cause
            with self._lock:
                return self._pace.failed(member, error, self._now())
        with self._lock:
            return self._pace.answered(member, code, asked_at, self._now())

    def _ask(self, member: HeartbeatMember, deadline: float) -> int:
        line = self._line
        if line is None or line.broker != member.broker or self._now() >= line.until:
            self._hang_up()
            line = self._open(member, deadline)
        # A version that cannot name a static member (KIP-345) refuses to be encoded.
        version = choose_version(HeartbeatRequest, line.versions, ANY_VERSION, str(line.broker))
        request = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
        )
        return line.ask(request, version, deadline).error_code

    def _open(self, member: HeartbeatMember, deadline: float) -> _Line:
        sock = self._connect(member.broker, deadline - self._now())
        line = _Line(sock, member.broker, member.client_id, self._now)
        with self._lock:
            self._line = line
            if self._worker.ending:
                line.cut()
        if member.release is not None:
            line.versions = SPOKEN_UNTOLD[member.release]
        else:
            line.agree_on_versions(deadline)
        if self._log_in is not None:
            line.until = self._now() + self._log_in(line, deadline)
        return line

    def _hang_up(self) -> None:
        with self._lock:
            line, self._line = self._line, None
            if line is not None:
                line.close()

    def _tell(self, report: HeartbeatReport | None) -> None:
        if report is None or self._worker.ending:
            return
        self._reports.put(report)
        if self._on_report is not None:
            try:
                self._on_report()
            except Exception:  # the loop may be closed; whoever reads the reports hears of them later
                _log.debug("the heartbeat thread cannot report to the event loop", exc_info=True)
