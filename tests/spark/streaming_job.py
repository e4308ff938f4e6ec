"""A streaming query of its own process, to be killed; run by test_restart.py.

Arguments: the bootstrap servers, a folder. It reads the topic flights into its `out`, a hundred records a batch.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.spark import running_spark


def main(bootstrap: str, folder: Path) -> None:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "startingOffsets": "earliest"}
    with running_spark() as spark:
        frame = spark.readStream.format("aiokafkawire").options(**options, maxOffsetsPerTrigger="100").load()
        writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
        writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
