"""A streaming query of its own process, to be killed; run by support.streaming_jobs.

Arguments: the bootstrap servers, a folder, what it does with the topic flights, a hundred records a batch, and the
master of a cluster, by default this process:

table: into the folder's `out`.
lossy table: the same, and one of Python's workers is killed in mid-task.
topic: into the topic copies, exactly once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from support.spark import running_spark


def main(bootstrap: str, folder: Path, what: str, master: str = "") -> None:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "startingOffsets": "earliest"}
    with running_spark(master or ("local[2,3]" if what == "lossy table" else "local[2]")) as spark:
        frame = spark.readStream.format("aiokafkawire").options(**options, maxOffsetsPerTrigger="100").load()
        if what == "lossy table":
            frame = frame.mapInArrow(_killed_once(str(folder / "killed")), frame.schema)
        if what == "topic":
            from aiokafkawire.spark.exactly_once import ExactlyOnceSink

            sink = ExactlyOnceSink({"kafka.bootstrap.servers": bootstrap, "topic": "copies"}, "copies-sink")
            writer = frame.select("key", "value").writeStream.foreachBatch(sink.write)
        else:
            writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()


def _killed_once(flag: str) -> Any:
    def pass_on(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            if 250 in batch.column("offset").to_pylist():
                try:
                    os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_on


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
