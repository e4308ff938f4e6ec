"""What the admin changes in a cluster of several nodes of Apache Kafka: voters come and go, brokers are forgotten."""

from __future__ import annotations

import re
import tempfile
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from uuid import UUID, uuid4

import anyio
import pytest
from support.apache_kafka import ApacheKafka, format_storage, lines_of, missing, resolve
from support.guarded_process import GuardedProcess
from support.kafka_cluster import CONTROLLER, KafkaCluster
from support.kafka_releases import number_of
from support.needing import require
from support.ports import free_ports

from aiokafkawire import Client, FeatureUpdate, QuorumInfo, RaftVoterEndpoint, UpgradeType
from aiokafkawire.errors import (
    BrokerIdNotRegistered,
    ControllerIdNotRegistered,
    DuplicateVoter,
    InvalidUpdateVersion,
    RequestTimedOut,
    VoterNotFound,
)

pytestmark = [pytest.mark.thorough, pytest.mark.anyio, pytest.mark.kafka, pytest.mark.timeout(300)]

T = TypeVar("T")
NODE = 2


@pytest.fixture
def anyio_backend() -> str:
    """One loop will do."""
    return "asyncio"


async def settled(ask: Callable[[], Awaitable[T]], is_settled: Callable[[T], bool]) -> T:
    """Ask until the answer is the expected one."""
    with anyio.fail_after(60):
        while True:
            found = await ask()
            if is_settled(found):
                return found
            await anyio.sleep(0.1)


@contextmanager
def another_controller(kafka: ApacheKafka, cluster_id: str) -> Iterator[tuple[UUID, RaftVoterEndpoint]]:
    """A controller that replicates the metadata log without a vote: the id of its directory, and where it listens."""
    with tempfile.TemporaryDirectory(prefix="aiokafkawire-kafka-", ignore_cleanup_errors=True) as folder:
        home, (port,) = Path(folder), free_ports(1)
        settings = home / "server.properties"
        settings.write_text(
            lines_of(
                {
                    "process.roles": "controller",
                    "node.id": NODE,
                    "controller.quorum.bootstrap.servers": kafka.controllers,
                    "controller.listener.names": "CONTROLLER",
                    "listeners": f"CONTROLLER://127.0.0.1:{port}",
                    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
                    "log.dirs": home / "data",
                }
            )
        )
        java = ["java", *ApacheKafka.java_options, "-cp", f"{resolve(kafka.version)}/*"]
        format_storage(java, settings, cluster_id, "--no-initial-controllers")
        found = re.search(r"directory\.id=(\S+)", (home / "data" / "meta.properties").read_text())
        assert found is not None
        server = GuardedProcess([*java, "kafka.Kafka", str(settings)], home / "server.log")
        server.launch()
        try:
            yield (
                UUID(bytes=urlsafe_b64decode(found[1].replace("\\", "") + "==")),
                RaftVoterEndpoint("CONTROLLER", "127.0.0.1", port),
            )
        finally:
            server.kill()


def ids(quorum: QuorumInfo) -> tuple[list[int], list[int]]:
    """The voters and the observers."""
    return [one.replica_id for one in quorum.voters], [one.replica_id for one in quorum.observers]


async def test_a_controller_of_apache_kafka_becomes_a_voter_and_leaves(pytestconfig: pytest.Config) -> None:
    require(missing())
    version = pytestconfig.option.kafka
    if number_of(version) < (4, 1):
        pytest.skip("voters that are fixed can be made changeable since Kafka 4.1")
    with ApacheKafka(version) as server:
        async with Client(server.bootstrap) as kafka:
            admin = kafka.admin
            await admin.update_features({"kraft.version": 1})
            before = await settled(
                admin.describe_metadata_quorum, lambda quorum: quorum.voters[0].directory_id != UUID(int=0)
            )
            with pytest.raises(InvalidUpdateVersion):
                await admin.update_features({"kraft.version": FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE)})
            first = before.voters[0]
            with pytest.raises(DuplicateVoter, match="is already part of the set of voters"):
                await admin.add_raft_voter(1, first.directory_id, before.nodes[1])
            with pytest.raises(VoterNotFound, match="Cannot remove voter"):
                await admin.remove_raft_voter(1, uuid4())
            cluster_id = (await admin.describe_cluster()).cluster_id
            assert cluster_id is not None
            with another_controller(server, cluster_id) as (directory, endpoint):
                await settled(admin.describe_metadata_quorum, lambda quorum: ids(quorum) == ([1], [NODE]))
                with pytest.raises(RequestTimedOut, match="Aborted add voter operation"):
                    await admin.add_raft_voter(NODE, uuid4(), [endpoint])

                async def add() -> bool:
                    try:
                        await admin.add_raft_voter(NODE, directory, [endpoint], cluster_id=cluster_id)
                    except RequestTimedOut:  # it is just catching up
                        return False
                    return True

                await settled(add, bool)
                quorum = await admin.describe_metadata_quorum()
                assert (ids(quorum), quorum.nodes[NODE]) == (([1, NODE], []), (endpoint,))
                await admin.remove_raft_voter(NODE, directory, cluster_id=cluster_id)
                await settled(admin.describe_metadata_quorum, lambda quorum: ids(quorum)[0] == [1])
            if number_of(version) >= (4, 4):
                await admin.unregister_controller(NODE)
                with pytest.raises(ControllerIdNotRegistered):
                    await admin.unregister_controller(NODE)


async def test_a_dead_broker_of_apache_kafka_is_fenced_and_then_forgotten(pytestconfig: pytest.Config) -> None:
    require(missing())
    version = pytestconfig.option.kafka
    with KafkaCluster(version) as cluster:
        async with (
            Client(cluster.bootstrap) as kafka,
            Client(bootstrap_controllers=cluster.address_of(CONTROLLER)) as controllers,
        ):
            assert list((await kafka.admin.describe_cluster()).nodes) == [1, 2, 3]
            assert list((await controllers.admin.describe_cluster()).nodes) == [CONTROLLER]
            quorum = await controllers.admin.describe_metadata_quorum()
            assert (quorum.leader_id, ids(quorum)) == (CONTROLLER, ([CONTROLLER], [1, 2, 3]))
            cluster.kill(3)
            await settled(kafka.admin.describe_cluster, lambda found: list(found.nodes) == [1, 2])
            if number_of(version) >= (4, 0):
                found = await kafka.admin.describe_cluster(include_fenced_brokers=True)
                assert {node.node_id: node.is_fenced for node in found.nodes.values()} == {1: False, 2: False, 3: True}
            await controllers.admin.unregister_broker(3)
            with pytest.raises(BrokerIdNotRegistered):
                await kafka.admin.unregister_broker(3)
