"""The shell's verbs for topics, ACLs, clusters, log directories and reassignments do as Kafka's own tools do."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

import pytest
from support.apache_kafka import missing
from support.java_tools import java_command
from support.kafka_cluster import KafkaCluster
from support.needing import require
from support.shell import Shell

from aiokafkawire import ConfigResource, ConfigSource, NewTopic, blocking
from aiokafkawire.cli.shell.kafka_uuids import uuid_text
from aiokafkawire.errors import UnknownTopicOrPartition

pytestmark = [pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(600)]

TOOLS = "org.apache.kafka.tools"
TOPICS, RECORDS = f"{TOOLS}.TopicCommand", f"{TOOLS}.DeleteRecordsCommand"
CLUSTER, FEATURES, QUORUM = f"{TOOLS}.ClusterTool", f"{TOOLS}.FeatureCommand", f"{TOOLS}.MetadataQuorumCommand"
VERSIONS, LOG_DIRS = f"{TOOLS}.BrokerApiVersionsCommand", f"{TOOLS}.LogDirsCommand"
REASSIGN, ELECTION, ACLS = (
    f"{TOOLS}.reassign.ReassignPartitionsCommand",
    f"{TOOLS}.LeaderElectionCommand",
    f"{TOOLS}.AclCommand",
)
CONFIGS_OF_THROTTLES = re.compile(r"(leader|follower)\.replication\.throttled\.(rate|replicas)")


@pytest.fixture(scope="module")
def apache_brokers() -> Iterator[KafkaCluster]:
    """Three brokers in two racks with two log directories each, which ask an authorizer and elect no leaders."""
    require(missing())
    properties = {
        "auto.leader.rebalance.enable": "false",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with KafkaCluster(log_dirs=2, racks={1: "a", 2: "b", 3: "a"}, properties=properties) as cluster:
        yield cluster


@pytest.fixture
def shell(apache_brokers: KafkaCluster, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(apache_brokers.bootstrap, capsysbinary)


@pytest.fixture
def kafka(apache_brokers: KafkaCluster) -> Iterator[blocking.Client]:
    with blocking.Client(apache_brokers.bootstrap) as client:
        yield client


@pytest.fixture
def tool(apache_brokers: KafkaCluster) -> Callable[..., str]:
    def run(main: str, *argv: str, fails: bool = False) -> str:
        """Run one of Kafka's tools, and return what it prints."""
        server = ["--bootstrap-server", apache_brokers.bootstrap]
        command = (
            [*java_command(), main, *argv, *server] if main == CLUSTER else [*java_command(), main, *server, *argv]
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + (done.stderr if fails else "")

    return run


Tool = Callable[..., str]


@pytest.fixture
def names() -> tuple[str, str]:
    """A topic that our shell changes, and one that Kafka's tools change."""
    return f"ours-{token_hex(4)}", f"theirs-{token_hex(4)}"


def rows(shell: Shell, *argv: str, status: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell(*argv, "--json", status=status).decode().splitlines()]


def created(kafka: blocking.Client, assignments: list[list[int]], *topics: str) -> None:
    """Create topics, and wait until all replicas are in sync."""
    kafka.admin.create_topics({topic: NewTopic(assignments=assignments) for topic in topics})
    until(lambda: all(in_sync(kafka, topic) for topic in topics))


def in_sync(kafka: blocking.Client, topic: str) -> bool:
    try:
        found = kafka.admin.describe_topics(topic)[topic]
    except UnknownTopicOrPartition:  # not all brokers know it yet
        return False
    return all(sorted(one.in_sync) == sorted(one.replicas) for one in found.partitions)


def until(is_so: Callable[[], object], seconds: float = 60) -> None:
    end = monotonic() + seconds
    while not is_so():
        assert monotonic() < end
        sleep(0.1)


def filled(kafka: blocking.Client, topic: str, partitions: int, *, count: int = 10, size: int = 1) -> None:
    with kafka.producer(acks="all") as producer:
        for index in range(partitions):
            for _ in range(count):
                producer.send(topic, bytes(size), partition=index)


def table(text: str) -> list[dict[str, str]]:
    """Return the rows of a table that a tool prints, by its columns."""
    header, *lines = [line.split() for line in text.splitlines() if line.strip()]
    return [dict(zip(header, line, strict=False)) for line in lines]


# --- topics --------------------------------------------------------------------------------------------------------


def told(tool: Tool, *argv: str) -> list[dict[str, str]]:
    """Return the rows of kafka-topics --describe about topics and partitions."""
    lines = [line.strip().split("\t") for line in tool(TOPICS, "--describe", *argv).splitlines() if "Topic: " in line]
    return [dict(re.fullmatch(r"(\w+): ?(.*)", cell).groups() for cell in line) for line in lines]  # type: ignore[union-attr, misc]


def as_told(row: dict[str, Any]) -> dict[str, str]:
    """Return a partition of ours in the tool's words."""
    return {
        "Topic": row["topic"],
        "Partition": str(row["partition"]),
        "Leader": "none" if row["leader_id"] is None else str(row["leader_id"]),
        "Replicas": ",".join(map(str, row["replicas"])),
        "Isr": ",".join(map(str, row["isr"])),
        "Elr": ",".join(map(str, row["elr"])),
        "LastKnownElr": ",".join(map(str, row["last_known_elr"])),
    }


def test_topics_are_described_and_extended_as_by_kafka_topics(
    shell: Shell, kafka: blocking.Client, tool: Tool, names: tuple[str, str]
) -> None:
    shell("topics", "create", names[0], "--partitions", "3", "--topic-config", "retention.ms=5000000")
    created(kafka, [[1, 2], [2, 3], [3, 1]], names[1])
    until(lambda: in_sync(kafka, names[0]))
    for topic in names:
        head, *partitions = told(tool, "--topic", topic)
        ours = rows(shell, "topics", "describe", topic)
        assert [as_told(row) for row in ours] == partitions
        assert {row["topic_id"] for row in ours} == {uuid_text(kafka.admin.describe_topics(topic)[topic].topic_id)}
        assert len(partitions) == int(head["PartitionCount"])
        configs = dict(part.split("=", 1) for part in head["Configs"].split(",") if part)
        # The tool prints the brokers' configs among those of the topic.
        assert ours[0]["configs"].items() <= configs.items()
        assert ours[0]["configs"] == ({"retention.ms": "5000000"} if topic == names[0] else {})
    shell("topics", "add-partitions", names[0], "--partitions", "5")
    tool(TOPICS, "--alter", "--topic", names[1], "--partitions", "5")
    until(lambda: all(len(kafka.admin.describe_topics(topic)[topic].partitions) == 5 for topic in names))
    shell("topics", "add-partitions", names[0], "--partitions", "4", status=1)
    assert "InvalidPartitions" in shell.err
    assert "InvalidPartitionsException" in tool(TOPICS, "--alter", "--topic", names[1], "--partitions", "4", fails=True)


def test_records_are_deleted_as_by_kafka_delete_records(
    shell: Shell, kafka: blocking.Client, tool: Tool, names: tuple[str, str], tmp_path: Path
) -> None:
    created(kafka, [[1, 2], [2, 3], [3, 1]], *names)
    for topic in names:
        filled(kafka, topic, 3)
    ours = rows(shell, "topics", "delete-records", f"{names[0]}:0", "--before", "4", "--yes")
    ours += rows(shell, "topics", "delete-records", f"{names[0]}:1", "--before", "end", "--yes")
    shell("topics", "delete-records", f"{names[0]}:2", "--before", "11", "--yes", status=1)
    assert shell.err.startswith("aiokafkawire: OffsetOutOfRange: ")
    wanted = [{"topic": names[1], "partition": index, "offset": offset} for index, offset in enumerate((4, -1, 11))]
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({"version": 1, "partitions": wanted}))
    printed = tool(RECORDS, "--offset-json-file", str(path))
    marks = sorted(re.findall(rf"{names[1]}-(\d)\tlow_watermark: (-?\d+)", printed))
    assert [(str(row["partition"]), str(row["low_watermark"])) for row in ours] == marks == [("0", "4"), ("1", "10")]
    assert f"{names[1]}-2\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException" in printed


# --- ACLs ----------------------------------------------------------------------------------------------------------

_RESOURCE = re.compile(r"ResourcePattern\(resourceType=(\w+), name=(\S+), patternType=(\w+)\)")
_ENTRY = re.compile(r"\(principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)")
Rule = tuple[str, ...]


def rules(text: str) -> set[Rule]:
    """Return the ACLs that kafka-acls lists, in our words."""
    found: set[Rule] = set()
    resource: tuple[str | Any, ...] = ("", "", "")
    for line in text.splitlines():
        named, entry = _RESOURCE.search(line), _ENTRY.search(line)
        if named is not None:
            resource = named.groups()
        elif entry is not None:
            principal, host, operation, permission = entry.groups()
            codes = [code.lower().replace("_", "-") for code in (resource[0], resource[2], operation, permission)]
            found.add((codes[0], resource[1], codes[1], principal, host, codes[2], codes[3]))
    return found


def our_rules(shell: Shell, *argv: str) -> set[Rule]:
    return {tuple(row.values()) for row in rows(shell, "acls", "list", *argv)}


@pytest.mark.parametrize(
    "argv",
    [
        ["--producer", "--topic", "a", "--topic", "b"],
        ["--producer", "--idempotent", "--topic", "a", "--transactional-id", "x"],
        ["--consumer", "--topic", "a", "--group", "g", "--allow-host", "192.0.2.1"],
        ["--producer", "--consumer", "--topic", "a.", "--group", "g-", "--resource-pattern-type", "prefixed"],
        ["--operation", "all", "--topic", "*", "--group", "*"],
        ["--operation", "create", "--operation", "describe-configs", "--cluster"],
        ["--operation", "create-tokens", "--user-principal", "User:zed"],
    ],
    ids=lambda argv: " ".join(argv),
)
def test_acls_are_made_and_deleted_as_by_kafka_acls(argv: list[str], shell: Shell, tool: Tool) -> None:
    ours, theirs = f"User:ours-{token_hex(3)}", f"User:theirs-{token_hex(3)}"
    shell("acls", "create", "--allow-principal", ours, *argv)
    as_theirs = [
        word.title().replace("-", "") if before == "--operation" else word
        for before, word in zip(["", *argv], argv, strict=False)
    ]
    tool(ACLS, "--add", "--allow-principal", theirs, *as_theirs)
    until(lambda: our_rules(shell, "--principal", ours) and our_rules(shell, "--principal", theirs))
    mine, other = our_rules(shell, "--principal", ours), our_rules(shell, "--principal", theirs)
    assert {(*rule[:3], *rule[4:]) for rule in mine} == {(*rule[:3], *rule[4:]) for rule in other}
    assert rules(tool(ACLS, "--list", "--principal", ours)) == mine
    assert our_rules(shell) >= mine | other
    filters = [word for word in argv if word != "--allow-host"]
    filters = [word if word != "192.0.2.1" else "" for word in filters if word]
    shell("acls", "delete", "--principal", ours, *[word for word in filters if word], "--yes")
    tool(ACLS, "--remove", "--force", "--allow-principal", theirs, *as_theirs)
    until(lambda: not our_rules(shell, "--principal", ours, "--principal", theirs))


def test_denials_and_filters_are_those_of_kafka_acls(shell: Shell, tool: Tool) -> None:
    who, name = f"User:{token_hex(3)}", f"t-{token_hex(3)}"
    shell("acls", "create", "--deny-principal", who, "--deny-host", "192.0.2.7", "--operation", "read", "--topic", name)
    shell(
        "acls", "create", "--allow-principal", who, "--operation", "write", "--topic", name[:4], "--pattern", "prefixed"
    )
    for pattern in ("literal", "prefixed", "any", "match"):
        argv = ("--topic", name, "--resource-pattern-type", pattern)
        assert our_rules(shell, *argv, "--principal", who) == rules(tool(ACLS, "--list", *argv, "--principal", who))
    assert len(our_rules(shell, "--principal", who)) == 2
    shell("acls", "delete", "--principal", who, "--yes", "--topic", name, "--pattern", "match")
    until(lambda: not our_rules(shell, "--principal", who))


# --- the cluster ---------------------------------------------------------------------------------------------------


def test_nodes_are_those_of_kafka_cluster(shell: Shell, tool: Tool, apache_brokers: KafkaCluster) -> None:
    def endpoints(*argv: str) -> list[tuple[str, ...]]:
        found = table(tool(CLUSTER, "list-endpoints", *argv))
        return sorted((row["ID"], row["HOST"], row["PORT"], row["RACK"]) for row in found)

    def ours(*argv: str) -> list[tuple[str, ...]]:
        found = [row for row in rows(shell, "cluster", "describe", *argv) if row["role"] == "broker"]
        return sorted((str(row["node_id"]), row["host"], str(row["port"]), row["rack"]) for row in found)

    described = rows(shell, "cluster", "describe", "--controllers")
    assert f"Cluster ID: {described[0]['cluster_id']}" in tool(CLUSTER, "cluster-id")
    assert {row["release"] for row in described if row["role"] == "broker"} == {
        ".".join(apache_brokers.version.split(".")[:2])
    }
    assert [(row["role"], row["node_id"]) for row in described if row["state"] == "active controller"] == [
        ("controller", 100)
    ]
    assert ours() == endpoints()
    apache_brokers.end(3)
    try:
        until(lambda: len(ours()) == 2)
        assert ours("--fenced") == endpoints("--include-fenced-brokers")
        (fenced,) = (row for row in rows(shell, "cluster", "describe", "--fenced") if row["state"] == "fenced")
        assert fenced["node_id"] == 3
        shell("cluster", "unregister", "3", "--yes")
        until(lambda: len(ours("--fenced")) == 2)
        assert ours("--fenced") == endpoints("--include-fenced-brokers")
        shell("cluster", "unregister", "77", "--yes", status=1)
        assert "BrokerIdNotRegistered" in shell.err
        assert "BrokerIdNotRegisteredException" in tool(CLUSTER, "unregister", "--id", "77", fails=True)
    finally:
        apache_brokers.restart(3)
        apache_brokers.wait_whole()
    until(lambda: len(ours()) == 3)


def test_features_are_those_of_kafka_features(shell: Shell, tool: Tool) -> None:
    def theirs() -> dict[str, tuple[str, ...]]:
        found = {}
        for line in tool(FEATURES, "describe").splitlines():
            fields = dict(re.findall(r"(\w+): (\S+)", line))
            if "Feature" in fields:
                known = ("SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel", "Epoch")
                found[fields["Feature"]] = tuple(fields[name] for name in known)
        return found

    def ours() -> dict[str, tuple[str, ...]]:
        found = {}
        for row in rows(shell, "cluster", "features"):
            found[row["feature"]] = tuple(
                str(row[name]) for name in ("min_version", "max_version", "level", "finalized_features_epoch")
            )
        return found

    def same() -> bool:
        mine, other = ours(), theirs()
        assert set(mine) == set(other)
        named = "metadata.version"  # the tool prints the releases of its levels
        return {k: v[:3] for k, v in mine.items() if k != named} == {k: v[:3] for k, v in other.items() if k != named}

    assert same()
    name = "group.version"
    before = ours()[name]
    assert rows(shell, "cluster", "downgrade-features", f"{name}=0", "--dry-run")[0]["outcome"] == "would be changed"
    assert ours()[name][:3] == before[:3]
    shell("cluster", "downgrade-features", f"{name}=0", "--yes")
    until(lambda: ours()[name][2] == "0")
    assert same()
    tool(FEATURES, "upgrade", "--feature", f"{name}=1")
    until(lambda: ours()[name][2] == "1")
    shell("cluster", "upgrade-features", f"{name}=9", status=1)
    assert "only supports versions 0-1" in shell.err
    assert "only supports versions 0-1" in tool(FEATURES, "upgrade", "--feature", f"{name}=9", fails=True)


def test_the_quorum_is_that_of_kafka_metadata_quorum(shell: Shell, tool: Tool) -> None:
    status = dict(re.findall(r"^(\w+):\s+(.*)$", tool(QUORUM, "describe", "--status"), re.MULTILINE))
    found = rows(shell, "cluster", "quorum")
    leader = found[0]
    assert (status["LeaderId"], status["LeaderEpoch"]) == (str(leader["node_id"]), str(leader["leader_epoch"]))
    voters = json.loads(status["CurrentVoters"])
    assert [(one["id"], one["endpoints"]) for one in voters] == [
        (row["node_id"], row["endpoints"]) for row in found if row["role"] != "observer"
    ]
    listed = [(row["NodeId"], row["Status"].lower()) for row in table(tool(QUORUM, "describe", "--replication"))]
    assert sorted(listed) == sorted((str(row["node_id"]), row["role"]) for row in found)
    assert all(row["lag"] is not None and row["lag"] >= 0 for row in found)


def test_versions_of_apis_are_those_of_kafka_broker_api_versions(shell: Shell, tool: Tool) -> None:
    printed = tool(VERSIONS).split("(id: 2 rack")[1].split("(id: ")[0]
    lines = re.findall(r"(\w+)\((\d+)\): (\d+)(?: to (\d+))? \[", printed)
    theirs = {int(key): (name, int(low), int(high or low)) for name, key, low, high in lines}
    ours = {
        row["api_key"]: (row["api_name"], row["min_version"], row["max_version"])
        for row in rows(shell, "cluster", "api-versions", "2")
    }
    assert {key: one[1:] for key, one in ours.items()} == {key: one[1:] for key, one in theirs.items()}


# --- log directories -----------------------------------------------------------------------------------------------


def test_log_directories_are_those_of_kafka_log_dirs(
    shell: Shell, kafka: blocking.Client, tool: Tool, names: tuple[str, str]
) -> None:
    created(kafka, [[1, 2], [2, 3], [3, 1]], names[0])
    filled(kafka, names[0], 3)

    def theirs() -> set[tuple[Any, ...]]:
        printed = tool(LOG_DIRS, "--describe", "--topic-list", names[0])
        (line,) = [line for line in printed.splitlines() if line.startswith("{")]
        return {
            (broker["broker"], log_dir["logDir"], part["partition"], part["size"], part["offsetLag"], part["isFuture"])
            for broker in json.loads(line)["brokers"]
            for log_dir in broker["logDirs"]
            for part in log_dir["partitions"]
        }

    def ours() -> set[tuple[Any, ...]]:
        keys = ("node_id", "log_dir", "topic", "partition", "size_bytes", "offset_lag", "is_future")
        found = [
            [row[key] for key in keys]
            for row in rows(shell, "log-dirs", "describe", "--topic", names[0], "--by", "replica")
        ]
        return {(broker, path, f"{topic}-{number}", *rest) for broker, path, topic, number, *rest in found}

    until(lambda: {one[4] for one in ours()} == {0})
    before = ours()
    assert before == theirs()
    for row in rows(shell, "log-dirs", "describe", "--topic", names[0]):
        here = [one for one in before if one[:2] == (row["node_id"], row["log_dir"])]
        assert (row["replica_count"], row["size_bytes"]) == (len(here), sum(one[3] for one in here))
    here = next(one[1] for one in before if one[0] == 2 and one[2] == f"{names[0]}-0")
    (there,) = {row["log_dir"] for row in rows(shell, "log-dirs", "describe", "--broker", "2")} - {here}
    shell("log-dirs", "move", f"{names[0]}:0", "--broker", "2", "--to", there)
    until(lambda: {one[1] for one in ours() if one[0] == 2 and one[2] == f"{names[0]}-0"} == {there})
    assert ours() == theirs()


# --- reassignments -------------------------------------------------------------------------------------------------


def throttles(kafka: blocking.Client, topic: str) -> dict[str, dict[str, str | None]]:
    """Return the throttles that are set, with the topic's name left out."""
    resources = [ConfigResource.topic(topic), *map(ConfigResource.broker, (1, 2, 3))]
    own = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG)
    return {
        str(resource).replace(topic, "-"): {
            name: entry.value
            for name, entry in configs.items()
            if CONFIGS_OF_THROTTLES.fullmatch(name) and entry.source in own
        }
        for resource, configs in kafka.admin.describe_configs(resources).items()
    }


def plan_of(folder: Path, topic: str, *targets: list[int]) -> str:
    path = folder / f"{topic}.json"
    entries = [{"topic": topic, "partition": index, "replicas": nodes} for index, nodes in enumerate(targets)]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


def replicas(kafka: blocking.Client, topic: str) -> list[list[int]]:
    return [list(one.replicas) for one in kafka.admin.describe_topics(topic)[topic].partitions]


def test_each_tool_reads_the_plans_of_the_other(
    shell: Shell, kafka: blocking.Client, tool: Tool, names: tuple[str, str], tmp_path: Path
) -> None:
    created(kafka, [[1, 3], [3, 1], [1, 3]], *names)
    ours = shell("reassign", "plan", *names, "--brokers", "1,2,3").decode()
    path = tmp_path / "ours.json"
    path.write_text(ours)
    for entry in json.loads(ours)["partitions"]:
        assert 2 in entry["replicas"]  # the only broker of the other rack
    printed = tool(REASSIGN, "--reassignment-json-file", str(path), "--execute")
    assert "Successfully started partition reassignments" in printed
    until(lambda: rows(shell, "reassign", "list") == [])
    assert printed_states(tool(REASSIGN, "--reassignment-json-file", str(path), "--verify")) == {"is completed."}
    assert {row["state"] for row in rows(shell, "reassign", "status", str(path))} == {"complete"}
    # The tool prints the same present assignment as ours, with the log directories.
    wanted = tmp_path / "topics.json"
    wanted.write_text(json.dumps({"topics": [{"topic": name} for name in names], "version": 1}))
    generated = tool(REASSIGN, "--topics-to-move-json-file", str(wanted), "--broker-list", "1,2", "--generate")
    current, proposed = (line for line in generated.splitlines() if line.startswith("{"))
    assert current == shell("reassign", "plan", *names, "--current").decode().strip()
    assert all("any" not in entry["log_dirs"] for entry in json.loads(current)["partitions"])
    again = json.loads(shell("reassign", "plan", *names))
    assert placed(json.dumps(again)) == placed(current)
    theirs = tmp_path / "theirs.json"
    theirs.write_text(proposed)
    shell("reassign", "start", str(theirs), "--yes")
    assert {row["state"] for row in rows(shell, "reassign", "watch", str(theirs), "--interval", "0.2")} == {"complete"}
    assert printed_states(tool(REASSIGN, "--reassignment-json-file", str(theirs), "--verify")) == {"is completed."}
    assert {tuple(sorted(one)) for name in names for one in replicas(kafka, name)} == {(1, 2)}


def placed(text: str) -> list[tuple[str, int, list[int]]]:
    return [(entry["topic"], entry["partition"], entry["replicas"]) for entry in json.loads(text)["partitions"]]


def printed_states(text: str) -> set[str]:
    return set(re.findall(r"Reassignment of partition \S+ (.*)", text))


def test_throttles_lists_and_cancellations_are_those_of_kafka_reassign_partitions(
    shell: Shell, kafka: blocking.Client, tool: Tool, names: tuple[str, str], tmp_path: Path
) -> None:
    created(kafka, [[1, 2], [2, 1]], *names)
    for name in names:
        filled(kafka, name, 2, count=12, size=500_000)
    files = {name: plan_of(tmp_path, name, [3, 2], [2, 3]) for name in names}
    clean: dict[str, dict[str, str | None]] = {"topic '-'": {}, **{f"broker {node}": {} for node in (1, 2, 3)}}
    assert throttles(kafka, names[0]) == clean

    started = rows(shell, "reassign", "start", files[names[0]], "--throttle", "1000", "--yes")
    assert [(row["adding_replicas"], row["removing_replicas"]) for row in started] == [([3], [1]), ([3], [1])]
    assert all(row["bytes_to_copy"] > 6_000_000 for row in started)
    ours = throttles(kafka, names[0])
    listed = rows(shell, "reassign", "list")
    assert [row["topic"] for row in listed] == [names[0]] * 2
    printed = tool(REASSIGN, "--list")
    for row in listed:
        now, adding, removing = (
            ",".join(map(str, row[key])) for key in ("replicas", "adding_replicas", "removing_replicas")
        )
        assert f"{names[0]}-{row['partition']}: replicas: {now}. adding: {adding}. removing: {removing}." in printed
    verified = tool(REASSIGN, "--reassignment-json-file", files[names[0]], "--verify")
    assert printed_states(verified) == {"is still in progress."}
    assert {row["state"] for row in rows(shell, "reassign", "status", files[names[0]], status=1)} == {"moving"}
    cancelled = rows(shell, "reassign", "cancel", files[names[0]], "--yes")
    assert [row["outcome"] for row in cancelled] == ["cancelled"] * 2
    until(lambda: throttles(kafka, names[0]) == clean)

    tool(REASSIGN, "--reassignment-json-file", files[names[1]], "--execute", "--throttle", "1000")
    theirs = throttles(kafka, names[1])
    assert ours == theirs
    assert ours["broker 3"] == {
        "leader.replication.throttled.rate": "1000",
        "follower.replication.throttled.rate": "1000",
    }
    tool(REASSIGN, "--reassignment-json-file", files[names[1]], "--cancel")
    until(lambda: throttles(kafka, names[1]) == clean)
    assert [sorted(one) for one in replicas(kafka, names[0])] == [sorted(one) for one in replicas(kafka, names[1])]

    # Without a throttle, the same plan ends, and the watch removes a throttle that is set later.
    shell("reassign", "start", files[names[0]], "--throttle", "50000000", "--yes")
    watched = rows(shell, "reassign", "watch", files[names[0]], "--interval", "0.1")
    assert {row["state"] for row in watched} == {"complete"}
    until(lambda: throttles(kafka, names[0]) == clean)
    assert replicas(kafka, names[0]) == [[3, 2], [2, 3]]
    assert printed_states(tool(REASSIGN, "--reassignment-json-file", files[names[0]], "--verify")) == {"is completed."}


def test_filters_and_elections_are_those_of_kafka_topics_and_kafka_leader_election(
    shell: Shell,
    kafka: blocking.Client,
    tool: Tool,
    names: tuple[str, str],
    apache_brokers: KafkaCluster,
    tmp_path: Path,
) -> None:
    alone = [f"{name}-alone" for name in names]
    created(kafka, [[1, 2], [3, 1], [1, 2]], *names)
    created(kafka, [[3]], *alone)
    apache_brokers.end(3)
    try:
        for option, theirs in (
            ("--under-replicated", "--under-replicated-partitions"),
            ("--unavailable", "--unavailable-partitions"),
        ):
            until(lambda option=option: rows(shell, "topics", "describe", *alone, option))  # type: ignore[misc]
            for topic in (*names, *alone):
                found = [as_told(row) for row in rows(shell, "topics", "describe", topic, option)]
                assert found == told(tool, theirs, "--topic", topic)
    finally:
        apache_brokers.restart(3)
        apache_brokers.wait_whole()
    until(lambda: all(in_sync(kafka, topic) for topic in names))
    assert [row["outcome"] for row in rows(shell, "topics", "elect-leaders", f"{names[0]}:1,2")] == [
        "elected",
        "not needed",
    ]
    path = tmp_path / "election.json"
    path.write_text(json.dumps({"partitions": [{"topic": names[1], "partition": index} for index in (1, 2)]}))
    printed = tool(ELECTION, "--election-type", "preferred", "--path-to-json-file", str(path))
    assert f"Successfully completed leader election (PREFERRED) for partitions {names[1]}-1" in printed
    assert f"Valid replica already elected for partitions {names[1]}-2" in printed
    until(lambda: [row["leader_id"] for row in rows(shell, "topics", "describe", *names)] == [1, 3, 1] * 2)
