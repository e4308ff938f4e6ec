"""The checks of groups can fail."""

import re
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest
from simulation.checks import Logs
from simulation.group_checks import Commit, Watch
from simulation.leftovers import check_nothing_is_left, tasks

from aiokafkawire import TopicPartition
from aiokafkawire.testing.simulation import Simulation, simulate

A0 = TopicPartition("a", 0)
LOGS: Logs = {A0: [(0, b"x"), (1, b"y"), (2, b"z")]}


def commits(watch: Watch, offset: int, by: str = "one", generation: int = 1, connection: int = 1) -> None:
    watch.commit(A0, Commit(by, generation, f"id of {by}", connection, offset), by)


def read(watch: Watch, client: str, *offsets: int) -> None:
    for offset in offsets:
        watch.hand_out(client, A0, offset, LOGS[A0][offset][1])
        watch.finish(A0, offset)


@pytest.fixture
def watch() -> Watch:
    """One client reads a partition, is done with two records, and has committed that."""
    watch = Watch()
    watch.claim(1, A0, "one", "is assigned")
    watch.begin("one", A0)
    read(watch, "one", 0, 1)
    commits(watch, 2)
    return watch


def test_a_group_that_shares_well_is_right(watch: Watch) -> None:
    watch.end("one", A0)
    watch.claim(2, A0, "two", "is assigned")
    watch.begin("two", A0)
    read(watch, "two", 2)
    commits(watch, 3, "two", 2)
    watch.check(LOGS)
    assert watch.generations == {1, 2}


def test_a_user_may_go_back_and_commit_that(watch: Watch) -> None:
    watch.seek("one", A0, 0)
    commits(watch, 0)
    read(watch, "one", 0, 1, 2)
    commits(watch, 1)
    watch.check(LOGS)


def test_what_was_not_committed_is_read_again(watch: Watch) -> None:
    read(watch, "one", 2)
    watch.gone("one")
    watch.begin("two", A0)
    read(watch, "two", 2)
    watch.check(LOGS)


def test_a_commit_may_come_late_on_another_connection_if_it_was_asked_for_before(watch: Watch) -> None:
    read(watch, "one", 2)
    for offset in (2, 3):
        watch.ask("one", A0, offset)
    commits(watch, 3)
    commits(watch, 2, connection=2)
    assert (watch.late, watch.wrong) == (1, [])
    commits(watch, 1, connection=2)
    assert watch.wrong == ["one commits 1 of a-0, and one had committed 2"]


def test_a_user_is_told_the_truth_about_a_commit(watch: Watch) -> None:
    watch.committed("one", A0, 2)
    assert not watch.wrong
    watch.committed("one", A0, 1)
    assert watch.wrong == ["one was told that 1 of a-0 is committed, which no coordinator has taken"]


def test_nothing_is_committed_that_was_handed_out_under_an_earlier_assignment(watch: Watch) -> None:
    read(watch, "one", 2)
    watch.end("one", A0)
    watch.begin("one", A0)
    commits(watch, 2)
    assert not watch.wrong
    commits(watch, 3)
    assert watch.wrong == ["one commits 3 of a-0, and was handed out less since its assignment"]


def test_a_commit_may_come_late_on_an_older_connection(watch: Watch) -> None:
    watch.begin("two", A0)
    commits(watch, 2, connection=2)
    commits(watch, 1, connection=1)
    read(watch, "two", 1, 2)
    watch.check(LOGS)
    assert watch.late == 1


def again(watch: Watch) -> None:
    watch.end("one", A0)
    watch.end("one", A0)


def begins_elsewhere(watch: Watch) -> None:
    watch.begin("two", A0)
    read(watch, "two", 1)


def is_altered(watch: Watch) -> None:
    read(watch, "one", 2)
    watch.values[A0, 2] = b"w"


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (
            lambda watch: watch.claim(1, A0, "two", "is assigned"),
            "a-0 is one's in generation 1, and two is assigned it",
        ),
        (lambda watch: commits(watch, 2, "two"), "two commits 2 of a-0 in generation 1, when it is one's"),
        (lambda watch: commits(watch, 2, generation=-1), "one commits 2 of a-0 as nobody's member"),
        (lambda watch: watch.begin("one", A0), "one was assigned a-0 twice"),
        (again, "one gives up a-0, and had it not"),
        (lambda watch: read(watch, "one", 1), "one was given a-0:1, and not 2"),
        (lambda watch: read(watch, "two", 2), "two was given a-0:2, and does not read that"),
        (begins_elsewhere, "two was given a-0:1, and not 2"),
        (lambda watch: commits(watch, 3), "one commits 3 of a-0, and 2 is not finished"),
        (lambda watch: commits(watch, 1), "one commits 1 of a-0, and one had committed 2"),
        (lambda watch: commits(watch, 1, "two", 2, 0), "two commits 1 of a-0, and one had committed 2"),
        (lambda watch: None, "2 of 3 records of a-0 are finished"),
        (is_altered, "another record was handed out"),
    ],
)
def test_what_is_wrong_with_a_group_is_found(watch: Watch, happens: Callable[[Watch], object], told: str) -> None:
    happens(watch)
    with pytest.raises(AssertionError, match=re.escape(told)):
        watch.check(LOGS)


def test_what_is_wrong_is_told_at_once(watch: Watch) -> None:
    heard = list[str]()
    watch.tell = heard.append
    commits(watch, 3)
    assert heard == watch.wrong != []


@pytest.mark.parametrize("leave_open", [True, False])
def test_connections_and_tasks_that_are_left_are_found(leave_open: bool) -> None:
    async def main(sim: Simulation) -> None:
        before = tasks()
        client = sim.client("who stays")
        await client.open()
        if not leave_open:
            await client.close()
        await anyio.sleep(1)
        try:
            check_nothing_is_left(sim, before)
        finally:
            await client.close()

    if not leave_open:
        simulate(main)
        return
    with pytest.raises(AssertionError, match="who stays"):
        simulate(main)


def test_a_task_that_is_left_is_found() -> None:
    async def main(sim: Simulation) -> None:
        before = tasks()
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 10)
            await anyio.lowlevel.checkpoint()
            check_nothing_is_left(sim, before)

    with pytest.raises(ExceptionGroup) as raised:
        simulate(main)
    assert "sleep" in str(raised.value.exceptions[0])
