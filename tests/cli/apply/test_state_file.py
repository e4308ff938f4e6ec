"""Files that declare a cluster's state: what is read, what is refused, and what is written."""

import pytest

from aiokafkawire.cli.apply.cluster_settings import (
    DEFAULT,
    HIDDEN,
    Acl,
    ClusterSettings,
    DeclaredTopic,
    QuotaEntity,
    Secret,
    User,
)
from aiokafkawire.cli.apply.state_file import parse_state
from aiokafkawire.cli.apply.state_writer import format_state
from aiokafkawire.cli.exit_status import CommandFailed

FILE = """
[topics.orders]
partitions = 12
replication_factor = 3
configs = { "retention.ms" = 3600000, "cleanup.policy" = ["compact", "delete"], "preallocate" = true }

[topics."with.dots"]

[brokers.default]
"log.cleaner.threads" = "2"

[[acls]]
principal = "User:alice"
operations = ["read", "describe"]
resource = "topic"
name = "orders-"
pattern = "prefixed"

[[acls]]
principal = "User:*"
operations = ["alter"]
resource = "cluster"
permission = "deny"
host = "10.0.0.1"

[[quotas]]
user = "alice"
client_id = "<default>"
limits = { producer_byte_rate = 1048576, request_percentage = 12.5 }

[users.alice]
mechanism = "SCRAM-SHA-512"
iterations = 8192
password = { env = "ALICE_PASSWORD" }

[[users.bob]]
mechanism = "SCRAM-SHA-256"
password = { file = "/run/secrets/bob" }
"""

STATE = ClusterSettings(
    topics={
        "orders": DeclaredTopic(
            12, 3, {"retention.ms": "3600000", "cleanup.policy": "compact,delete", "preallocate": "true"}
        ),
        "with.dots": DeclaredTopic(),
    },
    brokers={DEFAULT: {"log.cleaner.threads": "2"}},
    acls=frozenset(
        {
            Acl("User:alice", "read", "topic", "orders-", "prefixed"),
            Acl("User:alice", "describe", "topic", "orders-", "prefixed"),
            Acl("User:*", "alter", "cluster", "kafka-cluster", permission="deny", host="10.0.0.1"),
        }
    ),
    quotas={QuotaEntity("alice", DEFAULT): {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}},
    users={
        "alice": (User("SCRAM-SHA-512", 8192, Secret(environment="ALICE_PASSWORD")),),
        "bob": (User("SCRAM-SHA-256", None, Secret(file="/run/secrets/bob")),),
    },
)


def test_a_file_with_everything_is_read() -> None:
    assert parse_state(FILE) == STATE


def test_subjects_that_a_file_leaves_out_are_not_declared() -> None:
    assert parse_state("") == ClusterSettings()
    assert parse_state("acls = []").acls == frozenset()


def test_what_is_written_is_read_again() -> None:
    written = format_state(STATE)
    again = parse_state(written)
    assert (again.topics, again.brokers, again.acls, again.quotas) == (
        STATE.topics,
        STATE.brokers,
        STATE.acls,
        STATE.quotas,
    )
    assert again.users == {
        "alice": (User("SCRAM-SHA-512", 8192, Secret(environment="ALICE_PASSWORD")),),
        "bob": (User("SCRAM-SHA-256", None, Secret(environment="BOB_PASSWORD")),),
    }
    assert format_state(again) == written


@pytest.mark.parametrize("name", ['a"b', "tab\there", "back\\slash", "ünïcode", "<default>", "", "\x7f"])
def test_names_of_any_characters_are_written_and_read(name: str) -> None:
    state = ClusterSettings(brokers={"1": {name: name}} if name else {}, users={})
    assert parse_state(format_state(state)) == state


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topics = 3", "1:1: topics must be a table, got int"),
        (
            "[topic.a]",
            "1:2: topic is unknown; did you mean topics? known: topics, brokers, acls, quotas, users",
        ),
        (
            "[topics.a]\nsize = 3",
            "2:1: topics.a.size is unknown; known: partitions, replication_factor, configs",
        ),
        (
            "[topics.a]\n  partition = 3",
            "2:3: topics.a.partition is unknown; did you mean partitions? known: partitions,",
        ),
        ("[topics.a]\npartitions = 0", "2:1: topics.a.partitions must be a whole number from 1 to 2147483647, got 0"),
        ("[topics.a]\npartitions = true", "2:1: topics.a.partitions must be a whole number"),
        ("[topics.a]\npartitions = '3'", "2:1: topics.a.partitions must be a whole number"),
        ("[topics.'a b']", '1:9: topics."a b" is wrong: '),
        (
            "[topics.a]\n\n[topics.a.configs]\n# Long.\nretention.ms = 3",
            "5:1: topics.a.configs.retention is a table: names with dots need quotation marks",
        ),
        ("[topics.a.configs]\nx = 2026-11-23", "2:1: topics.a.configs.x must be text, a number, true, false or a list"),
        ("[topics.a.configs]\nx = [\n'a',\n3,\n]", "2:1: topics.a.configs.x[1] must be text, got 3"),
        ("[brokers.one]", "1:10: brokers.one is wrong: the key must be a broker's id, or default"),
        ("[brokers.1]\n[brokers.01]", "2:10: brokers.01 is there twice"),
        ("acls = {}", "1:1: acls must be a list of tables: [[acls]]"),
        ("[[acls]]", "1:3: acls[0].resource is missing"),
        ("[[acls]]\nresource = 'topics'", "2:1: acls[0].resource is wrong, got 'topics'; did you mean topic? known: "),
        ("[[acls]]\nresource = 'topic'\nname = 'a'", "1:3: acls[0].operations must be a list"),
        ("[[acls]]\nresource = 'cluster'\nname = 'a'", "3:1: acls[0].name must be kafka-cluster, or left out"),
        (
            "[[acls]]\nresource = 'topic'\nname = 'a'\noperations = ['red']\nprincipal = 'User:a'",
            "4:1: acls[0].operations[0] is wrong, got 'red'; did you mean read? known: all, read",
        ),
        (
            "[[acls]]\nresource = 'topic'\nname = 'a'\noperations = ['read']\nprincipal = 'alice'",
            "5:1: acls[0].principal must have a type, such as User:alice; got 'alice'",
        ),
        ("[[acls]]\nresource = 'topic'\noperations = ['read']\nprincipal = 'User:a'", "1:3: acls[0].name is missing"),
        ("[[quotas]]\nlimits = {}", "1:3: quotas[0] must have a user, a client_id, both, or an ip"),
        ("[[quotas]]\nip = '::1'\nuser = 'a'", "1:3: quotas[0] must have a user, a client_id, both, or an ip"),
        ("[[quotas]]\nuser = 'a'\nlimits = { x = 0 }", "3:12: quotas[0].limits.x must be a number above 0, got 0"),
        ("[[quotas]]\nuser = 'a'\nlimits = { x = nan }", "3:12: quotas[0].limits.x must be a number above 0, got nan"),
        ("[[quotas]]\nuser = 'a'\nlimits = { x = inf }", "3:12: quotas[0].limits.x must be a number above 0, got inf"),
        (
            "[[quotas]]\nuser = 'a'\nlimits = { x = 9007199254740993 }",
            "3:12: quotas[0].limits.x cannot be kept exactly, since brokers keep quotas as floating-point numbers: ",
        ),
        (
            f"[[quotas]]\nuser = 'a'\nlimits = {{ x = 1{'0' * 400} }}",
            "3:12: quotas[0].limits.x must be a number above 0",
        ),
        ("[[quotas]]\nuser = 'a'\nlimits = {}", "3:1: quotas[0].limits is empty; leave the quota out"),
        (
            "[[quotas]]\nuser = 'a'\nlimits.x = 1\n[[quotas]]\nuser = 'a'",
            "4:3: quotas[1] is wrong: user a is there twice",
        ),
        ("[users.a]\nmechanism = 'PLAIN'", "2:1: users.a.mechanism is wrong, got 'PLAIN'; known: SCRAM-SHA-256,"),
        (
            "[[users.a]]\nmechanism = 'SCRAM-SHA-256'\niterations = 1",
            "3:1: users.a[0].iterations must be a whole number",
        ),
        ("[users.a]\nmechanism = 'SCRAM-SHA-256'", "1:8: users.a.password must be {env = "),
    ],
)
def test_a_wrong_file_is_refused_with_line_column_and_path(text: str, message: str) -> None:
    with pytest.raises(CommandFailed) as raised:
        parse_state(text, "kafka.toml")
    assert str(raised.value).startswith(f"kafka.toml:{message}")
    assert raised.value.status == 2


def test_a_file_that_is_not_toml_is_refused_with_line_and_column() -> None:
    with pytest.raises(CommandFailed, match=r"^kafka\.toml is not TOML: .* \(at line 2, column 3\)$") as raised:
        parse_state("[topics]\na b", "kafka.toml")
    assert raised.value.status == 2


def test_the_line_of_a_key_is_found_in_a_long_file() -> None:
    lines = [f"[topics.t-{number}]\n\npartitions = 3\nconfigs = {{ x = [\n'a',\n] }}" for number in range(200)]
    lines = [line.replace("{ x = [\n'a',\n] }", '{ x = """\na\n""" }') for line in lines]
    text = "\n".join(lines).replace("[topics.t-150]\n\npartitions = 3", "[topics.t-150]\n\npartitions = '3'")
    line = text[: text.index("partitions = '3'")].count("\n") + 1
    with pytest.raises(CommandFailed, match=rf"^x:{line}:1: topics\.t-150\.partitions must be"):
        parse_state(text, "x")


@pytest.mark.parametrize("given", ["'hunter2'", "{ text = 'hunter2' }", "{ env = 'A', file = 'hunter2' }"])
def test_a_password_in_the_file_is_refused_and_not_shown(given: str) -> None:
    with pytest.raises(CommandFailed, match=r":3:1: users\.a\.password must be \{env") as raised:
        parse_state(f"[users.a]\nmechanism = 'SCRAM-SHA-512'\npassword = {given}")
    assert "hunter2" not in str(raised.value)


def test_configs_of_brokers_may_be_secrets() -> None:
    text = '[brokers.1]\n"ssl.key.password" = { env = "KEY" }\n"log.cleaner.threads" = 2\n'
    state = parse_state(text)
    assert state.brokers == {"1": {"ssl.key.password": Secret(environment="KEY"), "log.cleaner.threads": "2"}}
    written = format_state(
        ClusterSettings(brokers={"1": {"ssl.key.password": HIDDEN}, DEFAULT: {"x.password": HIDDEN}})
    )
    assert '"ssl.key.password" = { env = "BROKER_1_SSL_KEY_PASSWORD" }' in written
    assert '"x.password" = { env = "X_PASSWORD" }' in written
    with pytest.raises(CommandFailed, match=r"topics\.a\.configs\.x is a table"):
        parse_state("[topics.a.configs]\nx = { env = 'A' }")


def test_no_two_users_share_a_variable() -> None:
    users = {name: (User("SCRAM-SHA-256", 4096), User("SCRAM-SHA-512", 4096)) for name in ("a-b", "a_b", "A.B", "9")}
    written = format_state(ClusterSettings(users=users))
    found = {name: {str(user.password) for user in one} for name, one in (parse_state(written).users or {}).items()}
    assert found == {
        "9": {"$_9_PASSWORD"},
        "A.B": {"$A_B_PASSWORD"},
        "a-b": {"$A_B_PASSWORD_2"},
        "a_b": {"$A_B_PASSWORD_3"},
    }


def test_sections_without_contents_are_written_and_read() -> None:
    empty = ClusterSettings({}, {}, frozenset(), {}, {})
    assert parse_state(format_state(empty, ["A comment."])) == empty
    assert parse_state(format_state(ClusterSettings())) == ClusterSettings()


@pytest.mark.parametrize("limit", [1.0, 0.1 + 0.2, 1e22, 5e-5, 2.0**53, 123456789.5])
def test_limits_are_written_exactly(limit: float) -> None:
    state = ClusterSettings(quotas={QuotaEntity("a"): {"x": limit}})
    assert parse_state(format_state(state)) == state


def test_a_comment_stays_a_comment() -> None:
    written = format_state(ClusterSettings(), ["A name\n[topics.evil]", ""])
    assert parse_state(written) == ClusterSettings()
    assert "evil" in written
