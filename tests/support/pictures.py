"""The pictures of docs/top.md and docs/shell.md: `python tests/support/pictures.py` draws them with the real program.

They are the same each time: the in-process broker's records, groups and ids are, and time goes by in steps.
"""

from __future__ import annotations

import io
import os
import random
import re
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

import anyio
import attrs
from rich.console import Console
from rich.text import Text
from textual.pilot import Pilot

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.cli.top.app import TopApp
from aiokafkawire.cli.top.options import Pattern
from aiokafkawire.cli.top.panel_screen import PanelScreen
from aiokafkawire.cli.top.sample import Sample
from aiokafkawire.cli.top.sampler import Sampler
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

__all__ = ("PICTURES", "PLOTS", "draw", "words")

PLOTS: Final = Path(__file__).parent.parent.parent / "docs" / "plots"

TOPICS: Final = {"orders": 400, "payments": 120, "clicks": 2_500, "shipments": 40, "audit": 3, "archive": 0}
"""The topics, and about how many records each gets between two samples."""
PARTITIONS: Final = 3
GROUPS: Final = {
    "billing": ("orders", 1.0),
    "fraud-check": ("payments", 0.7),
    "sessionizer": ("clicks", 0.97),
    "warehouse": ("shipments", 1.6),
    "auditors": ("audit", 0.0),
}
"""The groups, the topic of each, and how fast it reads: 1.0 is as fast as records come."""
MEMBERS: Final = ("payouts-1", "payouts-2")
"""The clients of a group that reads the payments."""
SAMPLES: Final = 12
INTERVAL: Final = 2.0
BACKLOG: Final = 7
"""The records at the start, in those between two samples; one of the groups has read none of them."""
PATIENCE: Final = 30.0


class World:
    """A cluster whose topics and groups go on in steps."""

    def __init__(self, broker: Broker, kafka: Client, members: list[Consumer[bytes, bytes]]) -> None:
        self._broker, self._kafka, self._members = broker, kafka, members
        self._chance = random.Random(7)
        self.written = dict.fromkeys(TOPICS, 0)
        self.read: dict[str, float] = {}

    async def begin(self) -> None:
        """Create the topics with a backlog; a replica of one has fallen behind."""
        for name, number in TOPICS.items():
            self._broker.create_topic(name, partitions=PARTITIONS)
            await self._write(name, BACKLOG * number)
        behind = next(node for node in self._broker.isr("clicks", 1) if node != self._broker.leader("clicks", 1))
        self._broker.hold_replica("clicks", 1, behind)
        self._broker.shrink_isr("clicks", 1, behind)
        self.read = {group: float(self.written[topic]) for group, (topic, _) in GROUPS.items()} | {"warehouse": 0.0}

    async def go_on(self) -> None:
        """Let producers write, and groups read and commit."""
        for name, number in TOPICS.items():
            await self._write(name, round(number * self._chance.uniform(0.8, 1.2)))
        for group, (topic, speed) in GROUPS.items():
            pace = TOPICS[topic] * speed * self._chance.uniform(0.7, 1.3)
            self.read[group] = min(self.written[topic], self.read[group] + pace)
            offsets = {partition: int(self.read[group] / PARTITIONS) for partition in _partitions(topic)}
            await self._kafka.admin.alter_consumer_group_offsets(group, offsets)
        for member in self._members:
            behind = {partition: 11 * (partition.partition + 1) for partition in member.assignment}
            each = self.written["payments"] // PARTITIONS
            await member.commit({partition: each - lag for partition, lag in behind.items()})

    async def _write(self, topic: str, number: int) -> None:
        """Write records, as many to each partition."""
        each = number // PARTITIONS
        self.written[topic] += each * PARTITIONS
        async with self._kafka.producer() as producer:
            for partition in range(PARTITIONS):
                await producer.send_many(topic, [b"x"] * each, partition=partition)


class StepSampler:
    """Samples a world that goes on before each sample, by an interval of the clock; pauses the view at the end."""

    def __init__(self, world: World, sampler: Sampler) -> None:
        self._world, self._sampler = world, sampler
        self._numbers = count()
        self.app: TopApp | None = None

    async def sample(self) -> Sample:
        await self._world.go_on()
        number, found = next(self._numbers), await self._sampler.sample()
        if number == SAMPLES and self.app is not None:
            self.app.pace.pause()
        names = {node: Address(f"kafka-{node}", 9092) for node in found.layout.nodes}
        nodes = {number: attrs.evolve(node, address=names[number]) for number, node in found.layout.nodes.items()}
        return attrs.evolve(found, at=number * INTERVAL, layout=attrs.evolve(found.layout, nodes=nodes))


@asynccontextmanager
async def top() -> AsyncIterator[Pilot[int]]:
    """The live view after its last sample."""
    numbers = count(1)
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(
            Broker(
                3,
                port=None,
                racks=["rack-a", "rack-b", "rack-c"],
                auto_create_topics_enable=False,
                new_uuid=lambda: UUID(int=next(numbers) << 96 | 0x4000_8000_0000_0000_0000),
            )
        )
        kafka = await stack.enter_async_context(Client(broker.bootstrap, connector=broker.connect))
        members: list[Consumer[bytes, bytes]] = []
        world = World(broker, kafka, members)
        await world.begin()
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        for name in MEMBERS:
            client = await stack.enter_async_context(Client(broker.bootstrap, client_id=name, connector=broker.connect))
            consumer = client.consumer("payments", group_id="payouts", enable_auto_commit=False)
            members.append(await stack.enter_async_context(consumer))
            tasks.start_soon(_read_on, members[-1])
            await _until(lambda: all(member.assignment for member in members))
        sampler = StepSampler(world, Sampler(kafka, topics=Pattern(), groups=Pattern(), timeout=PATIENCE))
        app = sampler.app = TopApp(kafka, cast("Sampler", sampler), interval=0.001, timeout=PATIENCE)
        async with app.run_test(size=(80, 24)) as pilot:
            await _until(lambda: app.pace.is_paused)
            yield pilot


async def draw_overview() -> str:
    """Return the picture of the tables of ``top``."""
    async with top() as pilot:
        return await _screenshot(pilot)


async def draw_group() -> str:
    """Return the picture of a group's partitions and members."""
    async with top() as pilot:
        screen = cast("Any", pilot.app.screen)
        screen.query_one("#groups").set_filter("payouts")
        screen.query_one("#groups").table.focus()
        await pilot.press("enter")
        await _until(lambda: cast("Any", pilot.app.screen)._took is not None)
        return await _screenshot(pilot)


async def _screenshot(pilot: Pilot[int]) -> str:
    await pilot.pause()
    app = cast("TopApp", pilot.app)
    screen = cast("PanelScreen", app.screen)
    app.pace.is_paused, app.pace.interval, screen._took = False, INTERVAL, 0.1
    screen.draw_head()
    await pilot.pause()
    return _compact(app.export_screenshot(title="aiokafkawire top", simplify=True))


async def draw_shell() -> str:
    """Return the picture of two commands of the shell in a terminal."""
    commands = (
        "aiokafkawire topics describe flights orders",
        "aiokafkawire consume flights --last 8 -q -f '%D  %t-%p@%o  %k: %v\\n'",
    )
    console = Console(record=True, width=80, file=io.StringIO(), color_system="truecolor")
    numbers = random.Random(1)

    def new_uuid() -> UUID:
        return UUID(int=numbers.getrandbits(128), version=4)

    async with Broker(3, new_uuid=new_uuid) as broker, Client(broker.bootstrap) as kafka, kafka.producer() as producer:
        broker.create_topic("flights", partitions=2)
        broker.create_topic("orders", partitions=3)
        chance = random.Random(7)
        for number in range(12):
            flight = f"{chance.choice(('UA', 'AA', 'B6', 'DL'))}{chance.randint(100, 1999)}"
            value = f"{chance.choice(('EWR', 'JFK', 'LGA'))}-{chance.choice(('IAH', 'MIA', 'ORD', 'SFO'))}"
            await producer.send(
                "flights",
                value.encode(),
                key=flight.encode(),
                partition=number % 2,
                timestamp_ms=1_795_455_000_000 + number * 61_250,
            )
        for number, command in enumerate(commands):
            environment = os.environ | {"AIOKAFKAWIRE_BOOTSTRAP": broker.bootstrap}
            words = [sys.executable, "-m", *shlex.split(command)]
            done = await anyio.run_process(words, env=environment)
            if number:
                console.print()
            console.print(Text.assemble(("$ ", "green"), (command, "bold")), soft_wrap=True)
            console.print(Text(done.stdout.decode().removesuffix("\n")), soft_wrap=True)
    return _compact(console.export_svg(title="aiokafkawire", unique_id="shell"))


PICTURES: Final[Mapping[str, Callable[[], Awaitable[str]]]] = {
    "top.svg": draw_overview,
    "top-group.svg": draw_group,
    "shell.svg": draw_shell,
}


def draw(name: str) -> str:
    """Return a picture, as SVG."""
    return anyio.run(PICTURES[name])


def words(svg: str) -> list[str]:
    """Return the texts of a picture, without spaces at their ends."""
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", svg)
    return [text.replace("&#160;", " ").strip() for text in texts if text.replace("&#160;", " ").strip()]


def _compact(svg: str) -> str:
    """Leave out the fonts, which viewers do not load from elsewhere, and what clips each line to the terminal."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<clipPath id="[\w-]+-line-\d+">.*?</clipPath>\s*', "", svg, flags=re.DOTALL)
    svg = re.sub(r' clip-path="url\(#[\w-]+-line-\d+\)"', "", svg)
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag[0]), svg)
    return re.sub(r"\n\s*\n+", "\n", svg).strip() + "\n"


def _partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in range(PARTITIONS)]


async def _read_on(consumer: Consumer[bytes, bytes]) -> None:
    async for _ in consumer:
        pass


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110  # the broker has no event for it
            await anyio.sleep(0.01)


def main() -> None:
    for name in PICTURES:
        (PLOTS / name).write_text(draw(name), encoding="utf-8")
        print(f"docs/plots/{name} written")


if __name__ == "__main__":
    main()
