"""``quotas`` on the in-process broker, in one process."""

import io
import json
import sys
from itertools import combinations
from typing import Any

import pytest
from support.shell import Shell

from aiokafkawire import ClientQuotaEntity
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.quotas.changes import quota_changes
from aiokafkawire.cli.quotas.entities import EntityOptions
from aiokafkawire.cli.quotas.limits import quota_text
from aiokafkawire.cli.quotas.precedence import effective_quotas
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.configs.quotas import ClientQuotas, QuotaOperation, entity_of

RATE = "producer_byte_rate"
user, client_id, both, ip = (
    ClientQuotaEntity.user,
    ClientQuotaEntity.client_id,
    ClientQuotaEntity.user_and_client_id,
    ClientQuotaEntity.ip,
)
PRECEDENCE = (
    both("alice", "etl"),
    both("alice", None),
    user("alice"),
    both(None, "etl"),
    both(None, None),
    user(None),
    client_id("etl"),
    client_id(None),
)
"""As Kafka documents it."""


@pytest.fixture
def shell(kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(kafka_broker.bootstrap, capsysbinary)


def rows(shell: Shell, *argv: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.lines("quotas", *argv, "--json")]


# --- which quota holds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("higher", "lower"), list(combinations(PRECEDENCE, 2)), ids=str)
def test_the_more_specific_of_two_quotas_holds(higher: ClientQuotaEntity, lower: ClientQuotaEntity) -> None:
    quotas = {lower: {RATE: 1.0}, user("bob"): {RATE: 3.0}, higher: {RATE: 2.0}}
    (first, *others) = effective_quotas(quotas, user="alice", client_id="etl")
    assert (first.key, first.value, first.entity) == (RATE, 2.0, higher)
    assert [(other.value, other.entity) for other in others] == [(None, None)] * 3


@pytest.mark.parametrize("name", ["etl", ""])
def test_the_in_process_broker_throttles_by_the_same_quotas(name: str) -> None:
    for count in range(len(PRECEDENCE) + 1):
        for entities in combinations(PRECEDENCE, count):
            quotas = {entity: {RATE: float(PRECEDENCE.index(entity) + 1)} for entity in entities}
            served = ClientQuotas()
            for entity, values in quotas.items():
                operations = [QuotaOperation(key, value) for key, value in values.items()]
                served.alter(entity_of(tuple(entity.entries.items())), operations)
            limit = served.limit(RATE, "alice", name)
            expected = None if limit is None else limit.value
            assert effective_quotas(quotas, user="alice", client_id=name)[0].value == expected


def test_each_quota_is_resolved_for_itself() -> None:
    quotas = {user("alice"): {RATE: 1.0}, client_id(None): {RATE: 2.0, "request_percentage": 3.0, "new_rate": 4.0}}
    found = {quota.key: (quota.value, quota.entity) for quota in effective_quotas(quotas, user="alice", client_id="x")}
    assert found == {
        RATE: (1.0, user("alice")),
        "consumer_byte_rate": (None, None),
        "request_percentage": (3.0, client_id(None)),
        "controller_mutation_rate": (None, None),
        "new_rate": (4.0, client_id(None)),
    }


def test_quotas_of_client_ids_do_not_hold_for_a_client_without_one() -> None:
    quotas = {entity: {RATE: 1.0} for entity in (both("alice", None), client_id(None), user(None))}
    assert effective_quotas(quotas, user="alice")[0].entity == user(None)


def test_an_address_has_its_own_quota_or_the_default() -> None:
    rate = "connection_creation_rate"
    quotas = {ip("10.0.0.7"): {rate: 7.0}, ip(None): {rate: 9.0}}
    for address, value in (("10.0.0.7", 7.0), ("10.0.0.8", 9.0)):
        (found,) = effective_quotas(quotas, ip=address)
        assert (found.key, found.value) == (rate, value)
    assert effective_quotas({}, ip="10.0.0.7")[0].entity is None


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "whose quotas"),
        ({"user": "alice", "user_default": True}, "--user and --user-default cannot be combined"),
        ({"client_id": ""}, "--client-id must not be empty"),
        ({"user": "alice", "ip": "10.0.0.7"}, "an IP address has no user"),
        ({"client_id_default": True, "ip_default": True}, "an IP address has no user"),
    ],
)
def test_entities_that_cannot_be_are_wrong_usage(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandFailed, match=message) as refused:
        _ = EntityOptions(**options).entity
    assert refused.value.status == 2


def test_entities_of_options() -> None:
    assert EntityOptions(user="alice", client_id_default=True).entity == both("alice", None)
    assert EntityOptions(ip_default=True).entity == ip(None)
    assert EntityOptions().filter().components == ()
    assert EntityOptions(user="alice").filter(exact=True).strict


@pytest.mark.parametrize(
    ("settings", "deleted", "message"),
    [
        ([], [], "nothing to change"),
        (["a=fast"], [], "a must be a number, such as a=1000000; got 'fast'"),
        (["a=inf"], [], "a must be a number"),
        (["a=9007199254740993"], [], "a cannot be kept exactly.* 9007199254740993 would become 9007199254740992"),
        (["a"], [], "a quota takes KEY=VALUE, got 'a'"),
        (["a=1"], ["a"], "a is both set and deleted"),
    ],
)
def test_wrong_changes_are_wrong_usage(settings: list[str], deleted: list[str], message: str) -> None:
    with pytest.raises(CommandFailed, match=message) as refused:
        quota_changes(settings, deleted)
    assert refused.value.status == 2


def test_changes_are_numbers_and_none_for_the_deleted() -> None:
    assert quota_changes(["a=1e6", "b=12.5"], ["c"]) == {"a": 1e6, "b": 12.5, "c": None}


@pytest.mark.parametrize(
    ("value", "text"), [(1e6, "1000000"), (12.5, "12.5"), (0.25, "0.25"), (1e-9, "1e-09"), (2.0**62, str(2**62))]
)
def test_values_have_no_exponent_unless_they_need_one(value: float, text: str) -> None:
    assert quota_text(value) == text


# --- commands --------------------------------------------------------------------------------------------------------


def test_quotas_are_set_listed_described_removed_and_deleted(shell: Shell) -> None:
    assert shell.lines("quotas", "alter", "--user", "alice", f"{RATE}=1000000", "request_percentage=12.5") == [
        "USER   CLIENT ID  IP  OUTCOME",
        "alice  -          -   changed",
    ]
    shell("quotas", "alter", "--user", "alice", "--client-id", "etl", f"{RATE}=5")
    shell("quotas", "alter", "--user-default", f"{RATE}=7")
    shell("quotas", "alter", "--ip", "10.0.0.7", "connection_creation_rate=20")
    assert shell.lines("quotas", "list") == [
        "USER       CLIENT ID  IP        QUOTA                     VALUE",
        f"alice      -          -         {RATE}        1000000",
        "alice      -          -         request_percentage        12.5",
        f"alice      etl        -         {RATE}        5",
        f"(default)  -          -         {RATE}        7",
        "-          -          10.0.0.7  connection_creation_rate  20",
    ]
    assert rows(shell, "list", "--user-default") == [{"entity": {"user": None}, "quota": RATE, "value": 7.0}]
    assert rows(shell, "list", "--client-id", "etl") == [
        {"entity": {"user": "alice", "client_id": "etl"}, "quota": RATE, "value": 5.0}
    ]
    assert [row["quota"] for row in rows(shell, "describe", "--user", "alice")] == [RATE, "request_percentage"]
    argv = ("alter", "--user", "alice", "--delete", "request_percentage", f"{RATE}=2")
    assert rows(shell, *argv) == [{"entity": {"user": "alice"}, "outcome": "changed"}]
    assert [row["value"] for row in rows(shell, "describe", "--user", "alice")] == [2.0]
    assert shell.lines("quotas", "delete", "--user", "alice", "-y")[1].split() == ["alice", "-", "-", "deleted"]
    shell("quotas", "describe", "--user", "alice", status=1)
    assert shell.err == "aiokafkawire: user 'alice' has no quotas\n"
    shell("quotas", "delete", "--user", "alice", "-y", status=1)
    assert shell.err == "aiokafkawire: ResourceNotFound: user 'alice' has no quotas\n"
    assert shell.lines("quotas", "delete", "--user", "alice", "-y", "--if-exists")[1].split()[-1] == "absent"
    assert len(rows(shell, "list")) == 3


def test_the_quotas_of_a_client_are_resolved(shell: Shell) -> None:
    shell("quotas", "alter", "--user", "alice", f"{RATE}=1000000")
    shell("quotas", "alter", "--client-id-default", "request_percentage=50")
    shell("quotas", "alter", "--ip-default", "connection_creation_rate=20")
    assert shell.lines("quotas", "resolve", "--user", "alice", "--client-id", "etl") == [
        "QUOTA                     VALUE      SET FOR",
        f"{RATE}        1000000    user 'alice'",
        "consumer_byte_rate        unlimited  -",
        "request_percentage        50         default client-id",
        "controller_mutation_rate  unlimited  -",
    ]
    assert rows(shell, "resolve", "--ip", "10.0.0.7") == [
        {"quota": "connection_creation_rate", "value": 20.0, "entity": {"ip": None}}
    ]
    shell("quotas", "alter", "--user", "ANONYMOUS", f"{RATE}=3")
    assert rows(shell, "resolve")[0] == {"quota": RATE, "value": 3.0, "entity": {"user": "ANONYMOUS"}}
    assert rows(shell, "resolve", "--client-id", "etl")[1]["entity"] is None


def test_changes_are_checked_alone_and_refused(shell: Shell) -> None:
    argv = ("quotas", "alter", "--user", "alice")
    assert shell.lines(*argv, f"{RATE}=5", "--validate-only")[1].endswith("would be changed")
    shell(*argv, "no_such_rate=5", status=1)
    assert "InvalidRequest: changing the quotas of user 'alice': Invalid configuration key no_such_rate" in shell.err
    shell("quotas", "alter", f"{RATE}=5", status=2)
    assert "whose quotas?" in shell.err
    assert rows(shell, "list") == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1)])
def test_a_terminal_is_asked_before_quotas_are_deleted(
    answer: str, status: int, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("quotas", "alter", "--user", "alice", f"{RATE}=5")
    shell("quotas", "delete", "--user", "alice", status=2)
    assert "add --yes" in shell.err
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    shell("quotas", "delete", "--user", "alice", status=status)
    assert said.getvalue().startswith("delete all quotas (user 'alice')? [y/N] ")
    assert len(rows(shell, "list")) == status


def test_a_user_without_rights_is_refused(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(authorizer=True, super_users=["User:admin"]) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        for argv in (("list",), ("alter", "--user", "alice", f"{RATE}=5"), ("delete", "--user", "alice", "-y")):
            shell("quotas", *argv, status=1)
            assert shell.err.startswith("aiokafkawire: ClusterAuthorizationFailed: ")
