"""``cluster`` on the in-process broker, in one process, and the release that versions of APIs tell."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from support.shell import Shell

from aiokafkawire import SupportedVersionRange
from aiokafkawire.admin.cluster_descriptions import RaftVoterEndpoint
from aiokafkawire.cli.cluster.endpoints import parse_endpoint
from aiokafkawire.cli.cluster.rows import release_of
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.shell.arguments import parse_uuid
from aiokafkawire.cli.shell.kafka_uuids import uuid_text
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.cluster.releases import RELEASES


@pytest.fixture
def broker() -> Any:
    with BackgroundBroker(3, racks=["a", "b", None]) as broker:
        yield broker


@pytest.fixture
def shell(broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(broker.bootstrap, capsysbinary)


def rows(shell: Shell, *argv: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.lines("cluster", *argv, "--json")]


def test_brokers_have_addresses_racks_and_releases(shell: Shell, broker: BackgroundBroker) -> None:
    found = rows(shell, "describe")
    assert [(row["node_id"], row["rack"], row["release"], row["state"]) for row in found] == [
        (1, "a", "4.3", "active controller"),
        (2, "b", "4.3", "running"),
        (3, None, "4.3", "running"),
    ]
    assert ",".join(f"{row['host']}:{row['port']}" for row in found) == broker.bootstrap
    assert len({row["cluster_id"] for row in found}) == 1
    assert shell.lines("cluster", "describe")[0].split() == [
        "CLUSTER",
        "ROLE",
        "NODE",
        "HOST",
        "PORT",
        "RACK",
        "RELEASE",
        "STATE",
    ]


def test_controllers_and_brokers_that_are_not_in_service_are_described_on_request(
    shell: Shell, broker: BackgroundBroker
) -> None:
    broker.fence_node(3)
    assert [row["node_id"] for row in rows(shell, "describe")] == [1, 2]
    found = rows(shell, "describe", "--controllers", "--fenced")
    assert [(row["role"], row["node_id"], row["state"]) for row in found] == [
        ("broker", 1, "active controller"),
        ("broker", 2, "running"),
        ("broker", 3, "fenced"),
        ("controller", 1, "active controller"),
        ("controller", 2, "voter"),
        ("controller", 3, "voter"),
    ]


def test_a_cluster_with_zookeeper_has_no_quorum(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(max_versions="2.4") as old:
        shell = Shell(old.bootstrap, capsysbinary)
        (row,) = rows(shell, "describe")
        assert (row["release"], row["state"]) == ("2.4", "active controller")
        shell("cluster", "describe", "--controllers", status=1)
        assert shell.err.startswith("aiokafkawire: UnsupportedVersion: ")
        shell("cluster", "quorum", status=1)
        assert shell.err.startswith("aiokafkawire: UnsupportedVersion: ")


@pytest.mark.parametrize("release", [name for name in RELEASES if name not in ("0.8.0", "0.8.1", "3.3")])
def test_each_release_is_known_by_its_versions(release: str) -> None:
    versions = {key: SupportedVersionRange(one.first, one.last) for key, one in RELEASES[release].items()}
    assert release_of(versions, RELEASES) == release
    some = {key: one for key, one in versions.items() if key not in (71, 72, 83, 84)}
    assert release_of(some, RELEASES) == release


def test_newer_brokers_are_at_least_the_newest_known_release() -> None:
    newest, versions = list(RELEASES.items())[-1]
    known = {key: SupportedVersionRange(one.first, one.last) for key, one in versions.items()}
    assert release_of({**known, 999: SupportedVersionRange(0, 0)}, RELEASES) == f"{newest}+"
    assert release_of({**known, 0: SupportedVersionRange(0, 99)}, RELEASES) == f"{newest}+"
    assert release_of({18: SupportedVersionRange(0, 0), 0: SupportedVersionRange(0, -1)}, RELEASES) is None


def test_features_are_described_upgraded_and_downgraded(shell: Shell) -> None:
    def level() -> int:
        (row,) = (row for row in rows(shell, "features", "--broker", "2") if row["feature"] == "group.version")
        found: int = row["level"]
        return found

    (group,) = (row for row in rows(shell, "features") if row["feature"] == "group.version")
    assert (group["min_version"], group["max_version"], group["level"]) == (0, 1, 1)
    assert rows(shell, "downgrade-features", "group.version=0", "--dry-run") == [
        {"feature": "group.version", "level": 0, "outcome": "would be changed"}
    ]
    assert level() == 1
    shell("cluster", "downgrade-features", "group.version=0", status=2)
    assert "add --yes to downgrade 1 feature" in shell.err
    assert rows(shell, "downgrade-features", "group.version=0", "-y")[0]["outcome"] == "changed"
    assert level() == 0
    shell("cluster", "upgrade-features", "group.version=9", status=1)
    assert shell.err.startswith("aiokafkawire: InvalidUpdateVersion: ")
    shell("cluster", "upgrade-features", "group.version=1")
    assert level() == 1


@pytest.mark.parametrize("wrong", ["group.version", "group.version=x", "group.version=-1", "group.version=32768", "=1"])
def test_levels_of_features_are_numbers(wrong: str, shell: Shell) -> None:
    shell("cluster", "upgrade-features", wrong, status=2)
    assert shell.err.startswith("aiokafkawire: ")
    shell("cluster", "upgrade-features", "oops", status=2)
    assert shell.err == "aiokafkawire: a feature takes FEATURE=LEVEL, got 'oops'\n"


def test_the_quorum_has_the_lag_of_each_voter(shell: Shell) -> None:
    found = rows(shell, "quorum")
    assert [(row["node_id"], row["role"], row["lag"]) for row in found] == [
        (1, "leader", 0),
        (2, "follower", 0),
        (3, "follower", 0),
    ]
    head, one, gap, columns, *replicas = shell.lines("cluster", "quorum")
    assert head.split() == ["LEADER", "LEADER", "EPOCH", "HIGH", "WATERMARK", "LARGEST", "LAG", "OF", "A", "VOTER"]
    assert one.split()[0] == "1"
    assert gap == ""
    assert columns.startswith("NODE  ROLE")
    assert len(replicas) == 3


def test_versions_of_apis_are_those_of_the_named_brokers(shell: Shell) -> None:
    found = rows(shell, "api-versions", "2")
    assert {row["node_id"] for row in found} == {2}
    assert {row["api_name"] for row in found} >= {"Produce", "Fetch", "Metadata"}
    assert {row["node_id"] for row in rows(shell, "api-versions")} == {1, 2, 3}
    assert shell("cluster", "api-versions", "7", status=1) == b""
    out = shell("cluster", "api-versions", "2", "7", "--json", status=1)
    assert {json.loads(line)["node_id"] for line in out.splitlines()} == {2}
    assert (
        shell.err
        == "aiokafkawire: BrokerNotAvailable: broker 7 is not in the cluster, or is down; the brokers are 1, 2, 3\n"
    )


def test_a_dead_broker_is_forgotten_and_an_unknown_one_is_an_error(shell: Shell, broker: BackgroundBroker) -> None:
    broker.stop_node(3)
    assert 3 in [row["node_id"] for row in rows(shell, "describe", "--fenced")]
    shell("cluster", "unregister", "3", status=2)
    assert "add --yes to forget this broker for good" in shell.err
    assert shell.lines("cluster", "unregister", "3", "--yes")[1].split() == ["3", "unregistered"]
    assert 3 not in [row["node_id"] for row in rows(shell, "describe", "--fenced")]
    shell("cluster", "unregister", "9", "--yes", status=1)
    assert shell.err.startswith("aiokafkawire: BrokerIdNotRegistered: ")


def test_a_controller_leaves_the_voters_and_comes_back(shell: Shell) -> None:
    shell("cluster", "upgrade-features", "kraft.version=1")
    third = next(row for row in rows(shell, "quorum") if row["node_id"] == 3)
    at = ("3", "--directory-id", third["directory_id"])
    assert rows(shell, "remove-controller", *at, "--yes") == [{"node_id": 3, "outcome": "removed"}]
    assert [row["role"] for row in rows(shell, "quorum") if row["node_id"] == 3] == ["observer"]
    endpoint = third["endpoints"][0]
    assert rows(shell, "add-controller", *at, "--endpoint", endpoint) == [{"node_id": 3, "outcome": "added"}]
    assert [row["role"] for row in rows(shell, "quorum") if row["node_id"] == 3] == ["follower"]
    shell("cluster", "add-controller", *at, "--endpoint", endpoint, status=1)
    assert shell.err.startswith("aiokafkawire: DuplicateVoter: adding voter 3: ")


@pytest.mark.parametrize(
    "endpoint", ["h:1", "://h:1", "C://h", "C://h:x", "C://h:99999", "C://h:1/x", "C://u@h:1", "C://"]
)
def test_what_is_no_endpoint_is_wrong_usage(endpoint: str, shell: Shell) -> None:
    uuid = "PT8P6GwdTu2Kq9jdEFpIkg"
    shell("cluster", "add-controller", "3", "--directory-id", uuid, "--endpoint", endpoint, status=2)
    assert shell.err == f"aiokafkawire: --endpoint takes LISTENER://HOST:PORT, got {endpoint!r}\n"


def test_endpoints_and_ids_are_read_as_they_are_written() -> None:
    assert parse_endpoint("CONTROLLER://[::1]:9093") == RaftVoterEndpoint("CONTROLLER", "::1", 9093)
    one = UUID("3d3f0fe8-6c1d-4eed-8aab-d8dd105a4892")
    assert uuid_text(one) == "PT8P6GwdTu2Kq9jdEFpIkg"
    assert parse_uuid("--id", uuid_text(one)) == parse_uuid("--id", str(one)) == one
    with pytest.raises(CommandFailed, match="--id takes an id such as PT8P6GwdTu2Kq9jdEFpIkg, got 'x'"):
        parse_uuid("--id", "x")
