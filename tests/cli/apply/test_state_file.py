"""Files that declare a cluster's state: what is read, what is refused, and what is written."""

import pytest

from aiokafkawire.cli.apply.cluster_settings import (
    DEFAULT,
    Acl,
    ClusterSettings,
    DeclaredTopic,
    QuotaEntity,
    Secret,
    User,
)
from aiokafkawire.cli.apply.state_file import format_state, parse_state
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
    assert parse_state(format_state(state)).brokers == (state.brokers or None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topics = 3", "topics must be a table, got 3"),
        ("[topic.a]", "topic is unknown; known: topics, brokers, acls, quotas, users"),
        ("[topics.a]\nsize = 3", "topics.a.size is unknown; known: partitions, replication_factor, configs"),
        ("[topics.a]\npartitions = 0", "topics.a.partitions must be a whole number from 1 to 2147483647, got 0"),
        ("[topics.a]\npartitions = true", "topics.a.partitions must be a whole number"),
        ("[topics.a]\npartitions = '3'", "topics.a.partitions must be a whole number"),
        ("[topics.'a b']", "topics.a b"),
        ("[topics.a.configs]\nretention.ms = 3", "topics.a.configs.retention names with dots need quotation marks"),
        ("[topics.a.configs]\nx = 2026-11-23", "topics.a.configs.x must be text, a number, true, false or a list"),
        ("[brokers.one]", "brokers.one the key must be a broker's id, or default"),
        ("acls = {}", "acls must be a list of tables: [[acls]]"),
        ("[[acls]]", "acls[0].resource is missing"),
        ("[[acls]]\nresource = 'topics'", "acls[0].resource must be one of topic, group"),
        ("[[acls]]\nresource = 'topic'", "acls[0].operations must be a list"),
        (
            "[[acls]]\nresource = 'topic'\nname = 'a'\noperations = ['red']\nprincipal = 'User:a'",
            "acls[0].operations[0] must be one of all, read",
        ),
        (
            "[[acls]]\nresource = 'topic'\noperations = ['read']\nprincipal = 'alice'",
            "acls[0].principal must have a type, such as User:alice; got 'alice'",
        ),
        ("[[acls]]\nresource = 'topic'\noperations = ['read']\nprincipal = 'User:a'", "acls[0].name is missing"),
        ("[[quotas]]\nlimits = {}", "quotas[0] must have a user, a client_id, both, or an ip"),
        ("[[quotas]]\nip = '::1'\nuser = 'a'", "quotas[0] must have a user, a client_id, both, or an ip"),
        ("[[quotas]]\nuser = 'a'\nlimits = { x = 0 }", "quotas[0].limits.x must be a number above 0, got 0"),
        ("[[quotas]]\nuser = 'a'\nlimits = { x = nan }", "quotas[0].limits.x must be a number above 0, got nan"),
        ("[[quotas]]\nuser = 'a'\nlimits = {}\n[[quotas]]\nuser = 'a'", "quotas[1] user a is there twice"),
        ("[users.a]\nmechanism = 'PLAIN'", "users.a.mechanism must be one of SCRAM-SHA-256, SCRAM-SHA-512"),
        ("[topics.a", "the file is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(CommandFailed) as raised:
        parse_state(text)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("given", ["'hunter2'", "{ text = 'hunter2' }", "{ env = 'A', file = 'hunter2' }"])
def test_a_password_in_the_file_is_refused_and_not_shown(given: str) -> None:
    with pytest.raises(CommandFailed, match=r"users\.a\.password must be \{env") as raised:
        parse_state(f"[users.a]\nmechanism = 'SCRAM-SHA-512'\npassword = {given}")
    assert "hunter2" not in str(raised.value)
