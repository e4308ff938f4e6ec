"""What the admin does with ACLs, on the in-process broker and on Apache Kafka with an authorizer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from secrets import token_hex

import anyio
import pytest
from support.authorizing import Authorizing
from support.patience import PATIENCE

from aiokafkawire import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    Client,
    PatternType,
    ResourcePattern,
    ResourceType,
    UsageError,
)
from aiokafkawire.errors import (
    AdminError,
    ClusterAuthorizationFailed,
    InvalidRequest,
    SecurityDisabled,
    TopicAuthorizationFailed,
)

pytestmark = pytest.mark.anyio

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
DENY = AclPermissionType.DENY


@pytest.fixture
async def kafka_of_admin(guarded: Authorizing) -> AsyncIterator[Client]:
    async with guarded.client() as client:
        yield client


@pytest.fixture
def user(guarded: Authorizing) -> str:
    return guarded.new_user()


def of(user: str) -> AclBindingFilter:
    return AclBindingFilter(principal=f"User:{user}")


async def test_acls_are_created_described_and_deleted(guarded: Authorizing, kafka_of_admin: Client, user: str) -> None:
    admin, name, alice = kafka_of_admin.admin, f"orders-{token_hex(4)}", f"User:{user}"
    acls = [
        AclBinding(ResourcePattern.topic(name), alice, READ),
        AclBinding(ResourcePattern.topic(name), alice, WRITE, DENY, "198.51.100.1"),
        AclBinding(ResourcePattern.topic(name[:-2], prefixed=True), alice, AclOperation.ALL),
        AclBinding(ResourcePattern.topic("*"), alice, DESCRIBE),
        AclBinding(ResourcePattern.group(name), alice, READ),
        AclBinding(ResourcePattern.cluster(), alice, AclOperation.IDEMPOTENT_WRITE),
        AclBinding(ResourcePattern.transactional_id(name), alice, WRITE),
        AclBinding(ResourcePattern.delegation_token("token"), alice, DESCRIBE),
        AclBinding(ResourcePattern.user("User:bob"), alice, AclOperation.CREATE_TOKENS),
    ]
    await guarded.grant(kafka_of_admin, *acls)
    await admin.create_acls(acls[0])  # one that exists
    found = await admin.describe_acls(of(user))
    assert found == [acls[index] for index in (3, 2, 0, 1, 4, 5, 6, 7, 8)]
    assert await admin.describe_acls(acls[1].to_filter()) == [acls[1]]
    topics = AclBindingFilter(resource_type=ResourceType.TOPIC, principal=alice)
    assert await admin.describe_acls(topics) == found[:4]
    nothing = of(guarded.new_user())
    gone = await admin.delete_acls([topics, acls[4].to_filter(), nothing])
    assert list(gone.values()) == [found[:4], [acls[4]], []]
    assert list(gone) == [topics, acls[4].to_filter(), nothing]
    await guarded.until(kafka_of_admin, lambda known: not set(acls[:5]) & set(known))
    assert await admin.describe_acls(of(user)) == found[5:]
    assert await admin.delete_acls(of(user)) == {of(user): found[5:]}
    await guarded.until(kafka_of_admin, lambda known: not set(acls) & set(known))
    await admin.create_acls([])
    assert await admin.delete_acls([]) == {}


async def test_filters_by_the_type_of_pattern(guarded: Authorizing, kafka_of_admin: Client, user: str) -> None:
    name, alice = f"orders-{token_hex(4)}", f"User:{user}"
    literal, prefix, whole, star = (
        AclBinding(pattern, alice, READ)
        for pattern in (
            ResourcePattern.topic(name),
            ResourcePattern.topic(name[:-2], prefixed=True),
            ResourcePattern.topic(name, prefixed=True),
            ResourcePattern.topic("*"),
        )
    )
    await guarded.grant(kafka_of_admin, literal, prefix, whole, star)
    for pattern_type, expected in (
        (PatternType.LITERAL, {literal}),
        (PatternType.PREFIXED, {whole}),
        (PatternType.ANY, {literal, whole}),
        (PatternType.MATCH, {literal, prefix, whole, star}),
    ):
        wanted = AclBindingFilter(
            resource_type=ResourceType.TOPIC, resource_name=name, pattern_type=pattern_type, principal=alice
        )
        assert set(await kafka_of_admin.admin.describe_acls(wanted)) == expected


async def test_acls_decide_who_may_write(guarded: Authorizing, kafka_of_admin: Client, user: str) -> None:
    topic, alice = f"topic-{token_hex(6)}", f"User:{user}"
    await kafka_of_admin.admin.create_topics({topic: 1})
    right = AclBinding(ResourcePattern.topic(topic), alice, WRITE)

    async def write() -> None:
        async with guarded.client(user) as kafka, kafka.producer() as producer:
            await producer.send(topic, b"v")

    with anyio.fail_after(PATIENCE):
        with pytest.raises(TopicAuthorizationFailed):
            await write()
        await guarded.grant(kafka_of_admin, right)
        await write()
        await guarded.revoke(kafka_of_admin, right)
        with pytest.raises(TopicAuthorizationFailed):
            await write()


async def test_rights_count_from_the_next_call_of_a_client_on(
    guarded: Authorizing, kafka_of_admin: Client, user: str
) -> None:
    topic = f"topic-{token_hex(6)}"
    await kafka_of_admin.admin.create_topics({topic: 1})
    async with guarded.client(user) as kafka, kafka.producer() as producer:
        with anyio.fail_after(PATIENCE):
            with pytest.raises(TopicAuthorizationFailed):
                await producer.send(topic, b"v")
            await guarded.grant(kafka_of_admin, AclBinding(ResourcePattern.topic(topic), f"User:{user}", WRITE))
            assert (await producer.send(topic, b"v")).offset == 0


async def test_those_without_rights_may_not_ask_about_acls(guarded: Authorizing, user: str) -> None:
    acl = AclBinding(ResourcePattern.topic("t"), f"User:{user}", READ)
    async with guarded.client(user) as kafka:
        with pytest.raises(ClusterAuthorizationFailed, match="describing ACLs"):
            await kafka.admin.describe_acls()
        with pytest.raises(ClusterAuthorizationFailed, match=f"creating the ACL ALLOW User:{user} READ on topic 't'"):
            await kafka.admin.create_acls(acl)
        with pytest.raises(ClusterAuthorizationFailed, match=f"deleting ACLs with principal=User:{user}"):
            await kafka.admin.delete_acls(of(user))
        with pytest.raises(AdminError, match="creating ACLs failed for 2 of 2") as failed:
            await kafka.admin.create_acls([acl, AclBinding(ResourcePattern.cluster(), f"User:{user}", DESCRIBE)])
        assert {type(error) for error in failed.value.errors.values()} == {ClusterAuthorizationFailed}


async def test_some_of_several_acls_are_refused(guarded: Authorizing, kafka_of_admin: Client, user: str) -> None:
    alice = f"User:{user}"
    wrong = AclBinding(ResourcePattern(ResourceType.CLUSTER, "another"), alice, DESCRIBE)
    right = AclBinding(ResourcePattern.topic("t"), alice, READ)
    with pytest.raises(InvalidRequest, match=r"the ACL ALLOW .* on cluster 'another': The only valid name"):
        await kafka_of_admin.admin.create_acls(wrong)
    with pytest.raises(AdminError, match="creating ACLs failed for 1 of 2") as failed:
        await kafka_of_admin.admin.create_acls([wrong, right])
    assert (list(failed.value.errors), failed.value.results) == ([wrong], {right: None})
    await guarded.until(kafka_of_admin, lambda known: right in known)
    assert await kafka_of_admin.admin.describe_acls(of(user)) == [right]


async def test_brokers_without_an_authorizer(kafka: Client) -> None:
    acl = AclBinding(ResourcePattern.topic("t"), "User:alice", READ)
    for ask in (kafka.admin.describe_acls(), kafka.admin.create_acls(acl), kafka.admin.delete_acls(acl.to_filter())):
        with pytest.raises(SecurityDisabled, match="No Authorizer is configured"):
            await ask


async def test_a_filter_is_not_an_acl(kafka: Client) -> None:
    with pytest.raises(UsageError, match=r"acls must be like \[AclBinding"):
        await kafka.admin.create_acls([AclBindingFilter()])  # type: ignore[list-item]
