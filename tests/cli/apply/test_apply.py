"""``apply`` on the in-process broker: the plan, the question, and deletions."""

import io
import json
import sys
from pathlib import Path

import pytest
from support.shell import Shell

from aiokafkawire import ClientQuotaEntity, ConfigResource, blocking
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "kafka.toml"
DOCS = (ROOT / "docs" / "apply.md").read_text("utf-8")


# --- the plan ------------------------------------------------------------------------------------------------------


def test_the_example_is_planned_applied_and_then_in_place(shell: Shell, shop_password: str) -> None:
    plan = [
        "+ topic orders: 6 partitions, 1 replica, compression.type=zstd, retention.ms=604800000",
        "+ topic prices: 3 partitions, cleanup.policy=compact,delete",
        "~ all brokers: log.cleaner.threads default -> 2",
        "+ user shop: SCRAM-SHA-512 with the password in $SHOP_PASSWORD, 8192 iterations",
        "+ quota of user shop: consumer_byte_rate none -> 10485760, producer_byte_rate none -> 10485760",
        "+ quota of client id <default>: request_percentage none -> 200",
    ]
    assert shell.lines("apply", str(EXAMPLE), "--dry-run") == plan
    assert "\n".join(["$ aiokafkawire apply examples/kafka.toml --dry-run", *plan]) in DOCS
    assert shell.lines("topics", "list") == ["TOPIC"]
    assert shell("apply", str(EXAMPLE), "--check", status=3).decode().splitlines() == plan
    done = shell.lines("apply", str(EXAMPLE), "--yes")
    assert done == [f"done      {line}" for line in plan]
    assert shell.err.endswith("6 done\n")
    assert shop_password not in "".join(done) + shell.err
    for again in ("--yes", "--dry-run", "--check"):
        assert shell("apply", str(EXAMPLE), again) == b""
        assert shell.err.endswith("no changes: the cluster is as declared\n")


def test_each_difference_is_a_line_of_the_plan(shell: Shell, state: Path) -> None:
    shell("apply", str(EXAMPLE), "--yes")
    text = EXAMPLE.read_text("utf-8")
    text = text.replace("partitions = 6", "partitions = 12").replace("604800000", "3600000").replace("= 8192", "= 4096")
    state.write_text(text.replace("request_percentage = 200", "request_percentage = 150.5"), "utf-8")
    plan = [
        "~ topic orders: 6 -> 12 partitions",
        "~ topic orders: retention.ms 604800000 -> 3600000",
        "~ user shop: SCRAM-SHA-512 gets the password in $SHOP_PASSWORD, 4096 iterations",
        "~ quota of client id <default>: request_percentage 200 -> 150.5",
    ]
    assert shell.lines("apply", str(state), "--dry-run") == plan
    assert "\n".join(f"done      {line}" for line in plan) in DOCS
    rows = [json.loads(line) for line in shell.lines("apply", str(state), "--dry-run", "--json")]
    assert rows[0] == {
        "outcome": "planned",
        "action": "alter",
        "kind": "topic",
        "topic": "orders",
        "partitions": {"before": 6, "after": 12},
    }
    assert rows[1]["configs"] == {"retention.ms": {"before": "604800000", "after": "3600000"}}
    assert rows[3]["limits"] == {"request_percentage": {"before": 200.0, "after": 150.5}}
    made = [json.loads(line) for line in shell.lines("apply", str(state), "--yes", "--json")]
    assert made == [{**row, "outcome": "done", "error": None} for row in rows]
    assert shell("apply", str(state), "--check") == b""


def test_a_difference_that_no_change_removes_keeps_all_from_being_done(shell: Shell, state: Path) -> None:
    shell("topics", "create", "orders", "--partitions", "6")
    state.write_text("[topics.orders]\npartitions = 3\nreplication_factor = 2\n[topics.new]\n")
    out = shell("apply", str(state), "--yes", status=1).decode().splitlines()
    fewer = "it has 6 partitions and the file 3; none can be removed, so change the file, or delete the topic"
    assert out == [
        "+ topic new: the default number of partitions",
        f"! topic orders: {fewer}",
        "! topic orders: it has 1 replicas and the file 2: move it with 'aiokafkawire reassign'",
    ]
    assert "nothing is done" in shell.err
    shell("apply", str(state), "--dry-run", status=1)
    shell("apply", str(state), "--check", status=3)
    assert shell.lines("topics", "list") == ["TOPIC", "orders"]
    rows = [json.loads(line) for line in shell("apply", str(state), "--dry-run", "--json", status=1).splitlines()]
    assert [row["outcome"] for row in rows] == ["planned", "impossible", "impossible"]


def test_a_cluster_is_read_in_few_requests(kafka_broker: BackgroundBroker, shell: Shell, state: Path) -> None:
    names = [f"t-{number:03}" for number in range(150)]
    state.write_text("acls = []\nquotas = []\n[users]\n[brokers.1]\n" + "".join(f"[topics.{name}]\n" for name in names))
    shell("topics", "create", *names, "others")
    kafka_broker.requests.clear()
    assert shell("apply", str(state), "--check") == b""
    asked = [request for request in kafka_broker.requests if request.api is not ApiKey.API_VERSIONS]
    assert len(asked) <= 10, asked


# --- asking --------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_a_terminal_shows_the_changes_and_is_asked(
    answer: str, status: int, shell: Shell, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("topics", "create", "a", "b")
    state.write_text("[topics.c]\npartitions = 1")
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    out = shell("apply", str(state), "--delete", "topics", status=status).decode().splitlines()
    plan = ["+ topic c: 1 partition", "- topic a, with all its records", "- topic b, with all its records"]
    assert out == (plan if status else [*plan, *(f"done      {line}" for line in plan)])
    question = "make 3 changes, 2 of them deletions (topic a, with all its records, topic b, with all its records)?"
    assert question in said.getvalue()
    assert shell.lines("topics", "list")[1:] == (["a", "b"] if status else ["c"])


def test_without_a_terminal_yes_is_needed_and_without_changes_not(shell: Shell, state: Path) -> None:
    state.write_text("[topics.a]")
    assert shell("apply", str(state), status=2) == b"+ topic a: the default number of partitions\n"
    assert shell.err == "aiokafkawire: nothing is done: there is no terminal to ask on; add --yes to make 1 change\n"
    shell("topics", "create", "a")
    shell("apply", str(state))


# --- deleting ------------------------------------------------------------------------------------------------------


def test_what_the_file_does_not_mention_is_left_alone_and_told(guarded: Shell, state: Path) -> None:
    state.write_text(
        """
        [topics.a]
        configs = { "retention.ms" = 1000, "segment.ms" = 2000 }
        [[acls]]
        principal = "User:a"
        operations = ["read", "write"]
        resource = "topic"
        name = "a"
        [[quotas]]
        user = "a"
        limits = { producer_byte_rate = 1, consumer_byte_rate = 2 }
        [users.a]
        mechanism = "SCRAM-SHA-256"
        password = { env = "SHOP_PASSWORD" }
        """
    )
    guarded("apply", str(state), "--yes")
    state.write_text("acls = []\nquotas = []\n[topics.b]\n[users]")
    guarded("apply", str(state), "--yes")
    acls = "allow User:a read on topic a, allow User:a write on topic a"
    assert guarded.err.splitlines() == [
        "left alone: 1 topic that the file does not mention (a); see --delete topics",
        f"left alone: 2 acls that the file does not mention ({acls}); see --delete acls",
        "left alone: 1 quota that the file does not mention (user a); see --delete quotas",
        "left alone: 1 user that the file does not mention (a (SCRAM-SHA-256)); see --delete users",
        "1 done",
    ]
    assert guarded.lines("apply", str(state), "--yes", "--delete", "all") == [
        "done      - acl allow User:a read on topic a",
        "done      - acl allow User:a write on topic a",
        "done      - quota of user a: consumer_byte_rate 2 -> none, producer_byte_rate 1 -> none",
        "done      - user a: SCRAM-SHA-256",
        "done      - topic a, with all its records",
    ]
    assert guarded("apply", str(state), "--check", "--delete", "all") == b""
    assert guarded.err == "no changes: the cluster is as declared\n"


def test_what_a_file_does_not_declare_cannot_be_deleted_by_mistake(shell: Shell, state: Path) -> None:
    shell("topics", "create", "a")
    state.write_text("quotas = []")
    shell("apply", str(state), "--yes", "--delete", "topics", status=2)
    why = "--delete topics: the file declares no topics; to delete all of them, it needs a line '[topics]'"
    assert shell.err == f"aiokafkawire: {why}\n"
    shell("apply", str(state), "--yes", "--delete", "all")
    assert shell.lines("topics", "list") == ["TOPIC", "a"]


def test_topics_of_kafka_itself_are_neither_deleted_nor_exported_but_may_be_declared(shell: Shell, state: Path) -> None:
    shell("topics", "create", "__state", "a")
    state.write_text("[topics]")
    assert shell.lines("apply", str(state), "--yes", "--delete", "topics") == [
        "done      - topic a, with all its records"
    ]
    assert b"__state" not in shell("export", "topics", "--topic", "*")
    assert b"__state" in shell("export", "topics", "--topic", "__s*")
    state.write_text("[topics.__state]\npartitions = 2")
    assert shell.lines("apply", str(state), "--yes") == ["done      ~ topic __state: 1 -> 2 partitions"]


def test_a_name_with_control_characters_is_one_line_of_the_plan(guarded: Shell, state: Path) -> None:
    state.write_text(
        """
        [[acls]]
        principal = "User:a\\n- topic orders\\u001b[2J"
        operations = ["read"]
        resource = "group"
        name = "\\u202egroup"
        """
    )
    line = r"+ acl allow User:a\n- topic orders\x1b[2J read on group \u202egroup"
    assert guarded.lines("apply", str(state), "--dry-run") == [line]
    assert guarded.lines("apply", str(state), "--yes") == [f"done      {line}"]
    exported = guarded("export", "acls").decode()
    assert r'principal = "User:a\U0000000A- topic orders\U0000001B[2J"' in exported
    state.write_text(exported)
    assert guarded("apply", str(state), "--check", "--delete", "all") == b""
    state.write_text("acls = []")
    guarded("apply", str(state), "--dry-run")
    assert "\x1b" not in guarded.err
    assert guarded.err.count("\n") == 2


def test_what_is_applied_is_what_the_admin_describes(kafka_broker: BackgroundBroker, shell: Shell) -> None:
    shell("apply", str(EXAMPLE), "--yes")
    with blocking.Client(kafka_broker.bootstrap) as kafka:
        orders = kafka.admin.describe_topics(["orders"])["orders"]
        assert len(orders.partitions) == 6
        resource = ConfigResource.topic("orders")
        assert kafka.admin.describe_configs(resource)[resource]["compression.type"].value == "zstd"
        rates = {"producer_byte_rate": 10485760.0, "consumer_byte_rate": 10485760.0}
        assert kafka.admin.describe_client_quotas()[ClientQuotaEntity.user("shop")] == rates
        (credential,) = kafka.admin.describe_user_scram_credentials("shop")["shop"]
        assert credential.iterations == 8192
