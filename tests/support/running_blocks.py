"""Runs a block of a page in virtual time, on a cluster with some records, with values for the names that it lacks."""

from __future__ import annotations

import ssl
import time
from collections.abc import Generator, Iterator
from textwrap import indent
from typing import Any, Final
from unittest.mock import patch

import anyio

import aiokafkawire
from aiokafkawire import Client, blocking, errors, protocol, testing
from aiokafkawire.testing.simulation import Simulation, simulate

from .page_blocks import Block, missing_names

__all__ = ("run_block",)

_LASTS: Final = 60.0
"""Virtual seconds after which a block that reads on and on is cancelled."""


class Anything:
    """Takes the place of what is the user's own: functions, stores, streams that end at once."""

    def __call__(self, *_: object, **__: object) -> Anything:
        return self

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, _: object) -> Anything:
        return self

    def __await__(self) -> Generator[None, None, Anything]:
        yield from ()
        return self

    async def __aenter__(self) -> Anything:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __aiter__(self) -> Anything:
        return self

    async def __anext__(self) -> Any:
        raise StopAsyncIteration


def _values() -> dict[str, Any]:
    """Return the values of names that must be of a certain type."""
    import pyarrow as pa

    table = pa.table({"id": [b"1", b"2"], "payload": [b"a", b"b"], "at": pa.array([1, 2], pa.timestamp("ms"))})
    return {
        "context": ssl.create_default_context(ssl.Purpose.CLIENT_AUTH),
        "entry": b"entry",
        "flight": pa.struct({"carrier": pa.string(), "delay": pa.int32()}),
        "frame": table.select(["id", "payload"]).cast(pa.schema({"id": pa.string(), "payload": pa.string()})),
        "invoice": b"invoice",
        "make_ticket": lambda booking: booking,
        "midnight_ms": 0,
        "pa": pa,
        "password": "secret",
        "table": table,
        "time": time,
    }


def run_block(block: Block, topics: tuple[str, ...]) -> None:
    """Run a block to its end, or until it only waits. Raise what it raises.

    Args:
        block: the block.
        topics: the topics that there are before.
    """

    async def main(sim: Simulation) -> None:
        for topic in topics:
            sim.broker.create_topic(topic, 3)
        async with sim.client(allow_auto_create_topics=True) as kafka, kafka.producer() as producer:
            for topic in topics:
                await producer.send(topic, b'{"carrier": "UA", "delay": 1}', key=b"1")
            async with kafka.consumer("flights", group_id="pages", auto_offset_reset="earliest") as consumer:
                record = await anext(consumer) if "flights" in topics else None
                given = {"kafka": kafka, "client": kafka, "producer": producer, "consumer": consumer, "record": record}
                with patch.object(aiokafkawire, "Client", _maker(sim)):
                    function, names = _function(block)
                    values = _values() | given | {"broker": sim.broker, "sim": sim}
                    with anyio.move_on_after(_LASTS):
                        await function(**{name: values.get(name, Anything()) for name in names})

    simulate(main, seed=1, client_telemetry=True)


def _maker(sim: Simulation) -> Any:
    """Return what makes a client of the cluster in place of one at an address."""

    def make(servers: object = None, **options: Any) -> Client:
        for name in ("connector", "runtime", "bootstrap_controllers"):
            options.pop(name, None)
        return sim.client(**options)

    return make


def _function(block: Block) -> tuple[Any, list[str]]:
    """Return the block as an async function, and its arguments: the names that no package has."""
    known: dict[str, Any] = {"blocking": blocking}
    for package in (protocol, testing, errors, aiokafkawire):
        known |= {name: getattr(package, name) for name in package.__all__}
    names = sorted(missing_names(block.code) - set(known))
    code = block.code.replace("start_http_server(9400)", "start_http_server(0)")  # any port that is free
    exec(f"async def block({', '.join(names)}):\n{indent(code, '    ')}    ...\n", known)
    return known["block"], names
