"""The changes that make a cluster what a file declares."""

from aiokafkawire.cli.apply.changes import (
    SUBJECTS,
    AddAcls,
    AddPartitions,
    AlterConfigs,
    AlterQuota,
    CreateTopic,
    DeleteTopic,
    DeleteUser,
    RemoveAcls,
    SetUser,
    plan_changes,
)
from aiokafkawire.cli.apply.cluster_settings import (
    DEFAULT,
    Acl,
    ClusterSettings,
    DeclaredTopic,
    QuotaEntity,
    Secret,
    User,
)

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
        AddAcls((DENY,)),
        AddAcls((READ,)),
    )
    assert not plan.conflicts
    assert not plan.unmentioned


def test_what_is_as_declared_is_not_changed() -> None:
    described = ClusterSettings(
        FULL.topics, FULL.brokers, FULL.acls, FULL.quotas, {"alice": (User("SCRAM-SHA-512", 8192),)}
    )
    plan = plan_changes(FULL, described, deletes=SUBJECTS)
    assert plan.changes == ()
    assert plan.conflicts == ()


def test_nothing_is_deleted_unless_it_is_said() -> None:
    plan = plan_changes(EMPTY, FULL)
    assert plan.changes == ()
    assert plan.unmentioned == {"topics": 1, "acls": 2, "quotas": 1, "users": 1}


def test_what_is_said_is_deleted_and_topics_come_last() -> None:
    plan = plan_changes(EMPTY, FULL, deletes=SUBJECTS)
    assert plan.changes == (
        RemoveAcls((READ,)),
        RemoveAcls((DENY,)),
        AlterQuota(ALICE, {"producer_byte_rate": None}, {"producer_byte_rate": 5.0}),
        DeleteUser("alice", "SCRAM-SHA-512"),
        DeleteTopic("orders"),
    )
    assert not plan.unmentioned


def test_subjects_that_are_not_declared_are_left_alone() -> None:
    plan = plan_changes(ClusterSettings(), FULL, deletes=SUBJECTS)
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
    (kept,) = plan_changes(declared, there).changes
    assert str(kept) == "~ topic orders: retention.ms 1 -> 5"
    (removed,) = plan_changes(declared, there, deletes=["configs"]).changes
    assert str(removed) == "~ topic orders: retention.ms 1 -> 5, segment.ms 2 -> default"


def test_users_get_their_passwords_again_only_if_that_is_said_or_the_iterations_change() -> None:
    declared = ClusterSettings(users={"alice": (User("SCRAM-SHA-512", None, SECRET),)})
    there = ClusterSettings(users={"alice": (User("SCRAM-SHA-512", 8192),)})
    assert plan_changes(declared, there).changes == ()
    (again,) = plan_changes(declared, there, sets_passwords=True).changes
    assert str(again) == "~ user alice: SCRAM-SHA-512 gets the password in $PASSWORD"
    more = ClusterSettings(users={"alice": (User("SCRAM-SHA-512", 16384, SECRET),)})
    assert len(plan_changes(more, there).changes) == 1
    other = ClusterSettings(users={"alice": (User("SCRAM-SHA-256", None, SECRET),)})
    (added,) = plan_changes(other, there).changes
    assert str(added) == "+ user alice: SCRAM-SHA-256 with the password in $PASSWORD"


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
        "~ quota of user bob, client id app: producer_byte_rate none -> 1000000",
        "+ acl allow User:alice read on topic orders-* from 10.0.0.1",
    ]
