"""What ``aiokafkawire dead-letters replay`` promises, whichever broker it runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from aiokafkawire import Client, Retry
from aiokafkawire.cli.dead_letters.replaying import GROUP_PREFIX, ReplayOptions, replay
from aiokafkawire.cli.dead_letters.selection import REPLAYED_FROM, Selection
from aiokafkawire.cli.shell.session import Session
from aiokafkawire.cli.shell.shared_options import SharedOptions
from aiokafkawire.config.properties import KafkaSettings

pytestmark = [pytest.mark.anyio]

COUNT = 12


class Refused(Exception):
    """A handler does not like a record."""


async def test_failed_records_go_back_to_their_topic_once(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    dead = new_name()
    await kafka.admin.create_topics({dead: 2})
    async with kafka.producer() as producer:
        for number in range(COUNT):
            await producer.send(topic, b"%d" % number, key=b"key %d" % (number % 4), headers=[("trace", b"1")])
    seen: list[Any] = []

    async def process(error: bool) -> None:
        """Handle as many records as there are; each fails, or none."""
        stop = anyio.Event()
        seen.clear()

        async def handle(record: Any) -> None:
            seen.append(record)
            if len(seen) == COUNT:
                stop.set()
            if error:
                raise (ValueError if int(record.value) % 2 else Refused)(record.value)

        arguments: dict[str, Any] = {"group_id": topic, "dead_letter_topic": dead, "retry": Retry(attempts=1)}
        with anyio.fail_after(50):
            summary = await kafka.process(topic, handle, stop=stop, **arguments)
        assert (summary.processed, summary.dead_lettered) == ((0, COUNT) if error else (COUNT, 0))

    session = Session(kafka, KafkaSettings(bootstrap_servers="", client={}, producer={}, consumer={}), SharedOptions())

    async def replayed(limit: int | None = None, **conditions: Any) -> int:
        options = ReplayOptions(topic=dead, selection=Selection(**conditions), limit=limit)
        with anyio.fail_after(50):
            counts = await replay(session, options)
        assert counts.keys() <= {topic}
        return sum(counts.values())

    await process(error=True)
    assert await replayed(errors=frozenset({"ValueError"}), limit=2) == 2
    assert await replayed(errors=frozenset({"ValueError"})) == COUNT // 2 - 2
    assert await replayed(origins=frozenset({topic + "-other"})) == 0
    assert await replayed() == COUNT // 2
    assert await replayed() == 0
    await process(error=False)
    assert sorted(int(record.value) for record in seen) == list(range(COUNT))
    assert {record.key for record in seen} == {b"key %d" % number for number in range(4)}
    places = []
    for record in seen:
        (trace, place) = record.headers
        assert (trace, place[0]) == (("trace", b"1"), REPLAYED_FROM)
        places.append(place[1])
    assert len(set(places)) == COUNT
    offsets = await kafka.admin.list_consumer_group_offsets(GROUP_PREFIX + dead)
    assert sum(offset.offset for offset in offsets.values() if offset is not None) == COUNT
    assert not any(offset.metadata for offset in offsets.values() if offset is not None)
