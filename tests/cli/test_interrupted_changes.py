"""Ctrl-C before the answer to a change: the broker may make it nevertheless, and the command says so."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from support.patience import PATIENCE
from support.reassigning import plan_file
from support.shell import start_shell

from aiokafkawire import TopicPartitionReplica, blocking
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.background_faults import BackgroundHold

UNKNOWN = b"aiokafkawire: interrupted before the answer, so it is not known what is done\n"


def interrupt(process: subprocess.Popen[bytes], held: BackgroundHold) -> None:
    """Send Ctrl-C once the broker has the request, and see what the command says."""
    try:
        held.arrived(timeout=PATIENCE)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == (b"", UNKNOWN)
    finally:
        process.kill()
    assert process.returncode == 130


def test_ctrl_c_before_the_answer_about_log_directories_is_told(tmp_path: Path) -> None:
    replica = TopicPartitionReplica("t", 0, 1)
    with BackgroundBroker(log_dirs=2) as broker, blocking.Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        here = kafka.admin.describe_replica_log_dirs([replica])[replica].current_log_dir
        there = "/memory/1-1" if here == "/memory/1-2" else "/memory/1-2"
        file = plan_file(tmp_path, [1], log_dirs=[there])
        with (
            broker.hold(ApiKey.ALTER_REPLICA_LOG_DIRS, "after") as held,
            start_shell("reassign", "start", file, "--yes", bootstrap=broker.bootstrap) as process,
        ):
            interrupt(process, held)


@pytest.mark.parametrize(
    ("argv", "api"),
    [
        (("topics", "delete", "t", "--yes"), ApiKey.DELETE_TOPICS),
        (("topics", "elect-leaders", "t"), ApiKey.ELECT_LEADERS),
        (("groups", "delete", "g", "--yes"), ApiKey.DELETE_GROUPS),
    ],
)
def test_ctrl_c_before_the_answer_is_told(argv: tuple[str, ...], api: ApiKey, kafka_broker: BackgroundBroker) -> None:
    kafka_broker.create_topic("t")
    with (
        kafka_broker.hold(api) as held,
        start_shell(*argv, bootstrap=kafka_broker.bootstrap) as process,
    ):
        interrupt(process, held)
