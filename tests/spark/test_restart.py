"""A query whose driver is killed in mid-stream goes on from its checkpoint: no row is lost, and none is doubled."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import spark as support
from support.micro_batches import values_in
from support.needing import require
from support.streaming_jobs import each_once, fill, rows, run, run_and_kill

from aiokafkawire import blocking


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_driver_that_is_killed_loses_and_doubles_nothing(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    fill(kafka, 1_000)
    for batch in (3, 9):
        run_and_kill(bootstrap, tmp_path, batch)
    run(bootstrap, tmp_path)
    assert rows(tmp_path) == each_once(1_000)


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_worker_that_is_killed_has_its_task_tried_again(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    fill(kafka, 300)
    run(bootstrap, tmp_path, "lossy table")
    assert (tmp_path / "killed").exists()
    assert rows(tmp_path) == each_once(300)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_topic_written_exactly_once_has_each_row_once_though_the_driver_is_killed(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    fill(kafka, 500)
    kafka.admin.create_topics({"copies": 3})
    run_and_kill(bootstrap, tmp_path, 2, "topic")
    run(bootstrap, tmp_path, "topic")
    assert values_in(bootstrap, "copies", 3) == sorted(2 * [b"%d" % one for one in range(500)])
