"""A sample of the cases, the same in each run, and what makes a case fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
from support.made import made

from aiokafkawire import Client
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages.group import JoinGroupResponse, SyncGroupResponse
from aiokafkawire.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from aiokafkawire.testing.simulation import Simulation

from .alterations import alterations
from .cases import Case, all_cases, hostility_of
from .lives import LIVES, Round
from .paths import change_fields, paths
from .running import run_cases

SAMPLE = (
    ("produce", ApiKey.PRODUCE, "responses.partition_responses.base_offset", "-2"),
    ("read", ApiKey.FETCH, "responses.partitions.records", "earlier by 1"),
    ("consume", ApiKey.SYNC_GROUP, "assignment", "garbage"),
    ("share", ApiKey.SHARE_FETCH, "responses.partitions.acquired_records.last_offset", "minus 1"),
    ("list", ApiKey.METADATA, "brokers.host", "with control characters"),
    ("admin-describe_configs-0", ApiKey.DESCRIBE_CONFIGS, "results.configs.name", "length max"),
)
"""Some cases, by life, API, field and alteration."""


def the_case(life: str, api_key: ApiKey, path: str, alteration: str) -> Case:
    wanted = (life, api_key, path, alteration)
    (found,) = (one for one in all_cases() if (one.life, one.api_key, one.path, one.alteration) == wanted)
    return found


@pytest.mark.parametrize(("life", "api_key", "path", "alteration"), SAMPLE)
def test_a_client_survives_a_hostile_broker(life: str, api_key: ApiKey, path: str, alteration: str) -> None:
    (result,) = run_cases([the_case(life, api_key, path, alteration)])
    assert not result.findings, f"{result.case}: {result.findings}"
    assert result.altered


def test_cases_are_numbered_by_their_places_and_differ() -> None:
    cases = all_cases()
    assert [case.number for case in cases] == list(range(len(cases)))
    assert len({attrs.evolve(case, number=0) for case in cases}) == len(cases)


def test_every_field_of_a_response_is_altered_also_those_of_assignments() -> None:
    names = {str(path) for path in paths(SyncGroupResponse)}
    assert {"throttle_time_ms", "error_code", "assignment", "assignment.assigned_partitions.topic"} <= names
    codes = next(path for path in paths(SyncGroupResponse) if str(path) == "error_code")
    assert {code.name for code in ErrorCode} < set(alterations(codes.field))


def test_a_change_reaches_every_entry_and_makes_missing_ones() -> None:
    broker = made(MetadataResponseBroker, node_id=1, host="a", port=1)
    answer = made(MetadataResponse, brokers=[broker, made(MetadataResponseBroker, node_id=2, host="b", port=2)])
    change_fields(answer, ("brokers", "port"), lambda parent, field: setattr(parent, field.name, -1))
    change_fields(answer, ("topics", "name"), lambda parent, field: setattr(parent, field.name, "x"))
    assert [broker.port for broker in answer.brokers] == [-1, -1]
    assert [topic.name for topic in answer.topics] == ["x"]


@pytest.mark.parametrize("version", [JoinGroupResponse.versions.first, JoinGroupResponse.versions.last])
def test_a_length_is_wrong_where_the_field_stands(version: int) -> None:
    case = the_case("consume", ApiKey.JOIN_GROUP, "member_id", "length max")
    answer = made(JoinGroupResponse, member_id="member", protocol_name="range")
    make = hostility_of(case).encode
    assert make is not None
    wrong = make(answer, version)
    before = encode(answer, version)
    at = before.index(b"member")
    assert wrong != before
    assert wrong.startswith(before[: at - (1 if version in JoinGroupResponse.flexible else 2)])
    assert wrong.endswith(before[at:])
    assert decode(JoinGroupResponse, version, before) == answer


def test_a_bare_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def opened(_: Client, __: Simulation) -> AsyncIterator[Round]:
        async def one() -> None:
            raise KeyError("a broker's word")

        yield one

    monkeypatch.setitem(LIVES, "list", attrs.evolve(LIVES["list"], opened=opened))
    (result,) = run_cases([the_case("list", ApiKey.METADATA, "brokers.host", "empty")])
    assert any("KeyError" in finding for finding in result.findings), result.findings
