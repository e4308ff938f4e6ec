"""Kafka's own tools for clusters, features and quorums tell what the admin tells, and see what it changes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from support.apache_kafka import ApacheKafka, missing
from support.java_tools import java_command
from support.needing import require

from aiokafkawire import ClusterNode, FeatureUpdate, UpgradeType, blocking
from aiokafkawire.errors import BrokerIdNotRegistered, InvalidUpdateVersion
from aiokafkawire.testing.background import BackgroundBroker

pytestmark = [pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(300)]

CLUSTER = "org.apache.kafka.tools.ClusterTool"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


@pytest.fixture(scope="module", params=["in-process", "apache-kafka"])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """A cluster of its own, since features change."""
    require(missing())
    if request.param == "apache-kafka":
        with ApacheKafka(request.config.option.kafka) as kafka:
            yield kafka.bootstrap
        return
    with BackgroundBroker() as broker:
        yield broker.bootstrap


@pytest.fixture
def kafka(bootstrap: str) -> Iterator[blocking.Client]:
    with blocking.Client(bootstrap) as client:
        yield client


def told(bootstrap: str, main: str, *argv: str, fails: bool = False) -> str:
    """What a tool prints."""
    command = [*java_command(), main]
    # kafka-cluster.sh takes the server after the verb, the others before it.
    server = ["--bootstrap-server", bootstrap]
    command += [*argv, *server] if main == CLUSTER else [*server, *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr if fails else done.stdout


def table(text: str) -> list[dict[str, str]]:
    """The rows of a table, by its columns."""
    header, *rows = [line.split() for line in text.splitlines() if line.strip()]
    return [dict(zip(header, row, strict=True)) for row in rows]


def features_told(bootstrap: str) -> dict[str, dict[str, str]]:
    """The features that kafka-features.sh describes, by name."""
    found = {}
    for line in told(bootstrap, FEATURES, "describe").splitlines():
        fields = dict(re.findall(r"(\w+): (\S+)", line))
        if "Feature" in fields:
            found[fields["Feature"]] = fields
    return found


def test_the_cluster_and_its_brokers(bootstrap: str, kafka: blocking.Client) -> None:
    found = kafka.admin.describe_cluster()
    assert f"Cluster ID: {found.cluster_id}" in told(bootstrap, CLUSTER, "cluster-id")
    (row,) = table(told(bootstrap, CLUSTER, "list-endpoints"))
    (node,) = found.nodes.values()
    assert (row["ID"], row["HOST"], row["PORT"]) == (str(node.node_id), node.address.host, str(node.address.port))
    (row,) = table(told(bootstrap, CLUSTER, "list-endpoints", "--include-fenced-brokers"))
    fenced = kafka.admin.describe_cluster(include_fenced_brokers=True)
    assert fenced.nodes == {1: ClusterNode(1, node.address, None, is_fenced=False)}
    assert (row["ID"], row["STATE"]) == ("1", "unfenced")


def test_a_broker_that_is_not_registered(bootstrap: str, kafka: blocking.Client) -> None:
    text = told(bootstrap, CLUSTER, "unregister", "--id", "99", fails=True)
    assert "BrokerIdNotRegisteredException" in text
    with pytest.raises(BrokerIdNotRegistered):
        kafka.admin.unregister_broker(99)


def test_features(bootstrap: str, kafka: blocking.Client) -> None:
    found, lines = kafka.admin.describe_features(), features_told(bootstrap)
    assert set(lines) == set(found.supported_features)
    for name, supported in found.supported_features.items():
        finalized = found.finalized_features.get(name)
        if name != "metadata.version":  # the tool prints the releases of these levels
            assert lines[name]["SupportedMinVersion"] == str(supported.min_version)
            assert lines[name]["SupportedMaxVersion"] == str(supported.max_version)
            level = finalized.max_version_level if finalized is not None else 0
            assert lines[name]["FinalizedVersionLevel"] == str(level)


def test_the_tool_sees_updates_of_the_admin_and_the_admin_those_of_the_tool(
    bootstrap: str, kafka: blocking.Client
) -> None:
    name, off = "group.version", FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE)
    kafka.admin.update_features({name: off}, validate_only=True)
    told(bootstrap, FEATURES, "downgrade", "--feature", f"{name}=0", "--dry-run")
    assert features_told(bootstrap)[name]["FinalizedVersionLevel"] == "1"
    kafka.admin.update_features({name: off})
    assert features_told(bootstrap)[name]["FinalizedVersionLevel"] == "0"
    told(bootstrap, FEATURES, "upgrade", "--feature", f"{name}=1")
    assert kafka.admin.describe_features().finalized_features[name].max_version_level == 1
    wrong = "Local controller 1 only supports versions 0-1"
    assert wrong in told(bootstrap, FEATURES, "upgrade", "--feature", f"{name}=9", fails=True)
    with pytest.raises(InvalidUpdateVersion, match=wrong):
        kafka.admin.update_features({name: 9})


def test_the_quorum(bootstrap: str, kafka: blocking.Client) -> None:
    text = told(bootstrap, QUORUM, "describe", "--status")
    found = kafka.admin.describe_metadata_quorum()
    fields = dict(re.findall(r"^(\w+):\s+(.*)$", text, re.MULTILINE))
    assert fields["ClusterId"] == kafka.admin.describe_cluster().cluster_id
    assert (fields["LeaderId"], fields["LeaderEpoch"]) == (str(found.leader_id), str(found.leader_epoch))
    assert int(fields["HighWatermark"]) <= found.high_watermark
    voters: list[dict[str, Any]] = json.loads(fields["CurrentVoters"])
    assert [voter["id"] for voter in voters] == [voter.replica_id for voter in found.voters]
    ends = [[f"{at.listener}://{at.host}:{at.port}" for at in each] for each in found.nodes.values()]
    assert [voter["endpoints"] for voter in voters] == ends
    (row,) = table(told(bootstrap, QUORUM, "describe", "--replication"))
    assert (row["NodeId"], row["Lag"], row["Status"]) == ("1", "0", "Leader")
