"""The SCRAM credentials of users, as Apache Kafka describes and alters them (KIP-554)."""

from __future__ import annotations

from itertools import count

import anyio
import anyio.lowlevel
import pytest
from support.patience import PATIENCE
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

pytestmark = pytest.mark.anyio

SHA_256, SHA_512 = 1, 2
NOT_FOUND = ErrorCode.RESOURCE_NOT_FOUND
UNACCEPTABLE = ErrorCode.UNACCEPTABLE_CREDENTIAL
TWICE = "A user credential cannot be altered twice in the same request"

_names = (f"user-{number}" for number in count())


@pytest.fixture
def user() -> str:
    return next(_names)


def setting(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"x" * 32
    )


def deleting(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


async def alter(
    client: RawClient, *changes: ScramCredentialDeletion | ScramCredentialUpsertion
) -> list[tuple[str, int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, ScramCredentialDeletion)],
        upsertions=[change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )
    results = (await client.ask(request, 0)).results
    return sorted((result.user, result.error_code, result.error_message) for result in results)


Described = tuple[str, int, str | None, list[tuple[int, int]]]


async def describe(client: RawClient, *users: str) -> list[Described]:
    answer = await client.ask(DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users]), 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    return sorted(
        (
            result.user,
            result.error_code,
            result.error_message,
            sorted((info.mechanism, info.iterations) for info in result.credential_infos),
        )
        for result in answer.results
    )


async def becomes(client: RawClient, user: str, infos: list[tuple[int, int]]) -> None:
    """Wait until it is so: a broker of Apache Kafka hears of it from its controller."""
    with anyio.fail_after(PATIENCE):
        while (await describe(client, user))[0][3] != infos:
            await anyio.lowlevel.checkpoint()


async def test_credentials_are_set_replaced_and_deleted(client: RawClient, user: str) -> None:
    assert await alter(client, setting(user)) == [(user, 0, None)]
    await becomes(client, user, [(SHA_256, 4096)])
    assert await alter(client, setting(user, SHA_512, 16384)) == [(user, 0, None)]
    await becomes(client, user, [(SHA_256, 4096), (SHA_512, 16384)])
    assert await alter(client, setting(user, SHA_256, 5000)) == [(user, 0, None)]
    await becomes(client, user, [(SHA_256, 5000), (SHA_512, 16384)])
    assert await describe(client, user) == [(user, 0, "", [(SHA_256, 5000), (SHA_512, 16384)])]
    assert await alter(client, deleting(user)) == [(user, 0, None)]
    await becomes(client, user, [(SHA_512, 16384)])


async def test_users_that_there_are_not(client: RawClient, user: str) -> None:
    message = f"Attempt to describe a user credential that does not exist: {user}"
    assert await describe(client, user) == [(user, NOT_FOUND, message, [])]


async def test_a_user_described_twice(client: RawClient, user: str) -> None:
    message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    assert await describe(client, user, user) == [(user, ErrorCode.DUPLICATE_RESOURCE, message, [])]


async def test_all_users(client: RawClient, user: str) -> None:
    other = next(_names)
    await alter(client, setting(user), setting(other, SHA_512))
    await becomes(client, other, [(SHA_512, 4096)])
    everyone = await describe(client)
    assert (user, 0, "", [(SHA_256, 4096)]) in everyone
    assert (other, 0, "", [(SHA_512, 4096)]) in everyone
    answer = await client.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    assert sorted(result.user for result in answer.results) == [one[0] for one in everyone]


async def test_what_is_not_accepted(client: RawClient, user: str) -> None:
    assert await alter(client, setting(user, iterations=4095)) == [(user, UNACCEPTABLE, "Too few iterations")]
    assert await alter(client, setting(user, iterations=16385)) == [(user, UNACCEPTABLE, "Too many iterations")]
    assert await alter(client, setting("")) == [("", UNACCEPTABLE, "Username must not be empty")]
    assert await alter(client, deleting("")) == [("", UNACCEPTABLE, "Username must not be empty")]
    for mechanism in (0, 3, -1):
        unknown = [(user, ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")]
        assert await alter(client, setting(user, mechanism)) == unknown
        assert await alter(client, deleting(user, mechanism)) == unknown
    message = "Attempt to delete a user credential that does not exist"
    assert await alter(client, deleting(user)) == [(user, NOT_FOUND, message)]
    assert (await describe(client, user))[0][1] == NOT_FOUND


async def test_a_user_altered_twice_and_others_beside(client: RawClient, user: str) -> None:
    other = next(_names)
    twice = (user, ErrorCode.DUPLICATE_RESOURCE, TWICE)
    changes = [setting(user), setting(user, SHA_512), setting(other)]
    assert await alter(client, *changes) == sorted([twice, (other, 0, None)])
    await becomes(client, other, [(SHA_256, 4096)])
    assert (await describe(client, user))[0][1] == NOT_FOUND
    assert await alter(client, deleting(other), setting(other)) == [(other, ErrorCode.DUPLICATE_RESOURCE, TWICE)]
    assert await alter(client, deleting(other), deleting(other)) == [(other, ErrorCode.DUPLICATE_RESOURCE, TWICE)]
    assert await describe(client, other) == [(other, 0, "", [(SHA_256, 4096)])]


async def test_nothing_to_alter(client: RawClient) -> None:
    assert await alter(client) == []
