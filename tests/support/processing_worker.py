"""A process that handles records with ``Client.process``, for tests that kill it or send it signals.

``python processing_worker.py BACKEND BOOTSTRAP TOPIC GROUP SECONDS LOG`` writes a line to LOG when a record begins, and
when it is done, in one write each: what is written counts, however the process ends.
"""

from __future__ import annotations

import logging
import os
import sys
import time

import anyio

from aiokafkawire import Client, ConsumerRecord

__all__ = ("IN_HAND",)

IN_HAND = 50
"""The records in hand of one worker at most."""


async def work(bootstrap: str, topic: str, group: str, seconds: float, log: int) -> None:
    """Handle records until a signal comes."""

    def tell(what: str, record: ConsumerRecord[bytes, bytes]) -> None:
        key = (record.key or b"").decode()
        os.write(log, f"{time.monotonic_ns()} {what} {record.partition} {record.offset} {key}\n".encode())

    async def handle(record: ConsumerRecord[bytes, bytes]) -> None:
        tell("began", record)
        await anyio.sleep(seconds)
        tell("done", record)

    async with Client(bootstrap) as kafka:
        summary = await kafka.process(
            topic,
            handle,
            group_id=group,
            concurrency=8,
            max_in_hand=IN_HAND,
            commit_interval_ms=50,
            handle_signals=True,
            drain_timeout=1_000,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=500,
        )
    print(f"processed {summary.processed}, in hand {summary.in_hand}", flush=True)


def main() -> None:
    """Run as the module's docstring says."""
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("aiokafkawire.processing").setLevel(logging.INFO)
    backend, bootstrap, topic, group, seconds, path = sys.argv[1:]
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    anyio.run(work, bootstrap, topic, group, float(seconds), log, backend=backend)


if __name__ == "__main__":
    main()
