"""The live view of ``aiokafkawire top`` in a terminal of 80 columns and 24 lines."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from cli.test_top_rows import LOG, ORDERS, group, layout, sample
from support.patience import PATIENCE
from textual.pilot import Pilot

from aiokafkawire import Client, TopicPartition
from aiokafkawire.cli.top.app import TopApp
from aiokafkawire.cli.top.layout import TopicLayout
from aiokafkawire.cli.top.options import Pattern
from aiokafkawire.cli.top.pace import seconds_to_wait
from aiokafkawire.cli.top.panel import SHOWN, Panel
from aiokafkawire.cli.top.panel_screen import PanelScreen
from aiokafkawire.cli.top.sample import Sample
from aiokafkawire.cli.top.sampler import Sampler
from aiokafkawire.errors import ConnectionLost, KafkaError, RequestTimeout
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Textual runs on asyncio alone."""
    return "asyncio", {"use_uvloop": False}


@pytest.fixture(autouse=True)
def _never_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampler of these tests waits at its end, which the first line does not say."""
    monkeypatch.setattr(PanelScreen, "SLOW", math.inf)


class ScriptedSampler:
    """Gives samples, or raises errors, one after the other; then waits for ever."""

    def __init__(self, *given: Sample | KafkaError) -> None:
        self.left = list(given)

    async def sample(self) -> Sample:
        if not self.left:
            await anyio.sleep_forever()
        one = self.left.pop(0)
        if isinstance(one, KafkaError):
            raise one
        return one


@asynccontextmanager
async def view(*given: Sample | KafkaError, interval: float = 0.01) -> AsyncIterator[Pilot[int]]:
    """The view on samples that the test decides."""
    kafka = Client("localhost:9092")
    scripted = ScriptedSampler(*given)
    app = TopApp(kafka, cast("Sampler", scripted), interval=interval, timeout=1.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: not scripted.left)
        yield pilot


def text(pilot: Pilot[int]) -> str:
    """The screen's text, without the time that a sample took."""
    lines = [strip.text.rstrip() for strip in pilot.app.screen._compositor.render_strips()]
    return re.sub(r", took \d+\.\d s", "", "\n".join(lines))


async def until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():
            await pilot.pause(0.01)
    await pilot.pause()


async def until_text(pilot: Pilot[int], expected: str) -> None:
    try:
        await until(pilot, lambda: expected in text(pilot))
    except TimeoutError:
        raise AssertionError(f"{expected!r} is not shown:\n{text(pilot)}") from None


def panel(pilot: Pilot[int], name: str) -> Panel[Any]:
    return pilot.app.screen.query_one(f"#{name}", Panel)


def names(pilot: Pilot[int], name: str, column: int = 0) -> list[str]:
    """The cells of a column of a table."""
    table = panel(pilot, name).table
    return [str(table.get_row_at(index)[column]) for index in range(table.row_count)]


def two_samples() -> tuple[Sample, Sample]:
    lagging = group("billing", {ORDERS[0]: 90, ORDERS[1]: 40})
    idle = group("idle", {LOG: 7}, state="Empty", members=0)
    secret = group("secret", {}, members=None, state="", error="GroupAuthorizationFailed")
    first = sample(10.0, {ORDERS[0]: 100, ORDERS[1]: 50, LOG: 7}, lagging, idle, secret)
    second = sample(12.0, {ORDERS[0]: 300, ORDERS[1]: 60, LOG: 7}, lagging, idle, secret)
    return first, second


SNAPSHOT = """\
 aiokafkawire top: cluster c                           every 0.01 s
 Brokers 3
 ▲NODE  ADDRESS            RACK         LEADS   UNDER      IN SYNC   RECORDS/S
     1  a:9092             west             2       0          2/2         100
    2*  b:9092             -                1       1          2/2         5.0
     3  not in service     -                0       0          1/2           -
 Topics 2
 TOPIC                             ▼RECORDS/S   PARTITIONS   UNDER   NO LEADER
 orders                                   105            3       1           1
 log                                        0            1       0           0




 Groups 3  secret: GroupAuthorizationFailed
 GROUP                  STATE       TYPE       MEMBERS        ▼LAG  TREND
 billing                Stable      classic          1         230          ▁█
 idle                   Empty       classic          0           0          ▁▁
 secret                 -           classic          -           -




Enter Open / Filter < > Sort r Reverse z Zoom p Pause + - Interval ? Help q Quit
"""


async def test_the_view_at_80_columns() -> None:
    async with view(*two_samples()) as pilot:
        await until_text(pilot, "105")
        assert text(pilot) == SNAPSHOT.removesuffix("\n")


async def test_tables_are_sorted_by_other_columns_and_in_the_other_direction() -> None:
    async with view(*two_samples()) as pilot:
        await until_text(pilot, "105")
        panel(pilot, "topics").table.focus()
        await pilot.pause()
        assert names(pilot, "topics") == ["orders", "log"]
        await pilot.press("r")
        assert names(pilot, "topics") == ["log", "orders"]
        await pilot.press("<")
        assert names(pilot, "topics") == ["log", "orders"]
        assert "TOPIC▲" in text(pilot)
        await pilot.press("<")
        assert "▼NO LEADER" in text(pilot)
        assert names(pilot, "topics") == ["orders", "log"]


async def test_a_click_on_a_title_sorts() -> None:
    async with view(*two_samples()) as pilot:
        await until_text(pilot, "105")
        table = panel(pilot, "groups").table
        await pilot.click(table, offset=(3, 0))
        assert names(pilot, "groups") == ["billing", "idle", "secret"]
        await pilot.click(table, offset=(3, 0))
        assert names(pilot, "groups") == ["secret", "idle", "billing"]


@pytest.mark.slow
async def test_a_filter_hides_rows_while_it_is_typed_and_escape_ends_it() -> None:
    async with view(*two_samples()) as pilot:
        await until_text(pilot, "105")
        panel(pilot, "groups").table.focus()
        await pilot.press("/", "q", "b", "i", "home", "delete")
        assert names(pilot, "groups") == ["billing"]
        await pilot.press("enter")
        await until_text(pilot, "Groups 1 of 3  filter: bi")
        await pilot.press("/", "escape")
        await until_text(pilot, "Groups 3")
        assert names(pilot, "topics") == ["orders", "log"]


async def test_the_cursor_stays_on_its_row_when_the_order_changes() -> None:
    ends = {ORDERS[0]: 0, LOG: 0}
    given = [sample(0.0, ends), sample(1.0, {ORDERS[0]: 100, LOG: 1})]
    async with view(*given) as pilot:
        await until_text(pilot, "100")
        shown = panel(pilot, "topics")
        shown.table.focus()
        await pilot.press("down")
        await pilot.pause()
        assert shown.cursor_row is not None
        assert shown.cursor_row.name == "log"
        screen: Any = pilot.app.screen
        screen.history.add(sample(2.0, {ORDERS[0]: 100, LOG: 900}))
        shown.show_rows(screen.history.topic_rows())
        await pilot.pause()
        assert names(pilot, "topics") == ["log", "orders"]
        assert shown.cursor_row.name == "log"


async def test_one_table_takes_the_whole_screen() -> None:
    async with view(*two_samples()) as pilot:
        await until_text(pilot, "105")
        panel(pilot, "groups").table.focus()
        await pilot.press("z")
        await pilot.pause()
        assert "Topics" not in text(pilot)
        assert "Groups 3" in text(pilot).splitlines()[1]
        await pilot.press("z")
        await until_text(pilot, "Topics 2")


async def test_errors_are_shown_where_they_belong() -> None:
    first, _ = two_samples()
    failed = sample(11.0, {}, broker_errors={1: "ConnectionLost: refused \x1b[31m"})
    async with view(first, failed, RequestTimeout("no metadata within 5 s")) as pilot:
        await until_text(pilot, "trying again: RequestTimeout: no metadata within 5 s")
        assert r"1 a:9092 west: ConnectionLost: refused \x1b[31m" in text(pilot)
        assert "log: no end offsets of 1 of 1" in text(pilot)


async def test_the_cause_of_a_timeout_is_shown_in_its_place() -> None:
    timeout = RequestTimeout("no metadata within 5 s; at last ...")
    timeout.__cause__ = ConnectionLost("a:9092 is away")
    async with view(two_samples()[0], timeout) as pilot:
        await until_text(pilot, "trying again: ConnectionLost: a:9092 is away")


async def test_a_cluster_that_does_not_answer_is_told_while_the_view_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PanelScreen, "SLOW", 0.1)
    async with view(two_samples()[0]) as pilot:
        await until_text(pilot, "waiting for ")
        assert "Topics 2" in text(pilot)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 24), (40, 16), (20, 10), (7, 5), (1, 1)])
async def test_a_narrow_terminal_shows_names_and_lags(size: tuple[int, int]) -> None:
    async with view(*two_samples()) as pilot:
        await until_text(pilot, "105")
        await pilot.resize_terminal(*size)
        await until(pilot, lambda: len(text(pilot).splitlines()) <= size[1])
        if size[0] >= 20:
            await until_text(pilot, "GROUP ")
        assert all(len(line) <= size[0] for line in text(pilot).splitlines())
        if size[0] >= 40:
            assert re.search(r"billing +\w* +230", text(pilot))
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda: text(pilot) == SNAPSHOT.removesuffix("\n"))


async def test_sorting_keeps_to_the_columns_of_a_narrow_terminal() -> None:
    async with view(*two_samples()) as pilot:
        await until_text(pilot, "105")
        await pilot.resize_terminal(40, 24)
        await until(pilot, lambda: "NO LEADER" not in text(pilot))
        shown = panel(pilot, "topics")
        shown.table.focus()
        for title in ("▼UNDER", "TOPIC▲", "▼RECORDS/S"):
            await pilot.press(">")
            await until_text(pilot, title)
        await pilot.click(shown.table, offset=(3, 0))
        await until_text(pilot, "TOPIC▲")


async def test_the_view_goes_on_after_an_error() -> None:
    first, second = two_samples()
    async with view(first, RequestTimeout("no metadata within 5 s"), second) as pilot:
        await until_text(pilot, "105")
        assert "trying again" not in text(pilot)


@pytest.mark.slow
async def test_pause_and_interval_are_shown() -> None:
    async with view(*two_samples(), interval=2.0) as pilot:
        await until_text(pilot, "every 2 s")
        await pilot.press("+")
        await until_text(pilot, "every 5 s")
        await pilot.press("-", "-", "-")
        await until_text(pilot, "every 0.5 s")
        await pilot.press("p")
        await until_text(pilot, "paused")
        await pilot.press("p")
        await until_text(pilot, "every 0.5 s")


async def test_a_paused_view_takes_no_samples() -> None:
    first, second = two_samples()
    async with view(first, interval=60.0) as pilot:
        screen: Any = pilot.app.screen
        await pilot.press("p")
        screen._sampler.left = [second]
        await pilot.press("+", "-")  # wakes what waits for the next sample
        await pilot.pause()
        assert screen._sampler.left == [second]
        await pilot.press("p")
        await until(pilot, lambda: not screen._sampler.left)


def test_a_sample_is_taken_at_most_as_often_as_the_last_one_took() -> None:
    assert seconds_to_wait(2.0, 0.1) == 1.9
    assert seconds_to_wait(2.0, 1.5) == 1.5
    assert seconds_to_wait(2.0, 30.0) == 30.0


async def test_of_many_rows_the_first_are_shown_and_a_filter_finds_the_others() -> None:
    import attrs

    many = attrs.evolve(layout(), topics={f"topic-{number:05}": TopicLayout(1, 0, 0) for number in range(10_000)})
    async with view(sample(1.0, {}, layout=many)) as pilot:
        await until_text(pilot, f"Topics 10,000, the first {SHOWN} shown")
        assert len(names(pilot, "topics")) == SHOWN
        panel(pilot, "topics").set_filter("09999")
        await until_text(pilot, "Topics 1 of 10,000")
        assert names(pilot, "topics") == ["topic-09999"]


async def test_help_explains_keys_and_columns() -> None:
    async with view(*two_samples()) as pilot:
        await until_text(pilot, "105")
        await pilot.press("?")
        await until_text(pilot, "the next table, the one before")
        await pilot.press("escape")
        await until_text(pilot, "Topics 2")


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_it_quits(key: str) -> None:
    async with view(*two_samples()) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: not pilot.app.is_running)
        assert not pilot.app.return_code


# --- on a broker -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def live() -> AsyncIterator[tuple[Pilot[int], Client]]:
    """The view of a broker with a topic of records and a group that lags."""
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("orders", partitions=2)
        async with kafka.producer() as producer:
            for number in range(10):
                await producer.send(
                    "orders",
                    b"[red]\x1b[2J %d" % number,
                    key=b"k%d" % number,
                    partition=0,
                    headers=[("trace", b"\x00")],
                )
        await kafka.admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 4})
        sampler = Sampler(kafka, topics=Pattern(re.compile("orders")), groups=Pattern(), timeout=10.0)
        app = TopApp(kafka, sampler, interval=0.1, timeout=10.0)
        async with app.run_test(size=(80, 24)) as pilot:
            await until_text(pilot, "billing")
            yield pilot, kafka


async def test_enter_opens_the_newest_records_of_a_topic() -> None:
    async with live() as (pilot, kafka):
        panel(pilot, "topics").table.focus()
        await pilot.press("enter")
        await until_text(pilot, r"[red]\x1b[2J 9")
        await until_text(pilot, r"header  trace: \x00")
        assert "partition 0, offset 9" in text(pilot)
        await pilot.press("down")
        await until_text(pilot, "partition 0, offset 8")
        async with kafka.producer() as producer:
            await producer.send("orders", b"newer", partition=1)
        await until_text(pilot, "newer")
        await pilot.press("escape")
        await until_text(pilot, "Brokers 1")


@pytest.mark.slow
async def test_enter_opens_the_partitions_and_members_of_a_group() -> None:
    async with live() as (pilot, kafka):
        async with kafka.consumer("orders", group_id="billing") as consumer:
            await consumer.poll(timeout=10.0)
            panel(pilot, "groups").table.focus()
            await pilot.press("enter")
            await until_text(pilot, "Members 1")
            await until_text(pilot, "orders-0")
            assert "group billing" in text(pilot).splitlines()[0]
        await pilot.press("escape")
        await until_text(pilot, "Brokers 1")
        assert isinstance(pilot.app.screen, PanelScreen)


async def test_the_state_of_a_group_is_the_one_that_it_has_now() -> None:
    async with live() as (pilot, kafka):
        panel(pilot, "groups").table.focus()
        await pilot.press("enter")
        await until_text(pilot, "group billing, Empty, classic")
        async with kafka.consumer("orders", group_id="billing") as consumer:
            await consumer.poll(timeout=PATIENCE)
            await until_text(pilot, "group billing, Stable, classic")


async def test_a_group_that_is_gone_is_an_error_of_its_screen() -> None:
    async with live() as (pilot, kafka):
        panel(pilot, "groups").table.focus()
        await pilot.press("enter")
        await until_text(pilot, "Partitions 1")
        await kafka.admin.delete_groups("billing")
        await until_text(pilot, "trying again: GroupIdNotFound")
        await pilot.press("escape")
        await until_text(pilot, "Groups 0")
