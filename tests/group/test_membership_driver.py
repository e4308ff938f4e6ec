"""The driver of a member on the in-process broker, with a role that the test plays. In virtual time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import attrs
import pytest
from support.consumer_group_machines import MEMBER, next_heartbeat, stable_machine
from support.group_lives import GROUP
from support.membership_answers import doing, machine_in
from support.virtual_time import until

from aiokafkawire.cluster.cluster import Cluster
from aiokafkawire.errors import ErrorCode, FencedInstanceId, GroupAuthorizationFailed, KafkaError
from aiokafkawire.group.background_heartbeat_schedule import HeartbeatMember, HeartbeatReport
from aiokafkawire.group.background_heartbeats import BackgroundHeartbeats
from aiokafkawire.group.classic_membership import ClassicMembership
from aiokafkawire.group.membership import (
    ApplyAssignment,
    Assign,
    CoordinatorRequest,
    GroupState,
    MemberSettings,
    PrepareRejoin,
    Task,
)
from aiokafkawire.group.membership_driver import MembershipDriver
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.types import Address, CoordinatorType


@attrs.define(eq=False)
class Played:
    """Notes what it is asked for; a test may have it wait or fail."""

    asked: list[Task] = attrs.field(factory=list)
    before: Callable[[Task], Awaitable[None]] | None = None
    rejoins: str | None = None

    async def _note(self, task: Task) -> None:
        self.asked.append(task)
        if self.before is not None:
            await self.before(task)

    async def execute(self, machine: ClassicMembership, task: Task) -> None:
        await self._note(task)
        if isinstance(task, PrepareRejoin):
            machine.prepared(task, [("range", b"me")])
        elif isinstance(task, Assign):
            machine.assigned(task, {one.member_id: b"of " + one.metadata for one in task.members})
        elif isinstance(task, ApplyAssignment):
            rejoins, self.rejoins = self.rejoins, None
            machine.task_done(task, rejoin=rejoins)
        else:
            machine.task_done(task)

    @property
    def kinds(self) -> list[str]:
        return [type(task).__name__ for task in self.asked]


@attrs.define(eq=False)
class Life:
    sim: Simulation
    cluster: Cluster
    polls: int = 0
    waits: bool = True

    def member(self, role: Played, **settings: Any) -> MembershipDriver:
        made = MemberSettings(GROUP, **{"session_timeout_ms": 6_000, "heartbeat_interval": 1.0, **settings})
        machine = ClassicMembership(made)
        execute, polls = partial(role.execute, machine), lambda: (self.polls, self.waits)
        member = MembershipDriver(self.cluster, machine, execute, "1", polls)
        self.cluster.owner.spawn(member.run)
        return member


def alone(body: Callable[[Life], Awaitable[None]]) -> None:
    """Run this at once, with one client and three brokers."""

    async def main(sim: Simulation) -> None:
        async with sim.client() as client:
            await body(Life(sim, client._cluster))

    simulate(main, seed=1)


def test_a_role_is_asked_for_its_part_in_turn() -> None:
    @alone
    async def _(life: Life) -> None:
        role = Played()
        member = life.member(role)
        member.request_rejoin("to begin")
        await until(lambda: role.kinds == ["PrepareRejoin", "Assign", "ApplyAssignment"])
        assert isinstance(role.asked[-1], ApplyAssignment)
        assert role.asked[-1].assignment == b"of me"
        role.rejoins = "once more"
        member.request_rejoin("again")
        await until(lambda: len(role.asked) == 9 and member.machine.task is None)
        assert role.kinds == ["PrepareRejoin", "Assign", "ApplyAssignment"] * 3
        assert [one.request.reason for one in life.sim.broker.requests.of(ApiKey.JOIN_GROUP)][2:] == [
            "again",
            "once more",
        ]
        await member.leave("closed", life.cluster.deadline(5))
        assert life.sim.broker.requests.of(ApiKey.LEAVE_GROUP)[0].request.members[0].reason == "closed"
        await member.stop()
        await member.stop()
        assert member.has_ended


def test_a_role_that_fails_fails_the_membership_and_may_try_again() -> None:
    @alone
    async def _(life: Life) -> None:
        for fails in (PrepareRejoin, Assign, ApplyAssignment):
            role = Played()

            async def fail(task: Task, kind: type[Any] = fails) -> None:
                if isinstance(task, kind):
                    raise ZeroDivisionError(kind.__name__)

            role.before = fail
            member = life.member(role)
            member.request_rejoin("to begin")
            await until(lambda: member.machine.state is GroupState.FAILED and member.machine.task is None)  # noqa: B023
            assert isinstance(member.machine.error, KafkaError)
            assert fails.__name__ in str(member.machine.error)
            assert role.kinds[-1] == "LosePartitions"
            role.before = None
            member.on_poll()
            await until(lambda: member.machine.state is GroupState.STABLE and member.machine.task is None)  # noqa: B023
            await member.leave("closed", life.cluster.deadline(5))
            await member.stop()


def test_a_member_that_is_fenced_says_so_whenever_it_is_asked() -> None:
    @alone
    async def _(life: Life) -> None:
        role = Played()
        member = life.member(role, group_instance_id="i")
        member.request_rejoin("to begin")
        await until(lambda: "ApplyAssignment" in role.kinds)
        life.sim.broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.FENCED_INSTANCE_ID)
        await until(lambda: member.machine.state is GroupState.FAILED)
        for _ in range(2):
            try:
                member.on_poll()
            except FencedInstanceId:
                continue
            raise AssertionError("it said nothing")
        await member.stop()


def test_what_no_retry_mends_ends_it_until_it_is_asked_again() -> None:
    @alone
    async def _(life: Life) -> None:
        role = Played()
        member = life.member(role)
        order = life.sim.broker.on(ApiKey.JOIN_GROUP, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        member.request_rejoin("to begin")
        await until(lambda: member.machine.state is GroupState.FAILED)
        assert (order.is_met, type(member.machine.error)) == (True, GroupAuthorizationFailed)
        await anyio.sleep(60)
        assert len(life.sim.broker.requests.of(ApiKey.JOIN_GROUP)) == 1
        member.on_poll()
        await until(lambda: member.machine.state is GroupState.STABLE)
        await member.stop()


def test_a_refused_member_joins_at_growing_intervals_and_logs_it_once(caplog: pytest.LogCaptureFixture) -> None:
    @alone
    async def _(life: Life) -> None:
        member = life.member(Played())

        async def refused() -> float:
            """Let the user poll; return the seconds until the member is refused."""
            began = life.sim.now()
            member.on_poll()
            await member.until(lambda: member.machine.state is GroupState.FAILED and member.machine.task is None)
            return life.sim.now() - began

        life.sim.broker.on(ApiKey.JOIN_GROUP, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED, times=8)
        member.request_rejoin("to begin")
        await member.until(lambda: member.machine.state is GroupState.FAILED and member.machine.task is None)
        waits = [await refused() for _ in range(7)]
        for wait, expected in zip(waits, (0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0), strict=True):
            assert 0.8 * expected <= wait <= 1.2 * expected + 0.05
        member.on_poll()
        await until(lambda: member.machine.state is GroupState.STABLE)
        life.sim.broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        life.sim.broker.on(ApiKey.JOIN_GROUP, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        await member.until(lambda: member.machine.state is GroupState.FAILED and member.machine.task is None)
        assert await refused() <= 0.2
        await member.stop()

    lines = [line for line in caplog.records if "refused by group" in line.getMessage()]
    assert [line.levelname for line in lines] == ["WARNING"] * len(lines)
    assert len(lines) == 3  # the joins, the heartbeat, and the join after that


def test_a_user_who_is_silent_for_too_long_costs_the_membership_and_one_who_waits_does_not() -> None:
    @alone
    async def _(life: Life) -> None:
        role = Played()
        member = life.member(role, rebalance_timeout_ms=20_000)
        member.request_rejoin("to begin")
        await anyio.sleep(100)  # waiting for records all the time
        assert (role.kinds[-1], member.overdue) == ("ApplyAssignment", False)
        life.waits = False
        for _ in range(10):
            await anyio.sleep(10)
            life.polls += 1
        assert (role.kinds[-1], member.overdue) == ("ApplyAssignment", False)
        began = life.sim.now()
        await until(lambda: member.overdue)
        assert 18 <= life.sim.now() - began <= 22
        await until(lambda: member.machine.state is GroupState.OUTSIDE)
        assert role.kinds[-1] == "LosePartitions"
        life.polls += 1
        member.on_poll()
        await until(lambda: member.machine.state is GroupState.STABLE)
        assert not member.overdue
        await member.stop()


def test_a_task_that_is_not_wanted_any_more_is_followed_by_the_one_that_is() -> None:
    @alone
    async def _(life: Life) -> None:
        role, gate = Played(), anyio.Event()

        async def wait(task: Task) -> None:
            if isinstance(task, ApplyAssignment):
                await gate.wait()

        role.before = wait
        member = life.member(role)
        member.request_rejoin("to begin")
        await until(lambda: role.kinds[-1:] == ["ApplyAssignment"])
        life.sim.broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.UNKNOWN_MEMBER_ID)
        await until(lambda: isinstance(member.machine.task, PrepareRejoin))
        assert role.kinds == ["PrepareRejoin", "Assign", "ApplyAssignment"]  # one after the other
        gate.set()
        await until(lambda: len(role.asked) == 6)
        assert role.kinds == ["PrepareRejoin", "Assign", "ApplyAssignment"] * 2
        assert isinstance(role.asked[3], PrepareRejoin)
        assert role.asked[3].lost
        await member.stop()


def test_without_a_thread_the_membership_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    @alone
    async def _(life: Life) -> None:
        await life.cluster.coordinator(CoordinatorType.GROUP, GROUP, life.cluster.deadline(5))
        machine = machine_in(GroupState.STABLE)
        machine.task_done(doing(machine, ApplyAssignment))
        beside = BackgroundHeartbeats(life.cluster, machine)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        for now in range(3):
            beside.step(now, now)
        beside.close()

    warnings = [record.getMessage() for record in caplog.records if "thread" in record.getMessage()]
    assert warnings == [
        "group 'g': cannot start a thread for heartbeats, continuing without it: can't start new thread"
    ]


def test_what_the_thread_has_heard_comes_before_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a block of the loop, the response may be older."""
    heard: list[str] = []

    @alone
    async def _(life: Life) -> None:
        member = life.member(Played())
        member._background = BackgroundHeartbeats(life.cluster, member.machine)
        answered = member.machine.answered

        def answer(request: CoordinatorRequest, response: Any, now: float) -> None:
            heard.append("response")
            answered(request, response, now)

        monkeypatch.setattr(member._background, "step", lambda now, polled_at: None)
        monkeypatch.setattr(member._background, "take_reports", lambda now: heard.append("reports"))
        monkeypatch.setattr(member.machine, "answered", answer)
        member.request_rejoin("to begin")
        await until(lambda: member.machine.state is GroupState.STABLE)
        await member.stop()

    assert heard[:4] == ["reports", "response", "reports", "response"]


def test_a_report_of_the_epoch_before_counts_if_it_has_the_current_epoch() -> None:
    @alone
    async def _(life: Life) -> None:
        machine = stable_machine()
        beside = BackgroundHeartbeats(life.cluster, machine)
        before = HeartbeatMember(Address("b", 1), machine.thread_heartbeat(), "g", 4, MEMBER)
        for code, epoch, expected in ((ErrorCode.FENCED_MEMBER_EPOCH, None, 5), (ErrorCode.NONE, 7, 7)):
            beside._reports.put(HeartbeatReport(before, 0.0, code, epoch=epoch))
            beside.take_reports(0.0)
            assert (machine.state, machine.epoch) == (GroupState.STABLE, expected)
        assert next_heartbeat(machine, 0.0).topic_partitions is not None  # it has all fields
        beside.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_the_parents_thread_alone() -> None:
    @alone
    async def _(life: Life) -> None:
        await life.cluster.coordinator(CoordinatorType.GROUP, GROUP, life.cluster.deadline(5))
        machine = machine_in(GroupState.STABLE)
        machine.task_done(doing(machine, ApplyAssignment))
        beside = BackgroundHeartbeats(life.cluster, machine)
        beside.step(0, 0)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)
            beside.step(1, 1)
            beside.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0  # noqa: ASYNC222  # the child ends at once
        assert "aiokafkawire-heartbeat" in [thread.name for thread in threading.enumerate()]
        beside.close()
        assert "aiokafkawire-heartbeat" not in [thread.name for thread in threading.enumerate()]


def test_without_a_coordinator_a_member_waits_to_join() -> None:
    @alone
    async def _(life: Life) -> None:
        role = Played()
        member = life.member(role)
        member.request_rejoin("to begin")
        await until(lambda: member.machine.state is GroupState.STABLE and member.machine.task is None)
        dropped = life.sim.broker.on(ApiKey.JOIN_GROUP, drop="before", times=None)
        member.request_rejoin("more")
        await anyio.sleep(4)
        assert member.machine.state is GroupState.JOINING
        dropped.remove()
        await until(lambda: role.kinds[3:] == ["PrepareRejoin", "Assign", "ApplyAssignment"])
        await member.stop()
