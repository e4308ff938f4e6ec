"""The decisions of the authorizer that need no broker, and the table of rules."""

from __future__ import annotations

import pytest

from aiokafkawire import AclOperation, AclPermissionType, PatternType, ResourceType
from aiokafkawire.errors import ConfigError
from aiokafkawire.testing.access.rules import has_rule
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.security.acls import AclFilter, StoredAcl
from aiokafkawire.testing.security.authorizer import Authorizer, Rights
from aiokafkawire.testing.serving.apis import APIS, TELEMETRY_APIS

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE = AclOperation.READ, AclOperation.WRITE
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
ALICE, BOB, HERE = "User:alice", "User:bob", "10.0.0.1"


def acl(
    name: str,
    kind: PatternType = LITERAL,
    permission: AclPermissionType = ALLOW,
    *,
    principal: str = ALICE,
    operation: AclOperation = WRITE,
    host: str = "*",
) -> StoredAcl:
    return StoredAcl(TOPIC, name, kind, principal, host, operation, permission)


def authorizer(*acls: StoredAcl, **options: bool) -> Authorizer:
    made = Authorizer(["User:admin"], **options)
    for one in acls:
        made.add(one)
    return made


def test_super_users_may_do_what_is_denied_to_all() -> None:
    made = authorizer(acl("t", permission=DENY, principal="User:*"))
    assert made.allows("User:admin", HERE, WRITE, TOPIC, "t")
    assert made.allows_somewhere("User:admin", HERE, WRITE, TOPIC)
    assert not made.allows(ALICE, HERE, WRITE, TOPIC, "t")


def test_a_resource_without_acls_is_for_super_users_or_for_everyone() -> None:
    for allows in (False, True):
        made = authorizer(acl("t", principal=BOB), allow_everyone_if_no_acl_found=allows)
        assert made.allows(ALICE, HERE, READ, TOPIC, "other") is allows
        assert made.allows(ALICE, HERE, READ, CLUSTER, "kafka-cluster") is allows
        assert not made.allows(ALICE, HERE, WRITE, TOPIC, "t")  # it has one, which is about bob


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([acl("t")], True),
        ([acl("*")], True),
        ([acl("t", PREFIXED)], True),
        ([acl("t", operation=READ)], False),
        ([acl("t", operation=AclOperation.ALL)], True),
        ([acl("t", principal=BOB)], False),
        ([acl("t", host="10.0.0.2")], False),
        ([acl("t"), acl("t", permission=DENY)], False),
        ([acl("t"), acl("u", permission=DENY)], True),
        ([acl("t"), acl("t", PREFIXED, DENY)], False),
        ([acl("tt", PREFIXED), acl("t", PREFIXED, DENY)], False),
        ([acl("t", PREFIXED), acl("tt", PREFIXED, DENY)], True),
        ([acl("t", PREFIXED), acl("t", permission=DENY)], True),
        ([acl("t"), acl("*", permission=DENY)], False),
        ([acl("*"), acl("t", permission=DENY)], True),
    ],
)
def test_a_right_to_any_resource_is_one_that_no_denial_covers(acls: list[StoredAcl], allowed: bool) -> None:
    assert authorizer(*acls).allows_somewhere(ALICE, HERE, WRITE, TOPIC) is allowed


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("orders", PatternType.MATCH, ["*", "or-prefix", "orders", "orders-prefix"]),
        ("orders", PatternType.ANY, ["orders", "orders-prefix"]),
        ("orders", LITERAL, ["orders"]),
        ("orders", PREFIXED, ["orders-prefix"]),
        ("*", PatternType.MATCH, ["*"]),
        (None, PatternType.MATCH, ["*", "or-prefix", "orders", "orders-prefix"]),
        (None, PREFIXED, ["or-prefix", "orders-prefix"]),
    ],
)
def test_filters_by_name(name: str | None, kind: PatternType, found: list[str]) -> None:
    known = {
        "*": acl("*"),
        "orders": acl("orders"),
        "or-prefix": acl("or", PREFIXED),
        "orders-prefix": acl("orders", PREFIXED),
    }
    wanted = AclFilter(TOPIC, name, kind, None, None, AclOperation.ANY, AclPermissionType.ANY)
    matching = authorizer(*known.values()).found(wanted)
    assert sorted(label for label, one in known.items() if one in matching) == found


def test_without_an_authorizer_everyone_may_do_everything() -> None:
    rights = Rights(None, ALICE, HERE)
    assert rights.may_for_cluster(AclOperation.ALTER)
    assert rights.may_somewhere(WRITE, TOPIC)
    assert rights.of_bits(0b11000, TOPIC, "t") == 0b11000


def test_every_api_that_the_broker_serves_has_a_rule() -> None:
    assert [api.name for api in (*APIS, *TELEMETRY_APIS) if not has_rule(api)] == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"super_users": ["User:admin"]}, "super_users needs authorizer=True"),
        ({"allow_everyone_if_no_acl_found": True}, "allow_everyone_if_no_acl_found needs authorizer=True"),
        ({"authorizer": True, "super_users": "User:admin"}, "super_users is 'User:admin': a list of principals"),
        ({"authorizer": True, "super_users": ["admin"]}, r"super_users is \['admin'\]: a list of principals"),
        ({"authorizer": True, "super_users": ["User:"]}, r"super_users is \['User:'\]: a list of principals"),
        ({"authorizer": 1}, "authorizer is 1: True or False"),
    ],
)
def test_arguments_that_are_wrong(options: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Broker(**options)  # type: ignore[arg-type]
