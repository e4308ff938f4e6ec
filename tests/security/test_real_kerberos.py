"""GSSAPI with a real KDC and a real Kafka. Where there is no Kerberos these are skipped, on CI too: it has none."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.apache_kafka import ApacheKafka, missing
from support.kerberos import REALM, Kerberos, missing_kerberos
from support.needing import require
from support.securing import (
    LIFETIME_MS,
    Papers,
    make_papers,
    outlives_its_login,
    refusal,
    there_and_back,
    tls_properties,
)

from aiokafkawire.errors import AuthenticationFailed, SaslAuthenticationFailed

pytestmark = [pytest.mark.anyio, pytest.mark.kafka, pytest.mark.usefixtures("nothing_fails_unheard")]

GSSAPI = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}


@pytest.fixture(scope="module")
def kerberos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberos]:
    """A realm, of which this process is alice."""
    lacking = missing_kerberos()
    if lacking is not None:
        pytest.skip(lacking)
    with Kerberos(tmp_path_factory.mktemp("kerberos")) as realm, pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        realm.ticket("alice")
        yield realm


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return make_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def kafka(kerberos: Kerberos, papers: Papers) -> Iterator[ApacheKafka]:
    require(missing())
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    properties = {**tls_properties(papers), "connection.failed.authentication.delay.ms": "0"}
    keytabs = {service: kerberos.keytab(f"{service}/127.0.0.1") for service in ("kafka", "events")}
    listeners = dict.fromkeys(("GUARDED", "NAMED", "RENEWED"), "SASL_PLAINTEXT") | {"BOTH": "SASL_SSL"}
    for listener, service in (("guarded", "kafka"), ("named", "events"), ("renewed", "kafka"), ("both", "kafka")):
        principal, keytab = f"{service}/127.0.0.1@{REALM}", keytabs[service]
        prefix = f"listener.name.{listener}"
        properties[f"{prefix}.sasl.enabled.mechanisms"] = "GSSAPI"
        properties[f"{prefix}.gssapi.sasl.jaas.config"] = f'{module} keyTab="{keytab}" principal="{principal}";'
        properties[f"{prefix}.sasl.kerberos.service.name"] = service
    properties["listener.name.renewed.gssapi.connections.max.reauth.ms"] = str(LIFETIME_MS)
    jvm = [f"-Djava.security.krb5.conf={kerberos.conf}"]
    with ApacheKafka(properties=properties, listeners=listeners, jvm=jvm) as kafka:
        yield kafka


async def test_records_of_who_has_a_ticket(kafka: ApacheKafka) -> None:
    await there_and_back(kafka.addresses["GUARDED"], **GSSAPI)
    await there_and_back(kafka.addresses["NAMED"], **GSSAPI, sasl_kerberos_service_name="events")


async def test_records_of_who_has_a_ticket_inside_tls(kafka: ApacheKafka, papers: Papers) -> None:
    inside = {**papers.client(), **GSSAPI, "security_protocol": "SASL_SSL"}
    await there_and_back(kafka.addresses["BOTH"], **inside)
    error = await refusal(kafka.addresses["BOTH"], **inside, sasl_kerberos_service_name="nobody")
    assert type(error) is AuthenticationFailed


async def test_a_login_that_ends_is_renewed_under_way(kafka: ApacheKafka) -> None:
    await outlives_its_login(kafka.addresses["RENEWED"], **GSSAPI)


async def test_a_service_that_the_realm_does_not_know(kafka: ApacheKafka) -> None:
    error = await refusal(kafka.addresses["GUARDED"], **GSSAPI, sasl_kerberos_service_name="nobody")
    assert type(error) is AuthenticationFailed
    assert "not found in Kerberos database" in str(error)


async def test_a_ticket_for_another_service(kafka: ApacheKafka) -> None:
    error = await refusal(kafka.addresses["GUARDED"], **GSSAPI, sasl_kerberos_service_name="events")
    assert type(error) is SaslAuthenticationFailed


async def test_no_ticket(kafka: ApacheKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"{os.environ['KRB5CCNAME']}-none")
    error = await refusal(kafka.addresses["GUARDED"], **GSSAPI)
    assert type(error) is AuthenticationFailed
    assert "is there a ticket? klist shows" in str(error)
