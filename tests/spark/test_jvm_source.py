"""Beside Spark's own Kafka source: the same rows, and a checkpoint that both go on from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import spark as support
from support.needing import require

from aiokafkawire import blocking

SCRIPT = Path(__file__).with_name("there_and_back.py")


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.timeout(500)
def test_a_checkpoint_goes_from_the_jvm_source_to_ours_and_back(apache_kafka: Any, tmp_path: Path) -> None:
    require(support.missing())
    jars = support.jvm_source(tmp_path)
    with blocking.Client(apache_kafka.bootstrap) as kafka:
        kafka.admin.create_topics({"there-and-back": 2})
    environment = {**os.environ, "PYTHONPATH": support.tree(), "PYSPARK_PYTHON": sys.executable}
    arguments = [apache_kafka.bootstrap, "there-and-back", str(tmp_path), ",".join(map(str, jars))]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5_000:]
    assert "rows 1005" in done.stdout
