"""The changes that make a cluster what a file declares."""

import attrs
import pytest

from aiokafkawire.cli.apply.changes import (
    AddAcl,
    AddPartitions,
    AlterConfigs,
    AlterQuota,
    CreateTopic,
    DeleteTopic,
    DeleteUser,
    RemoveAcl,
    SetUser,
)
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
from aiokafkawire.cli.apply.config_values import is_same
from aiokafkawire.cli.apply.planning import DELETABLE, Plan, batches, blocked_by, is_deletion, plan_changes

ALICE = QuotaEntity(user="alice")
SECRET = Secret(environment="PASSWORD")
READ = Acl("User:alice", "read", "topic", "orders")
DENY = Acl("User:bob", "write", "topic", "orders", permission="deny")
EMPTY = ClusterSettings({}, {}, frozenset(), {}, {})
FULL = ClusterSettings(
    topics={"orders": DeclaredTopic(6, 3, {"retention.ms": "1"})},
    brokers={DEFAULT: {"log.cleaner.threads": "2"}},
    acls=frozenset({READ, DENY}),
    quotas={ALICE: {"producer_byte_rate": 5.0}},
    users={"alice": (User("SCRAM-SHA-512", 8192, SECRET),)},
)


def test_everything_is_made_on_an_empty_cluster_in_a_safe_order() -> None:
    plan = plan_changes(FULL, EMPTY)
    assert plan.changes == (
        CreateTopic("orders", DeclaredTopic(6, 3, {"retention.ms": "1"})),
        AlterConfigs("broker", DEFAULT, {"log.cleaner.threads": "2"}, {}),
        SetUser("alice", User("SCRAM-SHA-512", 8192, SECRET), is_new=True),
        AlterQuota(ALICE, {"producer_byte_rate": 5.0}, {}),
        AddAcl(DENY),
        AddAcl(READ),
    )
    assert not plan.conflicts
    assert not plan.unmentioned


def test_what_is_as_declared_is_not_changed() -> None:
    described = attrs.evolve(FULL, users={"alice": (User("SCRAM-SHA-512", 8192),)})
    plan = plan_changes(FULL, described, deletes=DELETABLE)
    assert plan.changes == ()
    assert plan.conflicts == ()


def test_nothing_is_deleted_unless_it_is_said() -> None:
    plan = plan_changes(EMPTY, FULL)
    assert plan.changes == ()
    assert plan.unmentioned == {
        "topics": ("orders",),
        "acls": ("allow User:alice read on topic orders", "deny User:bob write on topic orders"),
        "quotas": ("user alice",),
        "users": ("alice (SCRAM-SHA-512)",),
    }


def test_what_is_said_is_deleted_and_topics_come_last() -> None:
    plan = plan_changes(EMPTY, FULL, deletes=DELETABLE)
    assert plan.changes == (
        RemoveAcl(READ),
        RemoveAcl(DENY),
        AlterQuota(ALICE, {"producer_byte_rate": None}, {"producer_byte_rate": 5.0}),
        DeleteUser("alice", "SCRAM-SHA-512"),
        DeleteTopic("orders"),
    )
    assert all(is_deletion(change) for change in plan.changes)
    assert not plan.unmentioned


def test_sections_that_are_not_declared_are_left_alone() -> None:
    plan = plan_changes(ClusterSettings(), FULL, deletes=DELETABLE)
    assert plan.changes == ()
    assert not plan.unmentioned


def test_partitions_are_added_and_never_removed() -> None:
    there = ClusterSettings(topics={"orders": DeclaredTopic(6, 3), "flights": DeclaredTopic(6, 3)})
    declared = ClusterSettings(topics={"orders": DeclaredTopic(12), "flights": DeclaredTopic(3, 2)})
    plan = plan_changes(declared, there)
    assert plan.changes == (AddPartitions("orders", 6, 12),)
    fewer, replicas = plan.conflicts
    reason = "it has 6 partitions and the file 3; none can be removed, so change the file, or delete the topic"
    assert str(fewer) == f"! topic flights: {reason}"
    assert str(replicas).endswith("it has 3 replicas and the file 2: move it with 'aiokafkawire reassign'")


def test_configs_that_are_not_declared_stay_unless_their_removal_is_said() -> None:
    there = ClusterSettings(topics={"orders": DeclaredTopic(6, 3, {"retention.ms": "1", "segment.ms": "2"})})
    declared = ClusterSettings(topics={"orders": DeclaredTopic(configs={"retention.ms": "5"})})
    plan = plan_changes(declared, there)
    assert [str(change) for change in plan.changes] == ["~ topic orders: retention.ms 1 -> 5"]
    assert plan.unmentioned == {"configs": ("segment.ms of topic orders",)}
    (removed,) = plan_changes(declared, there, deletes=["configs"]).changes
    assert str(removed) == "~ topic orders: retention.ms 1 -> 5, segment.ms 2 -> default"


def test_the_least_replicas_in_sync_that_kafka_sets_itself_stay() -> None:
    there = ClusterSettings(brokers={DEFAULT: {"min.insync.replicas": "1"}, "1": {"min.insync.replicas": "1"}})
    plan = plan_changes(ClusterSettings(brokers={DEFAULT: {}, "1": {}}), there, deletes=["configs"])
    assert [str(change) for change in plan.changes] == ["~ broker 1: min.insync.replicas 1 -> default"]
    assert plan_changes(ClusterSettings(brokers={DEFAULT: {}}), there) == Plan()


def test_limits_that_are_not_declared_stay_unless_their_removal_is_said() -> None:
    there = ClusterSettings(quotas={ALICE: {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0}})
    declared = ClusterSettings(quotas={ALICE: {"producer_byte_rate": 1.0}})
    plan = plan_changes(declared, there)
    assert not plan.changes
    assert plan.unmentioned == {"quotas": ("consumer_byte_rate of user alice",)}
    (removed,) = plan_changes(declared, there, deletes=["quotas"]).changes
    assert str(removed) == "~ quota of user alice: consumer_byte_rate 2 -> none"
    assert not is_deletion(removed)


def test_users_get_their_passwords_again_only_if_that_is_said_or_the_iterations_change() -> None:
    declared = ClusterSettings(users={"alice": (User("SCRAM-SHA-512", None, SECRET),)})
    there = ClusterSettings(users={"alice": (User("SCRAM-SHA-512", 8192),)})
    assert plan_changes(declared, there).changes == ()
    (again,) = plan_changes(declared, there, sets_secrets=True).changes
    # The iterations stay as they are.
    assert str(again) == "~ user alice: SCRAM-SHA-512 gets the password in $PASSWORD, 8192 iterations"
    more = ClusterSettings(users={"alice": (User("SCRAM-SHA-512", 16384, SECRET),)})
    assert len(plan_changes(more, there).changes) == 1
    other = ClusterSettings(users={"alice": (User("SCRAM-SHA-256", None, SECRET),)})
    (added,) = plan_changes(other, there).changes
    assert str(added) == "+ user alice: SCRAM-SHA-256 with the password in $PASSWORD"


def test_a_config_that_brokers_hide_is_set_once_and_never_shown() -> None:
    name = "listener.name.a.ssl.keystore.password"
    declared = ClusterSettings(brokers={"1": {name: SECRET}})
    (change,) = plan_changes(declared, ClusterSettings(brokers={"1": {}})).changes
    assert str(change) == f"~ broker 1: {name} default -> $PASSWORD"
    there = ClusterSettings(brokers={"1": {name: HIDDEN}})
    assert plan_changes(declared, there).changes == ()
    assert len(plan_changes(declared, there, sets_secrets=True).changes) == 1
    in_the_file = ClusterSettings(brokers={"1": {name: "hunter2"}})
    (change,) = plan_changes(in_the_file, ClusterSettings(brokers={"1": {}})).changes
    assert "hunter2" not in str(change) + str(change.row())
    assert plan_changes(in_the_file, there).changes == ()


@pytest.mark.parametrize(
    ("declared", "current", "kind", "same"),
    [
        ("0.50", "0.5", "double", True),
        (" 5", "5", "long", True),
        ("5", "6", "int", False),
        ("x", "6", "int", False),
        ("TRUE", "true", "boolean", True),
        ("compact, delete", "compact,delete", "list", True),
        ("delete,compact", "compact,delete", "list", False),
        ("", "", "list", True),
        ("zstd ", "zstd", "string", True),
        ("5 ", "5", None, True),
        ("0.50", "0.5", None, True),
        ("a, b", "a,b", None, True),
        ("a,b", "b,a", None, False),
        ("zstd", "lz4", None, False),
        ("a, b", "a,b", "password", False),
    ],
)
def test_values_of_configs_are_compared_as_kafka_reads_them(
    declared: str, current: str, kind: str | None, *, same: bool
) -> None:
    assert is_same(declared, current, kind) is same
    types = {} if kind is None else {"x": kind}
    there = ClusterSettings(topics={"orders": DeclaredTopic(1, 1, {"x": current})}, config_types=types)
    plan = plan_changes(ClusterSettings(topics={"orders": DeclaredTopic(configs={"x": declared})}), there)
    assert (plan.changes == ()) is same


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (1234567890123457.0, "1234567890123457"),
        (2.0**62, str(2**62)),
        (1234567890.1234567, "1234567890.1234567"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_limits_are_shown_exactly(limit: float, text: str) -> None:
    (change,) = plan_changes(ClusterSettings(quotas={ALICE: {"x": limit}}), EMPTY).changes
    assert str(change) == f"+ quota of user alice: x none -> {text}"


def test_changes_are_shown_in_plain_lines() -> None:
    declared = ClusterSettings(
        topics={"flights": DeclaredTopic(), "orders": DeclaredTopic(6, 3, {"b": "2", "a": "1"})},
        acls=frozenset({Acl("User:alice", "read", "topic", "orders-", "prefixed", host="10.0.0.1")}),
        quotas={QuotaEntity(client_id="app", user="bob"): {"producer_byte_rate": 1e6}},
    )
    lines = [str(change) for change in plan_changes(declared, EMPTY).changes]
    assert lines == [
        "+ topic flights: the default number of partitions",
        "+ topic orders: 6 partitions, 3 replicas, a=1, b=2",
        "+ quota of user bob, client id app: producer_byte_rate none -> 1000000",
        "+ acl allow User:alice read on topic orders-* from 10.0.0.1",
    ]


def test_a_request_has_changes_of_one_kind_and_one_of_each_user() -> None:
    both = tuple(User(mechanism, None, SECRET) for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"))
    declared = attrs.evolve(
        FULL,
        topics={f"t-{number:03}": DeclaredTopic(1) for number in range(101)},
        users={"alice": both, "bob": both[:1]},
    )
    found = [list(batch) for batch in batches(plan_changes(declared, EMPTY).changes)]
    assert [(type(batch[0]).__name__, len(batch)) for batch in found] == [
        ("CreateTopic", 100),
        ("CreateTopic", 1),
        ("AlterConfigs", 1),
        ("SetUser", 1),
        ("SetUser", 2),
        ("AlterQuota", 1),
        ("AddAcl", 1),
        ("AddAcl", 1),
    ]


def test_nothing_is_deleted_or_allowed_after_what_has_failed() -> None:
    topic, limits = DeleteTopic("a"), AlterQuota(ALICE, {"x": 1.0}, {})
    assert not blocked_by(topic, [])
    assert "nothing is deleted" in blocked_by(topic, [limits])
    assert "nothing is deleted" in blocked_by(RemoveAcl(DENY), [RemoveAcl(READ)])
    assert "nothing is allowed" in blocked_by(AddAcl(READ), [AddAcl(DENY)])
    assert not blocked_by(AddAcl(READ), [AddAcl(READ), limits])
    assert not blocked_by(limits, [AddAcl(DENY)])
