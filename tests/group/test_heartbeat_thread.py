"""Who blocks the event loop stays in the group, for as long as it may."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import attrs
import pytest
from anyio.from_thread import start_blocking_portal
from support.apache_kafka import ApacheKafka
from support.group_members import GroupMember, new_group
from support.raw_client import RawClient
from support.scripted_broker import answer_frame, api_versions
from support.thread_clock import ThreadClock

from aiokafkawire.config import parse_servers
from aiokafkawire.errors import ConnectionLost, ErrorCode, NotCoordinator, UnsupportedVersion, WireError
from aiokafkawire.group.blocking_connection import BlockingConnection
from aiokafkawire.group.heartbeat_schedule import (
    LINGER,
    HeartbeatAction,
    HeartbeatMember,
    HeartbeatReport,
    HeartbeatResult,
    HeartbeatSchedule,
)
from aiokafkawire.group.heartbeat_thread import HeartbeatThread, connect_tcp
from aiokafkawire.protocol.api import ApiKey, RequestHeader, request_header_version
from aiokafkawire.protocol.compiler import decode, decode_prefix
from aiokafkawire.protocol.messages.group import HeartbeatRequest, HeartbeatResponse
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest
from aiokafkawire.protocol.schema import Request, Versions
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

MEMBER = HeartbeatMember(Address("b", 1), "g", 7, "m", interval=2.0, request_timeout=32.0)
NEXT = attrs.evolve(MEMBER, generation_id=8)
LOST = ConnectionLost("gone")


# --- when, and until when ------------------------------------------------------------------------------------------


def pace(member: HeartbeatMember | None = MEMBER) -> HeartbeatSchedule:
    made = HeartbeatSchedule(max_poll_interval=20.0, backoff=0.5, backoff_max=1.0)
    made.keep(member, 0.0)
    return made


def test_nothing_is_due_without_a_member() -> None:
    assert pace(None).step(100.0) == (HeartbeatAction.WAIT, None)


@pytest.mark.parametrize(
    ("now", "due"),
    [
        (0.0, (HeartbeatAction.WAIT, 3.0)),  # one and a half intervals after the membership was confirmed
        (2.5, (HeartbeatAction.WAIT, 0.5)),
        (3.0, (HeartbeatAction.BEAT, 0.0)),
        (19.5, (HeartbeatAction.BEAT, 0.0)),
        (20.0, (HeartbeatAction.REPORT_TIMEOUT, 0.0)),
    ],
)
def test_a_silent_loop_is_helped_until_the_poll_interval_is_over(
    now: float, due: tuple[HeartbeatAction, float]
) -> None:
    assert pace().step(now) == due


def test_a_loop_that_is_heard_of_needs_no_help() -> None:
    keeping = pace()
    for now in (2.0, 4.0, 6.0):
        keeping.beat(now)
        assert keeping.step(now + 1.0) == (HeartbeatAction.WAIT, 2.0)
    assert keeping.step(9.0) == (HeartbeatAction.BEAT, 0.0)


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS])
def test_an_answer_counts_as_a_sign_of_life_from_when_it_was_asked_for(code: ErrorCode) -> None:
    keeping = pace()
    assert keeping.answered(MEMBER, code, 3.0, 3.5) == HeartbeatReport(MEMBER, HeartbeatResult.ANSWER, 3.5, code)
    assert keeping.step(5.0) == (HeartbeatAction.WAIT, 1.0)
    assert keeping.step(6.0) == (HeartbeatAction.BEAT, 0.0)


def test_an_answer_does_not_make_the_loop_older_than_it_is() -> None:
    keeping = pace()
    keeping.beat(3.5)
    keeping.answered(MEMBER, ErrorCode.NONE, 3.0, 4.0)
    assert keeping.step(4.0) == (HeartbeatAction.WAIT, 2.5)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        999,
    ],
)
def test_what_ends_the_membership_ends_the_heartbeats(code: int) -> None:
    keeping = pace()
    report = keeping.answered(MEMBER, code, 3.0, 3.0)
    assert report is not None
    assert (report.result, report.code, report.error is not None) == (HeartbeatResult.ANSWER, code, True)
    assert keeping.step(15.0) == (HeartbeatAction.WAIT, LINGER - 12.0)
    assert not keeping.keep(MEMBER, 15.0)  # it is not less over for being said again
    assert keeping.step(15.0) == (HeartbeatAction.WAIT, LINGER - 12.0)
    assert keeping.keep(NEXT, 15.0)
    assert keeping.step(15.0) == (HeartbeatAction.WAIT, 3.0)


def test_the_end_of_another_membership_is_not_the_end_of_this() -> None:
    keeping = pace()
    keeping.keep(NEXT, 1.0)
    keeping.answered(MEMBER, ErrorCode.ILLEGAL_GENERATION, 1.0, 1.0)
    assert keeping.failed(MEMBER, LOST, 1.0) is None
    assert keeping.step(3.5) == (HeartbeatAction.WAIT, 0.5)
    assert keeping.step(4.0) == (HeartbeatAction.BEAT, 0.0)


def test_after_failures_come_rests_that_double_and_one_report() -> None:
    keeping = pace()
    assert keeping.failed(MEMBER, LOST, 3.0) == HeartbeatReport(MEMBER, HeartbeatResult.NO_ANSWER, 3.0, error=LOST)
    assert keeping.step(3.0) == (HeartbeatAction.WAIT, 0.5)
    assert keeping.failed(MEMBER, LOST, 3.5) is None
    assert keeping.step(3.5) == (HeartbeatAction.WAIT, 1.0)
    assert keeping.failed(MEMBER, LOST, 4.5) is None
    assert keeping.step(4.5) == (HeartbeatAction.WAIT, 1.0)  # the longest
    keeping.answered(MEMBER, ErrorCode.NONE, 5.5, 5.5)
    assert keeping.failed(MEMBER, LOST, 8.5) is not None
    assert keeping.step(8.5) == (HeartbeatAction.WAIT, 0.5)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS],
)
def test_a_coordinator_that_is_elsewhere_is_asked_again(code: ErrorCode) -> None:
    keeping = pace()
    report = keeping.answered(MEMBER, code, 3.0, 3.0)
    assert report is not None
    assert (report.result, report.code) == (HeartbeatResult.NOT_COORDINATOR, code)
    assert keeping.step(3.0) == (HeartbeatAction.WAIT, 0.5)
    assert keeping.answered(MEMBER, code, 3.5, 3.5) is None
    assert keeping.step(4.5) == (HeartbeatAction.BEAT, 0.0)


def test_a_poll_interval_that_is_over_is_told_once_and_may_begin_again() -> None:
    keeping = pace()
    assert keeping.step(20.0) == (HeartbeatAction.REPORT_TIMEOUT, 0.0)
    assert keeping.step(20.0) == (HeartbeatAction.WAIT, None)
    assert keeping.polled(21.0)
    assert not keeping.polled(21.0)
    assert keeping.step(21.0) == (HeartbeatAction.BEAT, 0.0)
    keeping.beat(40.0)
    assert keeping.step(40.0) == (HeartbeatAction.WAIT, 1.0)
    assert keeping.step(41.0) == (HeartbeatAction.REPORT_TIMEOUT, 0.0)


def test_another_generation_is_no_poll() -> None:
    keeping = pace()
    keeping.keep(NEXT, 19.0)
    assert keeping.step(19.0) == (HeartbeatAction.WAIT, 1.0)


def test_a_connection_that_is_not_needed_is_closed_after_a_while() -> None:
    keeping = pace()
    keeping.answered(MEMBER, ErrorCode.NONE, 3.0, 3.0)
    keeping.keep(None, 4.0)
    assert keeping.step(4.0) == (HeartbeatAction.WAIT, LINGER - 1.0)
    assert keeping.step(3.0 + LINGER) == (HeartbeatAction.CLOSE, 0.0)
    assert keeping.step(3.0 + LINGER) == (HeartbeatAction.WAIT, None)


# --- the thread, on a broker whose every answer is decided here ----------------------------------------------------

_REQUESTS: dict[int, type[Request[Any]]] = {one.api_key: one for one in (ApiVersionsRequest, HeartbeatRequest)}
SILENT, SLOW, HANG_UP, GARBAGE = -100, -101, -102, -103
"""In the place of an error code: no answer, one byte of it in time, a closed connection, or what is no answer."""


class Coordinator:
    """Answers heartbeats with ``codes``, and with NONE when these are used up; each connection has a thread."""

    def __init__(self, clock: ThreadClock) -> None:
        self._clock = clock
        self.codes: deque[int] = deque()
        self.spoken: dict[int, Versions] = {ApiKey.API_VERSIONS: Versions(0, 4), ApiKey.HEARTBEAT: Versions(0, 3)}
        self.refuses = False
        self.asked: list[tuple[int, HeartbeatRequest]] = []
        """The versions and heartbeats that came."""
        self.dialled: list[Address] = []
        self.client_ids: set[str | None] = set()
        self.told = 0
        """How often it was asked for its versions."""
        self.waiting = threading.Event()
        """Set when somebody waits for what will not come."""
        self.threads: list[threading.Thread] = []

    def connect(self, broker: Address, within: float) -> socket.socket:
        assert 0 < within <= MEMBER.request_timeout
        self.dialled.append(broker)
        if self.refuses:
            raise ConnectionRefusedError("refused")
        ours, theirs = socket.socketpair()
        self.threads.append(threading.Thread(target=self._serve, args=(theirs,), daemon=True))
        self.threads[-1].start()
        return ours

    def _serve(self, stream: socket.socket) -> None:
        # Who hangs up may leave something unread.
        with contextlib.suppress(ConnectionError), stream, stream.makefile("rb") as reading:
            while size := reading.read(4):
                answer = self._answer(reading.read(int.from_bytes(size)))
                if answer is None:
                    return
                stream.sendall(answer)

    def _answer(self, frame: bytes) -> bytes | None:
        key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
        request = _REQUESTS[key]
        header, position = decode_prefix(RequestHeader, request_header_version(request, version), frame)
        self.client_ids.add(header.client_id)
        if request is ApiVersionsRequest:
            self.told += 1
            return answer_frame(request, version, header.correlation_id, api_versions(self.spoken))
        self.asked.append((version, decode(HeartbeatRequest, version, frame, position)))
        code = self.codes.popleft() if self.codes else 0
        if code == SILENT:
            self.waiting.set()
        if code == SLOW:
            self._clock.move(4.0)
        if code < -1:
            return {SILENT: b"", SLOW: b"\0", HANG_UP: None, GARBAGE: b"HTTP/1.1 400 Bad Request\r\n\r\n"}[code]
        return answer_frame(request, version, header.correlation_id, HeartbeatResponse(error_code=code))


@pytest.fixture
def clock() -> ThreadClock:
    return ThreadClock()


@pytest.fixture
def coordinator(clock: ThreadClock) -> Iterator[Coordinator]:
    made = Coordinator(clock)
    yield made
    for thread in made.threads:  # they end when the client hangs up
        thread.join(5)
        assert not thread.is_alive()


@pytest.fixture
def thread(clock: ThreadClock, coordinator: Coordinator) -> Iterator[HeartbeatThread]:
    made = HeartbeatThread(
        max_poll_interval=20.0,
        connect=coordinator.connect,
        backoff=0.5,
        backoff_max=1.0,
        now=clock.now,
        wait=clock.wait,
    )
    yield made
    assert made.close(5.0)
    assert not running()


def running() -> set[str]:
    return {one.name for one in threading.enumerate() if one.name.startswith("aiokafkawire")}


def heard(thread: HeartbeatThread) -> list[tuple[HeartbeatResult, int]]:
    return [(report.result, report.code) for report in thread.reports()]


ANSWERED = (HeartbeatResult.ANSWER, ErrorCode.NONE)


def test_no_thread_runs_before_there_is_a_member(thread: HeartbeatThread, clock: ThreadClock) -> None:
    thread.polled()
    thread.beat()
    thread.keep(None)
    assert not running()
    thread.keep(MEMBER)
    clock.settle()
    assert running() == {"aiokafkawire-heartbeat"}


def test_it_sends_while_the_loop_is_silent(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    thread.keep(MEMBER)
    clock.advance(2.5)
    assert (coordinator.dialled, thread.reports()) == ([], [])
    assert clock.advance(0.5) == 3.0
    assert heard(thread) == [ANSWERED]
    clock.advance(3.0)
    assert heard(thread) == [ANSWERED]
    asked = HeartbeatRequest(group_id="g", generation_id=7, member_id="m")
    assert coordinator.asked == [(3, asked), (3, asked)]  # the newest version that both know
    assert coordinator.dialled == [MEMBER.broker]
    assert coordinator.client_ids == {"aiokafkawire"}


def test_it_sends_nothing_while_the_loop_does(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    thread.keep(MEMBER)
    for _ in range(5):
        clock.advance(2.0)
        thread.beat()
    assert coordinator.dialled == []


def test_before_a_login_ends_there_is_another_connection(clock: ThreadClock, coordinator: Coordinator) -> None:
    logins = []

    def log_in(line: BlockingConnection, deadline: float) -> float:
        assert ApiKey.HEARTBEAT in line.versions
        logins.append((line.broker, deadline))
        return 4.0

    thread = HeartbeatThread(
        max_poll_interval=20.0, connect=coordinator.connect, log_in=log_in, now=clock.now, wait=clock.wait
    )
    thread.keep(MEMBER)
    began = clock.now()
    for _ in range(3):
        clock.advance(3.0)
        assert heard(thread) == [ANSWERED]
    assert thread.close(5.0)
    assert logins == [(MEMBER.broker, began + MEMBER.request_timeout + late) for late in (3.0, 9.0)]
    assert len(coordinator.dialled) == 2


def test_a_static_member_is_named(thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator) -> None:
    thread.keep(attrs.evolve(MEMBER, group_instance_id="i", client_id="c"))
    clock.advance(3.0)
    assert [asked.group_instance_id for _, asked in coordinator.asked] == ["i"]
    assert coordinator.client_ids == {"c"}


def test_a_coordinator_that_does_not_tell_its_versions_is_not_asked_for_them(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    thread.keep(attrs.evolve(MEMBER, release="0.9.0"))
    clock.advance(3.0)
    assert heard(thread) == [ANSWERED]
    assert [version for version, _ in coordinator.asked] == [0]
    assert coordinator.told == 0


def test_a_broker_that_cannot_be_told_of_static_members_is_asked_once(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    coordinator.spoken[ApiKey.HEARTBEAT] = Versions(0, 2)
    thread.keep(attrs.evolve(MEMBER, group_instance_id="i"))
    clock.advance(3.0)
    clock.advance(6.0)
    (report,) = thread.reports()
    assert isinstance(report.error, UnsupportedVersion)
    assert coordinator.asked == []


def test_a_rebalance_is_told_and_the_member_kept(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    coordinator.codes += [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    thread.keep(MEMBER)
    clock.advance(3.0)
    clock.advance(3.0)
    assert heard(thread) == [(HeartbeatResult.ANSWER, ErrorCode.REBALANCE_IN_PROGRESS)] * 2


def test_it_stops_when_the_membership_has_ended_until_there_is_another(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    coordinator.codes.append(ErrorCode.UNKNOWN_MEMBER_ID)
    thread.keep(MEMBER)
    clock.advance(3.0)
    clock.advance(9.0)
    assert heard(thread) == [(HeartbeatResult.ANSWER, ErrorCode.UNKNOWN_MEMBER_ID)]
    thread.keep(NEXT)
    clock.advance(3.0)
    assert heard(thread) == [ANSWERED]
    assert [asked.generation_id for _, asked in coordinator.asked] == [7, 8]


@pytest.mark.parametrize("now_kept", [NEXT, None])
def test_what_is_about_another_member_is_dropped(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator, now_kept: HeartbeatMember | None
) -> None:
    coordinator.codes.append(ErrorCode.ILLEGAL_GENERATION)
    thread.keep(MEMBER)
    clock.advance(3.0)
    thread.keep(now_kept)
    assert thread.reports() == []
    thread.keep(MEMBER)
    assert thread.reports() == []  # for good


def test_nobody_is_kept_who_asks_for_nothing(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    thread.keep(MEMBER)
    for _ in range(7):
        clock.advance(3.0)
    assert heard(thread) == [ANSWERED] * 6 + [(HeartbeatResult.POLL_TIMEOUT, ErrorCode.NONE)]
    clock.advance(3.0)
    assert thread.reports() == []
    thread.polled()
    clock.settle()
    assert heard(thread) == [ANSWERED]


def test_a_refused_connection_is_tried_again(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    coordinator.refuses = True
    thread.keep(MEMBER)
    assert clock.advance(3.0) == 0.5
    assert clock.advance(0.5) == 1.0
    (report,) = thread.reports()
    assert (report.result, type(report.error)) == (HeartbeatResult.NO_ANSWER, ConnectionLost)
    assert str(report.error) == "the heartbeat thread received no response from b:1: refused"
    coordinator.refuses = False
    clock.advance(1.0)
    assert heard(thread) == [ANSWERED]


@pytest.mark.parametrize(("broken", "error"), [(HANG_UP, ConnectionLost), (GARBAGE, WireError)])
def test_a_connection_that_breaks_is_replaced(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator, broken: int, error: type[Exception]
) -> None:
    coordinator.codes += [0, broken]
    thread.keep(MEMBER)
    clock.advance(3.0)
    clock.advance(3.0)
    clock.advance(0.5)
    answered, failed, again = thread.reports()
    assert (answered.result, failed.result, again.result) == (
        HeartbeatResult.ANSWER,
        HeartbeatResult.NO_ANSWER,
        HeartbeatResult.ANSWER,
    )
    assert type(failed.error) is error
    assert len(coordinator.dialled) == 2


def test_a_coordinator_that_has_moved_is_told_and_the_new_one_asked(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    coordinator.codes.append(ErrorCode.NOT_COORDINATOR)
    thread.keep(MEMBER)
    clock.advance(3.0)
    (report,) = thread.reports()
    assert (report.result, type(report.error)) == (HeartbeatResult.NOT_COORDINATOR, NotCoordinator)
    thread.keep(attrs.evolve(MEMBER, broker=Address("c", 2)))
    clock.advance(3.0)
    assert heard(thread) == [ANSWERED]
    assert coordinator.dialled == [Address("b", 1), Address("c", 2)]


def test_another_coordinator_is_not_kept_waiting_for_a_dead_one(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    coordinator.codes.append(SILENT)
    thread.keep(MEMBER)
    clock.settle()
    clock.move(3.0)
    assert coordinator.waiting.wait(5)
    thread.keep(attrs.evolve(MEMBER, broker=Address("c", 2)))
    clock.advance(3.0)
    assert heard(thread) == [ANSWERED]


@pytest.mark.parametrize("answer", [SILENT, SLOW])
def test_a_broker_that_does_not_answer_in_time_is_given_up(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator, answer: int
) -> None:
    coordinator.codes.append(answer)
    thread.keep(attrs.evolve(MEMBER, request_timeout=0.125 if answer == SILENT else 4.0))
    clock.advance(3.0)
    (report,) = thread.reports()
    assert report.result is HeartbeatResult.NO_ANSWER
    assert str(report.error) == "the heartbeat thread received no response from b:1: timed out"
    clock.advance(1.0)
    assert heard(thread) == [ANSWERED]
    assert len(coordinator.dialled) == 2


def test_a_connection_that_is_not_needed_is_hung_up(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    thread.keep(MEMBER)
    clock.advance(3.0)
    thread.keep(None)
    assert clock.advance(LINGER - 1.0) == 1.0
    assert coordinator.threads[0].is_alive()
    clock.advance(1.0)
    coordinator.threads[0].join(5)
    assert not coordinator.threads[0].is_alive()


def test_closing_does_not_wait_for_an_answer(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    coordinator.codes.append(SILENT)
    thread.keep(MEMBER)
    clock.settle()
    clock.move(3.0)
    assert coordinator.waiting.wait(5)
    assert thread.close(5.0)  # the answer may take 32 s
    assert thread.close()
    thread.keep(NEXT)
    assert not running()
    assert thread.reports() == []


def test_who_is_connecting_when_it_closes_sends_nothing(clock: ThreadClock, coordinator: Coordinator) -> None:
    dialled, go_on = threading.Event(), threading.Event()

    def connect(broker: Address, within: float) -> socket.socket:
        dialled.set()
        assert go_on.wait(5)
        return coordinator.connect(broker, within)

    thread = HeartbeatThread(max_poll_interval=20.0, connect=connect, now=clock.now, wait=clock.wait)
    thread.keep(MEMBER)
    clock.settle()
    clock.move(3.0)
    assert dialled.wait(5)
    assert not thread.close(0.0)
    go_on.set()
    assert thread.close(5.0)
    assert coordinator.asked == []


def test_a_wake_up_that_fails_harms_nobody(clock: ThreadClock, coordinator: Coordinator) -> None:
    told = []

    def tell() -> None:
        told.append(threading.current_thread().name)
        raise RuntimeError("the loop is closed")

    thread = HeartbeatThread(
        max_poll_interval=20.0, connect=coordinator.connect, on_report=tell, now=clock.now, wait=clock.wait
    )
    thread.keep(MEMBER)
    clock.advance(3.0)
    clock.advance(3.0)
    assert told == ["aiokafkawire-heartbeat"] * 2
    assert heard(thread) == [ANSWERED] * 2
    assert thread.close(5.0)


def test_without_threads_it_is_done_without(
    thread: HeartbeatThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    thread.keep(MEMBER)
    thread.keep(NEXT)
    assert [record.message for record in caplog.records] == [
        "cannot start thread 'aiokafkawire-heartbeat', continuing without it: can't start new thread"
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_the_parents_membership_alone(
    thread: HeartbeatThread, clock: ThreadClock, coordinator: Coordinator
) -> None:
    thread.keep(MEMBER)
    clock.advance(3.0)
    with thread._lock:  # as if the thread held it
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)
            thread.polled()
            thread.beat()
            thread.keep(NEXT)
            os._exit(0 if thread.reports() == [] and thread.close() else 1)
    assert os.waitpid(child, 0)[1] == 0
    clock.advance(3.0)
    assert heard(thread) == [ANSWERED] * 2
    assert len(coordinator.dialled) == 1


# --- on brokers ----------------------------------------------------------------------------------------------------


def counted(beats: int) -> tuple[threading.Event, Callable[[], None]]:
    """An event for so many calls of the function."""
    done, left = threading.Event(), iter(range(beats - 1))

    def count() -> None:
        if next(left, None) is None:
            done.set()

    return done, count


async def block_the_loop(bootstrap: str, *, session_timeout_ms: int, interval: float, beats: int) -> str:
    """What the loop's own heartbeat is answered, after it was blocked for so many of the thread's."""
    (broker,) = parse_servers(bootstrap)
    async with RawClient(await anyio.connect_tcp(broker.host, broker.port)) as client:
        member = GroupMember(client, await new_group(client), session_timeout_ms=session_timeout_ms)
        await member.settle()
        done, count = counted(beats)
        thread = HeartbeatThread(max_poll_interval=60.0, connect=connect_tcp, on_report=count)
        thread.keep(HeartbeatMember(broker, member.group, member.generation, member.member_id, interval=interval))
        try:
            assert done.wait(30)
            assert {(one.result, one.code) for one in thread.reports()} == {ANSWERED}
        finally:
            assert thread.close(5.0)
        return await member.heartbeat()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the thread does not know which
async def test_a_blocked_loop_outlasts_its_session() -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Broker(group_min_session_timeout_ms=1)) as broker,
    ):
        # Seven heartbeats are 0.375 s apart, at least: more than the session.
        assert await block_the_loop(broker.bootstrap, session_timeout_ms=2_000, interval=0.25, beats=7) == "NONE"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_apache_kafka_takes_the_heartbeats_of_a_blocked_loop(apache_kafka: ApacheKafka) -> None:
    bootstrap = apache_kafka.bootstrap
    assert await block_the_loop(bootstrap, session_timeout_ms=6_000, interval=0.25, beats=4) == "NONE"
