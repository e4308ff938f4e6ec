"""Writes a frame with ``write_table``, and reads it with ``read_table``."""

from functools import partial
from typing import cast

import anyio
import polars as pl

# A client imports these when it first needs them, and the clock must not run during imports.
import aiokafkawire.producer.producer
import aiokafkawire.tables  # noqa: F401
from aiokafkawire import Client
from aiokafkawire.config import CompressionType
from benchmarks.frames.frame import Job, measure, new_frame, read_job


async def write(job: Job, frame: pl.DataFrame) -> None:
    """Write the frame."""
    async with Client(job.bootstrap) as kafka:
        compression = cast("CompressionType", job.compression)
        settings = {"acks": 1, "batch_size": 1_000_000, "linger_ms": 5, "enable_idempotence": False}
        await kafka.write_table(
            job.topic,
            frame,
            key="key",
            value="value",
            compression_type=compression,
            **settings,  # type: ignore[arg-type]
        )


async def read(job: Job) -> pl.DataFrame:
    """Read the topic."""
    async with Client(job.bootstrap) as kafka:
        table = await kafka.read_table(job.topic, columns=["key", "value", "offset", "timestamp"])
    return cast("pl.DataFrame", pl.from_arrow(table))


if __name__ == "__main__":
    job = read_job()
    measure(
        partial(anyio.run, read, job) if job.task == "read" else partial(anyio.run, write, job, new_frame(job.rows)),
        job.rows,
    )
