"""ACLs on old brokers, answers that are wrong or partly wrong, and what the classes of ACLs say of themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.clusters import QUICK
from support.made import made

from aiokafkawire import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    Client,
    PatternType,
    ResourcePattern,
    ResourceType,
    UnsupportedVersion,
    UsageError,
    WireError,
)
from aiokafkawire.admin.admin import Admin
from aiokafkawire.errors import AdminError, ErrorCode, PolicyViolation
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.acls import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

READS = AclBinding(ResourcePattern.topic("t"), "User:alice", AclOperation.READ)
WRITES = AclBinding(ResourcePattern.topic("t"), "User:alice", AclOperation.WRITE)
PREFIXED = AclBinding(ResourcePattern.topic("t", prefixed=True), "User:alice", AclOperation.READ)
MAKES_TOKENS = AclBinding(ResourcePattern.user("User:bob"), "User:alice", AclOperation.CREATE_TOKENS)
OF_ALICE = AclBindingFilter(principal="User:alice")
OF_BOB = AclBindingFilter(principal="User:bob")


@asynccontextmanager
async def running(release: str | None = None, nodes: int = 1) -> AsyncIterator[tuple[Broker, Admin]]:
    everyone = ["User:ANONYMOUS"]
    async with (
        Broker(nodes, port=None, max_versions=release, authorizer=True, super_users=everyone) as broker,
        Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka,
    ):
        yield broker, kafka.admin


@pytest.mark.parametrize("release", ["0.11.0", "1.1", "2.0", "2.4", "2.5", "3.3", "4.0", None])
async def test_literal_acls_on_every_release_that_knows_acls(release: str | None) -> None:
    async with running(release) as (_, admin):
        await admin.create_acls([READS, WRITES])
        assert await admin.describe_acls() == [READS, WRITES]
        assert await admin.describe_acls(WRITES.to_filter()) == [WRITES]
        assert await admin.delete_acls([OF_ALICE, OF_BOB]) == {OF_ALICE: [READS, WRITES], OF_BOB: []}
        assert await admin.describe_acls() == []


@pytest.mark.parametrize(("release", "acl"), [("1.1", PREFIXED), ("2.0", MAKES_TOKENS), ("3.2", MAKES_TOKENS)])
async def test_patterns_and_users_need_newer_brokers(release: str, acl: AclBinding) -> None:
    told = r"ACLs need brokers since 0\.11 .*patterns 2\.0 \(KIP-290\), users 3\.3 \(KIP-373\)"
    async with running(release) as (_, admin):
        for ask in (
            admin.create_acls([READS, acl]),
            admin.describe_acls(acl.to_filter()),
            admin.delete_acls(acl.to_filter()),
        ):
            with pytest.raises(UnsupportedVersion, match=told):
                await ask


async def test_brokers_that_know_no_acls() -> None:
    async with running("0.10.2") as (_, admin):
        for ask in (admin.create_acls(READS), admin.describe_acls(), admin.delete_acls(OF_ALICE)):
            with pytest.raises(UnsupportedVersion, match=r"ACLs need brokers since 0\.11 \(KIP-140\)"):
                await ask


async def test_newer_releases_know_patterns_and_users() -> None:
    async with running("3.3") as (_, admin):
        await admin.create_acls([PREFIXED, MAKES_TOKENS])
        assert await admin.describe_acls() == [PREFIXED, MAKES_TOKENS]


@pytest.mark.parametrize("api", [ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.DESCRIBE_ACLS])
async def test_a_controller_that_is_elected_meanwhile(api: ApiKey) -> None:
    async with running() as (broker, admin):
        await admin.create_acls(READS)
        rule = broker.on(api, answer=ErrorCode.NOT_CONTROLLER, times=2)
        await admin.create_acls([READS, WRITES])
        assert await admin.describe_acls() == [READS, WRITES]
        assert await admin.delete_acls(OF_ALICE) == {OF_ALICE: [READS, WRITES]}
        assert rule.count == 2


async def test_a_filter_of_several_is_refused() -> None:
    def refuse_the_first(request: object, response: DeleteAclsResponse) -> DeleteAclsResponse:
        response.filter_results[0].error_code = ErrorCode.POLICY_VIOLATION
        response.filter_results[0].error_message = "not these"
        return response

    async with running() as (broker, admin):
        await admin.create_acls([READS, WRITES])
        broker.on(ApiKey.DELETE_ACLS, answer=refuse_the_first)
        with pytest.raises(AdminError, match="deleting ACLs failed for 1 of 2") as told:
            await admin.delete_acls([OF_BOB, OF_ALICE])
        assert "deleting ACLs with principal=User:bob: not these" in str(told.value)
        assert told.value.results == {OF_ALICE: [READS, WRITES]}
        assert list(told.value.errors) == [OF_BOB]


async def test_an_acl_that_a_filter_found_is_not_deleted() -> None:
    def refuse(request: object, response: DeleteAclsResponse) -> DeleteAclsResponse:
        response.filter_results[0].matching_acls[1].error_code = ErrorCode.POLICY_VIOLATION
        return response

    async with running() as (broker, admin):
        await admin.create_acls([READS, WRITES])
        broker.on(ApiKey.DELETE_ACLS, answer=refuse)
        with pytest.raises(AdminError, match="deleting ACLs failed for 1 of 2") as told:
            await admin.delete_acls(OF_ALICE)
        assert told.value.results == {OF_ALICE: [READS]}
        assert list(told.value.errors) == [WRITES]
        assert isinstance(told.value.errors[WRITES], PolicyViolation)
        assert "deleting the ACL ALLOW User:alice WRITE on topic 't'" in str(told.value.errors[WRITES])


async def test_the_only_acl_that_a_filter_found_is_not_deleted() -> None:
    def refuse(request: object, response: DeleteAclsResponse) -> DeleteAclsResponse:
        response.filter_results[0].matching_acls[0].error_code = ErrorCode.POLICY_VIOLATION
        return response

    async with running() as (broker, admin):
        await admin.create_acls([READS, WRITES])
        broker.on(ApiKey.DELETE_ACLS, answer=refuse, times=2)
        with pytest.raises(PolicyViolation, match="deleting the ACL ALLOW User:alice WRITE on topic 't'"):
            await admin.delete_acls(WRITES.to_filter())
        await admin.create_acls(WRITES)  # since the broker has deleted it
        with pytest.raises(AdminError, match="deleting ACLs failed for 1 of 2") as told:
            await admin.delete_acls([WRITES.to_filter(), READS.to_filter()])
        assert list(told.value.errors) == [WRITES.to_filter()]


async def test_answers_with_too_few_results() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.CREATE_ACLS, answer=CreateAclsResponse(results=[]))
        with pytest.raises(WireError, match="the CreateAcls response has 0 results for 1 requested"):
            await admin.create_acls(READS)
        broker.on(ApiKey.DELETE_ACLS, answer=DeleteAclsResponse(filter_results=[]))
        with pytest.raises(WireError, match="the DeleteAcls response has 0 results for 1 requested"):
            await admin.delete_acls(OF_ALICE)


async def test_codes_of_a_newer_kafka() -> None:
    acl = {"principal": "User:alice", "host": "*", "operation": 77, "permission_type": 78}
    resource = {"resource_type": 79, "resource_name": "t", "pattern_type": 80, "acls": [acl]}
    async with running() as (broker, admin):
        broker.on(ApiKey.DESCRIBE_ACLS, answer=made(DescribeAclsResponse, error_message=None, resources=[resource]))
        (found,) = await admin.describe_acls()
    assert (found.pattern.type, found.pattern.pattern_type) == (ResourceType.UNKNOWN, PatternType.UNKNOWN)
    assert (found.operation, found.permission_type) == (AclOperation.UNKNOWN, AclPermissionType.UNKNOWN)


async def test_any_broker_is_asked() -> None:
    async with running(nodes=3) as (broker, admin):
        await broker.stop_node(1)
        await admin.create_acls(READS)
        assert await admin.describe_acls() == [READS]


def test_acls_and_filters_say_what_they_are() -> None:
    assert str(READS) == "ALLOW User:alice READ on topic 't'"
    denied = AclBinding(ResourcePattern.cluster(), "User:*", AclOperation.ALL, AclPermissionType.DENY, "10.0.0.1")
    assert str(denied) == "DENY User:* ALL on cluster 'kafka-cluster' from 10.0.0.1"
    assert str(PREFIXED.pattern) == "topic prefix 't'"
    assert str(ResourcePattern.transactional_id("x")) == "transactional id 'x'"
    assert str(AclBindingFilter()) == "all ACLs"
    wanted = AclBindingFilter(resource_type=ResourceType.TOPIC, host="*")
    assert str(wanted) == "ACLs with resource_type=TOPIC, host=*"
    assert READS.to_filter() == AclBindingFilter(
        resource_type=ResourceType.TOPIC,
        resource_name="t",
        pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )


def test_names_of_resources_are_checked() -> None:
    for make in (ResourcePattern.topic, ResourcePattern.group, ResourcePattern.user):
        with pytest.raises(UsageError, match="the name of a resource must be a string that is not empty"):
            make("")
