"""DescribeClientQuotas and AlterClientQuotas, as Apache Kafka answers them; what they do is in test_throttling.py."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from support.patience import PATIENCE
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest
from aiokafkawire.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)

from .conftest import Kafka

pytestmark = pytest.mark.anyio

EXACT, DEFAULT, SPECIFIED = range(3)
USER, CLIENT, IP = "user", "client-id", "ip"

Entity = tuple[tuple[str, str | None], ...]
Change = tuple[str, float | None]
Found = dict[frozenset[tuple[str, str | None]], dict[str, float]]


async def alter(
    client: RawClient, *entries: tuple[Entity, Sequence[Change]], validate_only: bool = False, version: int = 1
) -> list[tuple[str, str | None]]:
    """Change quotas; None removes one."""
    asked = [
        AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes],
        )
        for entity, changes in entries
    ]
    request = AlterClientQuotasRequest(entries=asked, validate_only=validate_only)
    answers = (await client.ask(request, version)).entries
    return [(ErrorCode(each.error_code).name, each.error_message) for each in answers]


async def describe(
    client: RawClient, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> Found | tuple[str, str | None]:
    asked = [ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components]
    answer = await client.ask(DescribeClientQuotasRequest(components=asked, strict=strict), version)
    if answer.error_code:
        assert answer.entries is None
        return ErrorCode(answer.error_code).name, answer.error_message
    assert answer.error_message == ""
    return {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
            each.key: each.value for each in entry.values
        }
        for entry in answer.entries or ()
    }


async def until(client: RawClient, expected: Found) -> None:
    """Wait until these are all quotas; Apache Kafka takes a moment."""
    with anyio.fail_after(PATIENCE):
        while await describe(client) != expected:
            pass


@pytest.mark.parametrize("version", range(2))
async def test_quotas_are_set_found_and_removed(client: RawClient, version: int) -> None:
    a, other = ((USER, "a"),), ((USER, None),)
    both, default = ((USER, "a"), (CLIENT, "c")), ((USER, "a"), (CLIENT, None))
    address = ((IP, "1.2.3.4"),)
    quotas: dict[Entity, dict[str, float]] = {
        a: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.0},
        other: {"producer_byte_rate": 10.0},
        both: {"request_percentage": 50.5},
        default: {"controller_mutation_rate": 1.5},
        address: {"connection_creation_rate": 7.0},
    }
    answers = await alter(client, *((entity, list(each.items())) for entity, each in quotas.items()), version=version)
    assert answers == [("NONE", None)] * 5
    try:
        every = {frozenset(entity): each for entity, each in quotas.items()}
        await until(client, every)

        async def found(*components: tuple[str, int, str | None], strict: bool = False) -> list[Entity]:
            answer = await describe(client, *components, strict=strict, version=version)
            assert isinstance(answer, dict)
            assert all(every[entity] == each for entity, each in answer.items())
            return [entity for entity in quotas if frozenset(entity) in answer]

        assert await found(strict=True) == []
        assert await found((USER, EXACT, "a")) == [a, both, default]
        assert await found((USER, EXACT, "a"), strict=True) == [a]
        assert await found((USER, DEFAULT, None)) == [other]
        assert await found((USER, SPECIFIED, None)) == [a, other, both, default]
        assert await found((USER, SPECIFIED, None), (CLIENT, SPECIFIED, None)) == [both, default]
        assert await found((CLIENT, DEFAULT, None)) == [default]
        assert await found((IP, SPECIFIED, None)) == [address]
        assert await found((USER, EXACT, "nobody")) == []
    finally:
        removed = [(entity, [(key, None) for key in each]) for entity, each in quotas.items()]
        gone = await alter(client, *removed)
    assert gone == [("NONE", None)] * 5
    await until(client, {})


async def test_quotas_that_cannot_be(client: RawClient) -> None:
    u: Entity = ((USER, "u"),)
    address: Entity = ((IP, "1.2.3.4"),)
    cases: dict[tuple[Entity, Change], str] = {
        (u, ("foo", 1.0)): "Invalid configuration key foo",
        (u, ("producer_byte_rate", -1.0)): "Quota producer_byte_rate must be greater than 0",
        (u, ("request_percentage", 0.0)): "Quota request_percentage must be greater than 0",
        (u, ("producer_byte_rate", 1.5)): "producer_byte_rate cannot be a fractional value.",
        (u, ("consumer_byte_rate", 1e30)): "Proposed value for consumer_byte_rate is too large for a LONG.",
        (u, ("connection_creation_rate", 1.0)): "Invalid configuration key connection_creation_rate",
        (address, ("producer_byte_rate", 1.0)): "Invalid configuration key producer_byte_rate",
        (address, ("connection_creation_rate", 1.5)): "connection_creation_rate cannot be a fractional value.",
        (address, ("connection_creation_rate", 3e9)): (
            "Proposed value for connection_creation_rate is too large for an INT."
        ),
        (((IP, "not an ip"),), ("connection_creation_rate", 1.0)): ("not an ip is not a valid IP or resolvable host."),
        ((*address, *u), ("connection_creation_rate", 1.0)): (
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        ),
        ((), ("producer_byte_rate", 1.0)): "Invalid empty client quota entity",
        ((("foo", "u"),), ("producer_byte_rate", 1.0)): "Unhandled client quota entity type: foo",
        (((USER, ""),), ("producer_byte_rate", 1.0)): "Empty user not supported",
    }
    answers = {(entity, change): await alter(client, (entity, [change])) for entity, change in cases}
    assert answers == {case: [("INVALID_REQUEST", message)] for case, message in cases.items()}
    assert await alter(client, (u, [("producer_byte_rate", 1.0)]), validate_only=True) == [("NONE", None)]
    assert await alter(client, (u, [("foo", None)])) == [("NONE", None)]
    assert await alter(client, (u, [])) == [("NONE", None)]
    assert await describe(client) == {}


async def test_an_entity_named_twice(client: RawClient) -> None:
    ignored = [("INVALID_REQUEST", "Ignoring duplicate entity ClientQuotaEntity(entries={user=twice})")]
    twice: Entity = ((USER, "twice"),)
    key = "producer_byte_rate"
    assert await alter(client, (twice, [(key, 1.0), (key, 2.0)])) == ignored
    assert await describe(client) == {}
    # The first change is made all the same.
    assert await alter(client, (twice, [(key, 1.0)]), (twice, [(key, 2.0)])) == ignored
    await until(client, {frozenset(twice): {key: 1.0}})
    # Of several parts of one type the last counts.
    assert await alter(client, (((USER, "once"), *twice), [(key, None)])) == [("NONE", None)]
    await until(client, {})


async def test_what_cannot_be_asked_for(client: RawClient) -> None:
    cases: dict[tuple[tuple[str, int, str | None], ...], tuple[str, str]] = {
        ((IP, SPECIFIED, None), (USER, SPECIFIED, None)): (
            "INVALID_REQUEST",
            (
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component."
            ),
        ),
        ((USER, SPECIFIED, None), (USER, EXACT, "x")): (
            "INVALID_REQUEST",
            "Entity type user cannot appear more than once in the filter.",
        ),
        (("", SPECIFIED, None),): ("INVALID_REQUEST", "Invalid empty entity type."),
        (("foo", SPECIFIED, None),): ("UNSUPPORTED_VERSION", "Unsupported entity type foo"),
        ((USER, 9, None),): ("INVALID_REQUEST", "Unknown match type 9"),
        ((USER, EXACT, None),): (
            "INVALID_REQUEST",
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        ((USER, DEFAULT, "x"),): (
            "INVALID_REQUEST",
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        ((USER, SPECIFIED, "x"),): (
            "INVALID_REQUEST",
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
    }
    assert {case: await describe(client, *case) for case in cases} == cases


@pytest.mark.slow
async def test_connections_above_the_rate_of_their_address_are_closed_unanswered(
    kafka: Kafka, client: RawClient
) -> None:
    address = ((IP, "127.0.0.1"),)
    assert await alter(client, (address, [("connection_creation_rate", 1.0)])) == [("NONE", None)]
    try:
        with anyio.fail_after(PATIENCE):
            # Ten seconds of the quota may be used at once; Apache Kafka knows it a moment later.
            answered = 0
            while await is_answered(kafka):
                answered += 1
        assert answered >= 10
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0  # it is older than the quota
    finally:
        await alter(client, (address, [("connection_creation_rate", None)]))
    with anyio.fail_after(PATIENCE):
        while not await is_answered(kafka):
            pass


async def is_answered(kafka: Kafka) -> bool:
    """Whether a new connection is served, and not closed before its first response."""
    async with await kafka.client() as client:
        try:
            return (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return False
