"""What the admin does with SCRAM credentials (KIP-554) and client quotas (KIP-546), whichever broker it talks to."""

from __future__ import annotations

from secrets import token_hex

import pytest
from support.transactional import settled

from aiokafkawire import (
    Client,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from aiokafkawire.errors import AdminError, DuplicateResource, InvalidRequest, ResourceNotFound

pytestmark = pytest.mark.anyio

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
RATE = "producer_byte_rate"

contains, contains_only = ClientQuotaFilter.contains, ClientQuotaFilter.contains_only
exact, default, any_of = (
    ClientQuotaFilterComponent.of_entity,
    ClientQuotaFilterComponent.of_default_entity,
    ClientQuotaFilterComponent.of_entity_type,
)


@pytest.fixture
def user() -> str:
    """A user that no other test has."""
    return f"user-{token_hex(6)}"


def setting(user: str, mechanism: ScramMechanism = SHA_256, iterations: int = 4096) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, iterations), f"secret of {user}")


async def credentials(kafka: Client, user: str, *expected: tuple[ScramMechanism, int]) -> None:
    """Wait until a user has these: a broker of Apache Kafka hears of a change from its controller."""

    async def found() -> list[tuple[ScramMechanism, int]]:
        try:
            infos = (await kafka.admin.describe_user_scram_credentials(user))[user]
        except ResourceNotFound:
            return []
        return sorted((info.mechanism, info.iterations) for info in infos)

    await settled(found, lambda known: known == sorted(expected))


# --- SCRAM credentials ---------------------------------------------------------------------------------------------


async def test_credentials_are_set_replaced_and_deleted(kafka: Client, user: str) -> None:
    await kafka.admin.alter_user_scram_credentials([setting(user)])
    await credentials(kafka, user, (SHA_256, 4096))
    await kafka.admin.alter_user_scram_credentials([setting(user, SHA_512, 16384)])
    await credentials(kafka, user, (SHA_256, 4096), (SHA_512, 16384))
    await kafka.admin.alter_user_scram_credentials([setting(user, SHA_256, 5000)])
    await credentials(kafka, user, (SHA_256, 5000), (SHA_512, 16384))
    everyone = await kafka.admin.describe_user_scram_credentials()
    assert set(everyone[user]) == {ScramCredentialInfo(SHA_256, 5000), ScramCredentialInfo(SHA_512, 16384)}
    await kafka.admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, SHA_256)])
    await credentials(kafka, user, (SHA_512, 16384))
    await kafka.admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, SHA_512)])
    await credentials(kafka, user)


async def test_one_user_without_credentials_is_an_error_and_several_keep_the_results_of_the_rest(
    kafka: Client, user: str
) -> None:
    other = f"{user}-other"
    await kafka.admin.alter_user_scram_credentials([setting(user)])
    await credentials(kafka, user, (SHA_256, 4096))
    told = f"describing the SCRAM credentials of user '{other}': Attempt to describe a user credential that does not"
    with pytest.raises(ResourceNotFound, match=told):
        await kafka.admin.describe_user_scram_credentials([other])
    with pytest.raises(AdminError) as caught:
        await kafka.admin.describe_user_scram_credentials([other, user, other])
    assert caught.value.results == {user: (ScramCredentialInfo(SHA_256, 4096),)}
    assert [type(error) for error in caught.value.errors.values()] == [ResourceNotFound]
    assert list(caught.value.errors) == [other]
    assert await kafka.admin.describe_user_scram_credentials([]) == {}


async def test_changes_of_some_users_fail_and_those_of_others_are_made(kafka: Client, user: str) -> None:
    missing, twice = f"{user}-missing", f"{user}-twice"
    with pytest.raises(
        ResourceNotFound, match=f"changing the SCRAM credentials of user '{missing}': Attempt to delete"
    ):
        await kafka.admin.alter_user_scram_credentials([UserScramCredentialDeletion(missing, SHA_256)])
    with pytest.raises(AdminError, match="changing SCRAM credentials failed for 2 of 3") as caught:
        await kafka.admin.alter_user_scram_credentials(
            [
                UserScramCredentialDeletion(missing, SHA_256),
                setting(twice, SHA_256),
                setting(user),
                setting(twice, SHA_512),
            ]
        )
    assert {name: type(error) for name, error in caught.value.errors.items()} == {
        missing: ResourceNotFound,
        twice: DuplicateResource,
    }
    assert list(caught.value.results) == [user]
    await credentials(kafka, user, (SHA_256, 4096))
    await credentials(kafka, twice)
    await kafka.admin.alter_user_scram_credentials([])


# --- quotas --------------------------------------------------------------------------------------------------------


async def test_quotas_are_set_found_by_filters_and_removed(kafka: Client, user: str) -> None:
    own = ClientQuotaEntity.user(user)
    client = ClientQuotaEntity.client_id(user)
    both = ClientQuotaEntity.user_and_client_id(user, user)
    rest = ClientQuotaEntity.user_and_client_id(user, None)
    address = ClientQuotaEntity.ip("203.0.113.7")
    quotas: dict[ClientQuotaEntity, dict[str, float]] = {
        own: {RATE: 1e6, "consumer_byte_rate": 2e6},
        client: {"request_percentage": 50.5},
        both: {RATE: 1e5},
        rest: {"controller_mutation_rate": 1.5},
        address: {"connection_creation_rate": 7.0},
    }
    await kafka.admin.alter_client_quotas(quotas)

    async def found(matching: ClientQuotaFilter | None = None) -> dict[ClientQuotaEntity, dict[str, float]]:
        every = await kafka.admin.describe_client_quotas(matching)
        return {entity: values for entity, values in every.items() if entity in quotas}

    try:
        await settled(found, lambda known: known == quotas)
        for matching, expected in (
            (contains(exact("user", user)), {own, both, rest}),
            (contains_only(exact("user", user)), {own}),
            (contains(exact("user", user), default("client-id")), {rest}),
            (contains(exact("user", user), any_of("client-id")), {both, rest}),
            (contains(any_of("client-id")), {client, both, rest}),
            (contains_only(any_of("client-id")), {client}),
            (contains(exact("ip", "203.0.113.7")), {address}),
            (contains(any_of("ip")), {address}),
            (contains(default("user"), exact("client-id", user)), set()),
            (ClientQuotaFilter.all(), set(quotas)),
        ):
            assert set(await found(matching)) == expected, matching
        # A call changes some quotas of an entity, and others stay.
        await kafka.admin.alter_client_quotas({own: {RATE: None, "request_percentage": 25}})
        quotas[own] = {"consumer_byte_rate": 2e6, "request_percentage": 25.0}
        await settled(found, lambda known: known == quotas)
    finally:
        await kafka.admin.alter_client_quotas({entity: dict.fromkeys(values) for entity, values in quotas.items()})
    await settled(found, lambda known: known == {})


async def test_defaults_of_users_client_ids_and_addresses(kafka: Client, user: str) -> None:
    users, clients = ClientQuotaEntity.user(None), ClientQuotaEntity.client_id(None)
    addresses = ClientQuotaEntity.ip(None)
    set_ = {users: {RATE: 1e15}, clients: {RATE: 2e15}, addresses: {"connection_creation_rate": 2e9}}

    async def found() -> dict[ClientQuotaEntity, dict[str, float]]:
        every = await kafka.admin.describe_client_quotas()
        return {entity: values for entity, values in every.items() if entity in set_}

    await kafka.admin.alter_client_quotas(set_)
    try:
        await settled(found, lambda known: known == set_)
        for kind, entity in (("user", users), ("client-id", clients), ("ip", addresses)):
            only = await kafka.admin.describe_client_quotas(contains_only(default(kind)))
            assert only == {entity: set_[entity]}
    finally:
        await kafka.admin.alter_client_quotas({entity: dict.fromkeys(values) for entity, values in set_.items()})
    await settled(found, lambda known: known == {})


async def test_quotas_that_cannot_be_are_told_entity_by_entity(kafka: Client, user: str) -> None:
    own, other = ClientQuotaEntity.user(user), ClientQuotaEntity.user(f"{user}-other")
    odd = ClientQuotaEntity({"ip": "203.0.113.8", "user": user})
    with pytest.raises(InvalidRequest, match=f"changing the quotas of user '{user}': Invalid configuration key pace"):
        await kafka.admin.alter_client_quotas({own: {"pace": 5}})
    with pytest.raises(AdminError, match="changing client quotas failed for 2 of 3") as caught:
        await kafka.admin.alter_client_quotas(
            {own: {RATE: -1, "consumer_byte_rate": 5}, other: {RATE: 1e6}, odd: {"connection_creation_rate": 5}}
        )
    assert {entity: type(error) for entity, error in caught.value.errors.items()} == {
        own: InvalidRequest,
        odd: InvalidRequest,
    }
    assert list(caught.value.results) == [other]

    async def found() -> dict[ClientQuotaEntity, dict[str, float]]:
        every = await kafka.admin.describe_client_quotas(contains_only(any_of("user")))
        return {entity: values for entity, values in every.items() if entity in (own, other)}

    assert await settled(found, lambda known: other in known) == {other: {RATE: 1e6}}
    await kafka.admin.alter_client_quotas({other: {RATE: None}})
    await kafka.admin.alter_client_quotas({})


async def test_changes_of_quotas_are_checked_alone(kafka: Client, user: str) -> None:
    own = ClientQuotaEntity.user(user)
    await kafka.admin.alter_client_quotas({own: {RATE: 5}}, validate_only=True)
    with pytest.raises(InvalidRequest, match=f"Quota {RATE} must be greater than 0"):
        await kafka.admin.alter_client_quotas({own: {RATE: 0}}, validate_only=True)
    assert await kafka.admin.describe_client_quotas(contains(exact("user", user))) == {}


async def test_filters_that_brokers_reject(kafka: Client, user: str) -> None:
    with pytest.raises(InvalidRequest, match="Entity type user cannot appear more than once in the filter"):
        await kafka.admin.describe_client_quotas(contains(exact("user", user), default("user")))
    with pytest.raises(InvalidRequest, match="IP filter component should not be used with user"):
        await kafka.admin.describe_client_quotas(contains(any_of("user"), any_of("ip")))
