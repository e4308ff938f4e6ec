"""A program that consumes until it is interrupted: give it ``asyncio.run``, ``anyio.run`` or ``trio`` first."""

import asyncio
import sys

import anyio

from aiokafkawire import Client

__all__ = ("main",)


async def main(*given: str) -> None:
    """Read ten records, say so, and wait for more."""
    bootstrap, topic = given
    async with (
        Client(bootstrap) as kafka,
        kafka.consumer(topic, group_id=topic, auto_offset_reset="earliest") as consumer,
        anyio.create_task_group() as tasks,
    ):

        async def tell() -> None:
            while not consumer._iteration.waiting or consumer.positions()[consumer.assignment[0]].offset < 10:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            print("waits", flush=True)

        seen = 0
        async for _ in consumer:
            seen += 1
            if seen == 1:
                tasks.start_soon(tell)


if __name__ == "__main__":
    run, *arguments = sys.argv[1:]
    try:
        if run == "asyncio.run":
            asyncio.run(main(*arguments))
        else:
            anyio.run(main, *arguments, backend="trio" if run == "trio" else "asyncio")
    except* KeyboardInterrupt:
        print("left", flush=True)
