"""The throttles of ``reassign start`` where something fails half way, or Ctrl-C comes: they go, or a line says so."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.patience import PATIENCE
from support.reassigning import hold_new_replica, limits, placed, plan_file, replicas
from support.shell import Shell, start_shell

from aiokafkawire import ConfigResourceType, blocking
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.configs import IncrementalAlterConfigsResponse
from aiokafkawire.protocol.messages.log_dirs import AlterReplicaLogDirsResponse, DescribeLogDirsResponse
from aiokafkawire.protocol.messages.reassignments import AlterPartitionReassignmentsResponse
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


def test_a_throttle_that_a_broker_refuses_is_set_on_no_other(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    def refuse(request: object, response: IncrementalAlterConfigsResponse) -> IncrementalAlterConfigsResponse:
        for resource in response.responses:
            if (resource.resource_type, resource.resource_name) == (ConfigResourceType.BROKER, "2"):
                resource.error_code = ErrorCode.POLICY_VIOLATION
        return response

    broker.on(ApiKey.INCREMENTAL_ALTER_CONFIGS, answer=refuse, times=None)
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes", "--throttle", "1000", status=1)
    assert "PolicyViolation" in shell.err
    assert STAYS not in shell.err
    assert replicas(kafka) == [[1, 2], [2, 1]]
    assert set(limits(kafka)) <= {"broker 2"}  # the fault changes only the answer of broker 2


def test_partitions_move_off_a_broker_that_is_down_with_a_throttle(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    hold_new_replica(broker, 0)
    broker.stop_node(1)
    shell("reassign", "start", plan_file(tmp_path, [3, 2]), "--yes", "--throttle", "1000")
    assert STAYS in shell.err
    assert list(limits(kafka, (2, 3))) == ["topic 't'", "broker 2", "broker 3"]


def test_a_throttle_stays_while_some_partitions_move_and_a_line_says_so(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    def refuse_one(
        request: object, response: AlterPartitionReassignmentsResponse
    ) -> AlterPartitionReassignmentsResponse:
        response.responses[0].partitions[1].error_code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        return response

    hold_new_replica(broker, 0)
    broker.on(ApiKey.ALTER_PARTITION_REASSIGNMENTS, answer=refuse_one)
    shell("reassign", "start", plan_file(tmp_path, [3, 2], [2, 3]), "--yes", "--throttle", "1000", status=1)
    assert "InvalidReplicaAssignment" in shell.err
    assert shell.err.endswith(f"{STAYS}\n")
    assert len(limits(kafka)) == 4


def test_a_throttle_stays_while_replicas_move_between_directories(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    def refuse_one(request: object, response: AlterReplicaLogDirsResponse) -> AlterReplicaLogDirsResponse:
        response.results[0].partitions[0].error_code = ErrorCode.LOG_DIR_NOT_FOUND
        return response

    def copying(request: object, response: DescribeLogDirsResponse) -> DescribeLogDirsResponse:
        for log_dir in response.results:
            for topic in log_dir.topics:
                for one in topic.partitions:
                    one.is_future_key = True
        return response

    broker.on(ApiKey.ALTER_REPLICA_LOG_DIRS, answer=refuse_one, node=1, times=None)
    broker.on(ApiKey.DESCRIBE_LOG_DIRS, answer=copying, times=None)
    file = plan_file(tmp_path, [1, 2], log_dirs=["/memory/1-2", "/memory/2-2"])
    shell("reassign", "start", file, "--yes", "--log-dir-throttle", "1000", status=1)
    assert "LogDirNotFound" in shell.err
    assert shell.err.endswith(f"{STAYS}\n")
    assert list(limits(kafka)) == ["broker 1", "broker 2"]


def test_what_is_complete_is_printed_although_the_throttle_cannot_be_removed(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes")
    broker.on(ApiKey.INCREMENTAL_ALTER_CONFIGS, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, times=None)
    assert b" complete\n" in shell("reassign", "watch", file, status=1)
    assert "ClusterAuthorizationFailed" in shell.err


def test_ctrl_c_before_the_answer_says_that_the_throttle_stays(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    file = plan_file(tmp_path, [3, 2])
    with (
        broker.hold(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "after") as held,
        start_shell("reassign", "start", file, "--yes", "--throttle", "9", bootstrap=broker.bootstrap) as process,
    ):
        try:
            held.arrived(timeout=PATIENCE)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, b"")
    assert err.decode().splitlines() == [
        "aiokafkawire: interrupted before the answer, so it is not known what is done",
        STAYS,
    ]
    assert len(limits(kafka)) == 4
