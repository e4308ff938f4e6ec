"""The throttles of ``reassign start`` where something fails half way, or Ctrl-C comes: they go, or a line says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.reassigning import hold_new_replica, limits, placed, plan_file, replicas
from support.shell import Shell

from aiokafkawire import blocking
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker

STAYS = "the throttle stays until 'reassign watch' or 'reassign cancel' with this plan removes it"


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(3, log_dirs=2, default_replication_factor=1) as broker:
        yield broker


@pytest.fixture
def shell(broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(broker.bootstrap, capsysbinary)


@pytest.fixture
def kafka(broker: BackgroundBroker) -> Iterator[blocking.Client]:
    with blocking.Client(broker.bootstrap) as client:
        client.admin.create_topics({"t": placed([1, 2], [2, 1])})
        yield client


def test_a_refused_plan_leaves_no_throttle(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    broker.on(ApiKey.ALTER_PARTITION_REASSIGNMENTS, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes", "--throttle", "1000", status=1)
    assert shell.err.startswith("aiokafkawire: ClusterAuthorizationFailed: ")
    assert (replicas(kafka), limits(kafka)) == ([[1, 2], [2, 1]], {})


def test_partitions_move_off_a_broker_that_is_down_with_a_throttle(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    hold_new_replica(broker, 0)
    broker.stop_node(1)
    shell("reassign", "start", plan_file(tmp_path, [3, 2]), "--yes", "--throttle", "1000")
    assert STAYS in shell.err
    assert list(limits(kafka, (2, 3))) == ["topic 't'", "broker 2", "broker 3"]
