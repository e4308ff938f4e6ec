"""The client of a registry: its calls, caches, retries and failures, on the registry in memory."""

from __future__ import annotations

import asyncio
import inspect
import logging
import ssl
import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest
import trustme
from support.schema_registries import QUICK, context, finished, running_registry

from aiokafkawire import blocking
from aiokafkawire.errors import ConfigError, KafkaError, SchemaRegistryError, UsageError
from aiokafkawire.schema_registry import (
    AvroDeserializer,
    AvroSerializer,
    CompatibilityLevel,
    Schema,
    SchemaReference,
    SchemaRegistry,
    SchemaType,
    http_transport,
)
from aiokafkawire.schema_registry.http_transport import HttpTransport
from aiokafkawire.schema_registry.rest_messages import RestRequest
from aiokafkawire.testing import SchemaRegistryServer

pytestmark = pytest.mark.anyio

INT, STRING = Schema('"int"'), Schema('"string"')
CITY = Schema('{"type":"record","name":"City","fields":[{"name":"name","type":"string"}]}')


async def received(server: SchemaRegistryServer, count: int) -> None:
    """Wait until the registry has so many requests."""
    while len(server.requests) < count:  # noqa: ASYNC110  # it has no event
        await anyio.sleep(0.001)


async def test_a_schema_is_registered_once_and_keeps_its_id() -> None:
    async with running_registry() as (server, registry):
        first = await registry.register_schema("a", INT)
        assert (first.subject, first.schema_id, first.version, first.schema) == ("a", 1, 1, INT)
        assert (await registry.register_schema("b", Schema(' "int" '))).schema_id == 1
        assert await registry.register_schema("a", INT) == first
        assert server.requests == ["POST /subjects/a/versions", "POST /subjects/b/versions"]


async def test_what_is_read_is_cached() -> None:
    async with running_registry() as (server, registry):
        registered = await registry.register_schema("a b/c", INT)
        assert registered.guid is not None
        server.requests.clear()
        for _ in range(2):
            assert await registry.get_schema(1) == INT
            assert await registry.get_schema(registered.guid) == INT
            assert (await registry.lookup_schema("a b/c", INT)).version == 1
            assert (await registry.get_version("a b/c")).schema_id == 1
            assert (await registry.get_version("a b/c", 1)).schema == INT
        assert server.requests == [
            "GET /schemas/ids/1",
            f"GET /schemas/guids/{registered.guid}",
            "POST /subjects/a%20b%2Fc",
            "GET /subjects/a%20b%2Fc/versions/latest",
        ]
        registry.clear_caches()
        await registry.get_schema(1)
        assert len(server.requests) == 5


async def test_the_latest_version_is_asked_for_again_after_its_time() -> None:
    async with running_registry(latest_cache_ttl_sec=10) as (_, registry):
        now = 0.0
        registry._now = lambda: now
        other = SchemaRegistry(registry._urls[0])
        await registry.register_schema("a", INT)
        assert (await registry.get_version("a")).version == 1
        await other.register_schema("a", Schema('"long"'))
        now = 9.0
        assert (await registry.get_version("a")).version == 1
        now = 10.0
        assert registry.cached_latest_version("a") is None
        assert (await registry.get_version("a")).version == 2


async def test_an_unknown_id_is_asked_for_again_after_its_time() -> None:
    async with running_registry(missing_id_cache_ttl_sec=1) as (server, registry):
        now = 0.0
        registry._now = lambda: now
        for _ in range(3):
            with pytest.raises(SchemaRegistryError, match="Schema 1 not found") as caught:
                await registry.get_schema(1)
            assert (caught.value.status, caught.value.error_code) == (404, 40403)
        assert server.requests == ["GET /schemas/ids/1"]
        await SchemaRegistry(server.url).register_schema("a", INT)
        now = 1.0
        assert await registry.get_schema(1) == INT


async def test_an_own_change_forgets_the_latest_version() -> None:
    async with running_registry() as (_, registry):
        await registry.register_schema("a", INT)
        await registry.get_version("a")
        await registry.register_schema("a", Schema('"long"'))
        assert (await registry.get_version("a")).version == 2
        assert await registry.delete_version("a", 2) == 2
        assert (await registry.get_version("a")).version == 1


async def test_subjects_and_versions_are_listed_and_deleted() -> None:
    async with running_registry() as (_, registry):
        await registry.register_schema("a", INT)
        await registry.register_schema("a", Schema('"long"'))
        await registry.register_schema("b", INT)
        assert await registry.list_subjects() == ("a", "b")
        assert await registry.list_subjects(prefix="b") == ("b",)
        assert await registry.list_versions("a") == (1, 2)
        assert await registry.delete_subject("a") == (1, 2)
        assert await registry.list_subjects() == ("b",)
        assert await registry.list_subjects(deleted=True) == ("a", "b")
        assert await registry.list_versions("a", deleted=True) == (1, 2)
        assert await registry.get_schema(2) == Schema('"long"')  # records can still be read
        assert await registry.delete_subject("a", permanent=True) == (1, 2)
        with pytest.raises(SchemaRegistryError, match="Schema 2 not found"):
            await registry.get_schema(2)


async def test_incompatible_schemas_are_refused_as_the_level_says() -> None:
    async with running_registry() as (_, registry):
        await registry.register_schema("a", INT)
        result = await registry.check_compatibility("a", STRING)
        assert not result.is_compatible
        assert "the reader's type string cannot read int" in result.messages[0]
        with pytest.raises(SchemaRegistryError, match="incompatible with an earlier schema") as caught:
            await registry.register_schema("a", STRING)
        assert caught.value.status == 409
        assert await registry.get_compatibility("a") is CompatibilityLevel.BACKWARD
        await registry.set_compatibility("NONE", "a")
        assert await registry.get_compatibility("a") is CompatibilityLevel.NONE
        assert (await registry.check_compatibility("a", STRING, version="all")).is_compatible
        assert (await registry.register_schema("a", STRING)).version == 2
        await registry.delete_compatibility("a")
        await registry.set_compatibility(CompatibilityLevel.FULL)
        assert await registry.get_compatibility("a") is CompatibilityLevel.FULL


async def test_references_are_found_in_their_order() -> None:
    async with running_registry() as (_, registry):
        city = await registry.register_schema("city", CITY)
        flight = Schema(
            '{"type":"record","name":"Flight","fields":[{"name":"to","type":"City"}]}',
            references=(SchemaReference("City", "city", city.version or 0),),
        )
        await registry.register_schema("flight", flight)
        day = Schema(
            '{"type":"record","name":"Day","fields":[{"name":"f","type":"Flight"},{"name":"c","type":"City"}]}',
            references=(SchemaReference("Flight", "flight", 1), SchemaReference("City", "city", 1)),
        )
        await registry.register_schema("day", day)
        assert await registry.get_references(day) == {"City": CITY, "Flight": flight}
        with pytest.raises(SchemaRegistryError, match="One or more references exist") as caught:
            await registry.delete_subject("city")
        assert caught.value.error_code == 42206


@pytest.mark.every_loop
async def test_a_thousand_serializations_at_once_make_one_request() -> None:
    async with running_registry() as (server, registry):
        writer, reader = AvroSerializer(registry, '"int"'), AvroDeserializer(registry)
        read: list[int] = []

        async def one(number: int) -> None:
            data = await finished(writer.serialize(number, context()))
            read.append(await finished(reader.deserialize(data, context())))

        async with anyio.create_task_group() as tasks:
            for number in range(1000):
                tasks.start_soon(one, number)
        assert sorted(read) == list(range(1000))
        assert server.requests == ["POST /subjects/flights-value/versions", "GET /schemas/ids/1"]


@pytest.mark.every_loop
async def test_the_task_that_asks_may_be_cancelled_and_the_others_get_the_schema() -> None:
    async with running_registry() as (server, registry):
        await SchemaRegistry(server.url).register_schema("a", INT)
        server.requests.clear()
        server.freeze()
        found: list[Schema] = []

        async def get() -> None:
            found.append(await registry.get_schema(1))

        async with anyio.create_task_group() as tasks:
            async with anyio.create_task_group() as cancelled:
                cancelled.start_soon(get)
                await received(server, 1)
                for _ in range(5):
                    tasks.start_soon(get)
                await anyio.wait_all_tasks_blocked()
                cancelled.cancel_scope.cancel()
            await received(server, 2)
            server.thaw()
        assert found == [INT] * 5
        assert server.requests == ["GET /schemas/ids/1"] * 2


async def test_tasks_that_share_a_request_share_its_error() -> None:
    async with running_registry() as (server, registry):
        server.freeze()
        errors: list[SchemaRegistryError] = []

        async def get() -> None:
            try:
                await registry.get_schema(7)
            except SchemaRegistryError as error:
                errors.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(get)
            await anyio.wait_all_tasks_blocked()
            server.thaw()
        assert [error.error_code for error in errors] == [40403] * 10
        assert len({id(error) for error in errors}) == 10
        assert server.requests == ["GET /schemas/ids/7"]


async def test_an_unexpected_error_of_a_request_has_its_cause_for_every_task(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = anyio.Event()

    async def fail(self: HttpTransport, request: RestRequest) -> None:
        await asked.wait()
        raise RecursionError("a bug")

    monkeypatch.setattr(HttpTransport, "send", fail)
    registry, causes = SchemaRegistry("http://localhost:1"), list[BaseException | None]()

    async def get() -> None:
        with pytest.raises(KafkaError, match="RecursionError") as caught:
            await registry.get_schema(7)
        causes.append(caught.value.__cause__)

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(get)
        await anyio.wait_all_tasks_blocked()
        asked.set()
    assert [type(cause) for cause in causes] == [RecursionError] * 2


async def test_a_registry_serves_several_event_loops() -> None:
    async with running_registry() as (_, registry):
        await registry.register_schema("a", INT)

        def elsewhere() -> Schema:
            registry.clear_caches()
            return anyio.run(registry.get_schema, 1)

        assert await anyio.to_thread.run_sync(elsewhere) == INT
        assert await registry.get_schema(1) == INT


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_what_may_succeed_later_is_tried_again(status: int) -> None:
    async with running_registry(max_retries=2) as (server, registry):
        server.fail(status, times=2)
        assert (await registry.register_schema("a", INT)).schema_id == 1
        assert len(server.requests) == 3


async def test_the_error_after_all_retries_names_the_request_the_registry_and_its_error() -> None:
    async with running_registry(max_retries=2) as (server, registry):
        server.fail(500, error_code=50001, message="Error in the backend data store", times=3)
        with pytest.raises(SchemaRegistryError) as caught:
            await registry.register_schema("a", INT)
        assert str(caught.value) == (
            f"POST /subjects/a/versions at {server.url}: HTTP status 500 (error code 50001): Error in the backend data "
            "store (3 attempts)"
        )
        assert (caught.value.status, caught.value.error_code) == (500, 50001)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
async def test_a_refusal_is_final(status: int) -> None:
    async with running_registry() as (server, registry):
        server.fail(status)
        with pytest.raises(SchemaRegistryError) as caught:
            await registry.register_schema("a", INT)
        assert caught.value.status == status
        assert len(server.requests) == 1


async def test_a_deletion_that_may_have_been_done_is_not_repeated() -> None:
    async with running_registry() as (server, registry):
        server.fail(503)
        with pytest.raises(SchemaRegistryError, match="HTTP status 503"):
            await registry.delete_subject("a")
        assert len(server.requests) == 1


async def test_another_registry_of_the_cluster_takes_over() -> None:
    async with SchemaRegistryServer() as gone:
        url = gone.url
    async with running_registry() as (server, _):
        registry = SchemaRegistry([url, server.url], **QUICK)
        await registry.register_schema("a", INT)
        server.fail(503)
        await registry.register_schema("b", INT)  # the one that has answered is asked first, and again
        assert len(server.requests) == 3
        both = SchemaRegistry(f"{server.url}, {server.url}/", max_retries=0)
        server.fail(500)
        assert await both.get_schema(1) == INT


async def test_the_registry_that_has_answered_is_asked_first() -> None:
    async with running_registry() as (first, _), SchemaRegistryServer() as second:
        registry = SchemaRegistry([first.url, second.url], **QUICK)
        first.fail(503)
        for _ in range(3):
            assert await registry.list_subjects() == ()
        assert (len(first.requests), len(second.requests)) == (1, 3)


async def test_a_registry_that_is_down_is_an_error_that_says_so() -> None:
    async with SchemaRegistryServer() as server:
        url = server.url
    registry = SchemaRegistry(url, max_retries=1, **QUICK)
    with pytest.raises(
        SchemaRegistryError, match=rf"GET /schemas/ids/1 at {url}: cannot connect: .*\(2 attempts\)"
    ) as caught:
        await registry.get_schema(1)
    assert caught.value.status is None


async def test_a_registry_that_is_down_at_first_is_used_when_it_is_up() -> None:
    async with SchemaRegistryServer() as server:
        port = int(server.url.rpartition(":")[2])
    registry = SchemaRegistry(server.url, max_retries=0)
    writer = AvroSerializer(registry, '"int"')
    with pytest.raises(SchemaRegistryError, match="cannot connect"):
        await finished(writer.serialize(1, context()))
    async with SchemaRegistryServer(port):
        assert await finished(writer.serialize(1, context())) == b"\x00\x00\x00\x00\x01\x02"


async def test_a_slow_registry_ends_an_attempt_and_then_the_call() -> None:
    async with running_registry(request_timeout_ms=20, max_retries=1) as (server, registry):
        server.freeze()
        with pytest.raises(SchemaRegistryError, match=r"no response within request_timeout_ms=20 \(2 attempts\)"):
            await registry.get_schema(1)
        endless = SchemaRegistry(server.url, default_api_timeout_ms=30)
        with pytest.raises(SchemaRegistryError, match="no response within default_api_timeout_ms=30"):
            await endless.get_schema(1)


async def test_a_call_ends_within_its_time_and_names_the_last_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: HttpTransport, request: RestRequest, url: str) -> None:
        raise http_transport._AttemptFailed(SchemaRegistryError(f"{request}: busy", 503), True)

    monkeypatch.setattr(HttpTransport, "_exchange", refuse)
    registry = SchemaRegistry("http://localhost:1", default_api_timeout_ms=20, retries_wait_ms=60_000)
    with pytest.raises(SchemaRegistryError) as caught:
        await registry.get_schema(1)
    ending = "until default_api_timeout_ms=20 had passed"
    assert str(caught.value) == f"GET /schemas/ids/1: busy (1 attempt, {ending})"
    assert caught.value.status == 503


@pytest.mark.parametrize("way", ["url", "setting", "token", "provider", "async provider"])
async def test_logins_are_accepted_and_never_shown(way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "s3cr3t-never-shown"

    async def provide() -> str:
        return secret

    async with SchemaRegistryServer(users={"alice": secret}, bearer_tokens=[secret]) as server:
        ways: dict[str, dict[str, Any]] = {
            "setting": {"basic_auth_user_info": f"alice:{secret}"},
            "token": {"bearer_auth_token": secret},
            "provider": {"bearer_auth_token_provider": lambda: secret},
            "async provider": {"bearer_auth_token_provider": provide},
        }
        options = ways.get(way, {})
        url = server.url.replace("//", f"//alice:{secret}@") if way == "url" else server.url
        registry = SchemaRegistry(url, **options)
        assert (await registry.register_schema("a", INT)).schema_id == 1
        with pytest.raises(SchemaRegistryError) as caught:
            await registry.get_schema(9)
        with pytest.raises(SchemaRegistryError, match=r"401.*set basic_auth_user_info or bearer_auth_token"):
            await SchemaRegistry(server.url).get_schema(1)
    for text in (str(caught.value), repr(registry), repr(registry._config), caplog.text):
        assert secret not in text


@pytest.mark.parametrize("token", ["Zq7-token\n", "Zq7-token\r\nX: y", "Zq7 token", "Zq7-tök\xe9n", "Zq7\0", ""])
async def test_a_token_that_no_header_can_have_is_not_shown(token: str) -> None:
    with pytest.raises(ConfigError, match="bearer_auth_token") as refused:
        SchemaRegistry("http://localhost:1", bearer_auth_token=token)
    registry = SchemaRegistry("http://localhost:1", bearer_auth_token_provider=lambda: token)
    with pytest.raises(SchemaRegistryError, match="must return a token") as failed:
        await registry.get_schema(1)
    assert "Zq7" not in f"{refused.value}{failed.value}"
    assert failed.value.retriable  # it says nothing of the schema, and the next token may be a good one


async def test_the_text_of_a_providers_error_is_not_shown() -> None:
    tokens = dict[str, str]()
    registry = SchemaRegistry("http://localhost:1", bearer_auth_token_provider=lambda: tokens["Zq7-key"], max_retries=0)
    with pytest.raises(SchemaRegistryError, match=r"bearer_auth_token_provider has failed with KeyError$") as failed:
        await registry.get_schema(1)
    assert "Zq7" not in str(failed.value)
    assert isinstance(failed.value.__cause__, KeyError)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_provider_that_awaits_a_cancelled_task_cancels_nobody(anyio_backend: str) -> None:
    refresh = asyncio.create_task(asyncio.Event().wait())
    refresh.cancel()

    async def token() -> str:
        await refresh
        return "never"

    registry = SchemaRegistry("http://localhost:1", bearer_auth_token_provider=token, max_retries=0)
    with pytest.raises(SchemaRegistryError, match="_provider has failed with CancelledError") as caught:
        await registry.list_subjects()
    assert caught.value.retriable


async def test_tls_is_verified_with_the_given_authority_and_a_client_certificate() -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    own = authority.issue_cert("client")
    pem = authority.cert_pem.bytes().decode()
    async with SchemaRegistryServer(ssl_context=context) as server:
        registry = SchemaRegistry(
            server.url,
            ssl_ca_pem=pem,
            ssl_certificate_pem=own.cert_chain_pems[0].bytes().decode(),
            ssl_key_pem=own.private_key_pem.bytes().decode(),
        )
        assert (await registry.register_schema("a", INT)).schema_id == 1
        with pytest.raises(SchemaRegistryError, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
            await SchemaRegistry(server.url, max_retries=0).get_schema(1)


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [
        ("", {}, "url must be like"),
        ("localhost:8081", {}, "url must be like"),
        ("ftp://localhost", {}, "url must be like"),
        ("http://localhost:port", {}, "url must be like"),
        ([], {}, "at least one"),
        ([1], {}, "url must be a string"),
        ("http://a", {"max_retries": -1}, "max_retries must be"),
        ("http://a", {"request_timeout_ms": 0}, "request_timeout_ms must be"),
        ("http://a", {"latest_cache_ttl_sec": float("nan")}, "latest_cache_ttl_sec must be"),
        ("http://a", {"basic_auth_user_info": "alice"}, "must be 'user:password'"),
        ("http://a", {"basic_auth_user_info": "a:b", "bearer_auth_token": "c"}, "two ways to log in"),
        ("http://a:Zq7@h", {"bearer_auth_token": "c"}, "url has a login, and bearer_auth_token is another"),
        ("http://a:Zq7@h", {"bearer_auth_token_provider": str}, "url has a login, and bearer_auth_token_provider is"),
        ("http://a:Zq7@h", {"basic_auth_user_info": "a:b"}, "url has a login, and basic_auth_user_info is another"),
        ("http://a:Zq7@h,http://b:Zq7@i", {}, "url has two different logins"),
        ("http://a", {"proxy": "socks5://a:1"}, "proxy must be http://"),
        ("https://a", {"ssl_ca_location": "/nowhere.pem"}, "ssl_ca_location"),
        ("http://a", {"ssl_key_pem": "x"}, "ssl_key_pem needs the certificate"),
        ("http://a", {"ssl_context": 1}, "ssl_context"),
        ("http://a", {"max_retry": 1}, "unknown setting 'max_retry'.*max_retries"),
    ],
)
def test_wrong_settings_are_refused(url: Any, options: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        SchemaRegistry(url, **options)


async def test_calls_without_an_event_loop_are_the_same() -> None:
    async with running_registry() as (server, _):

        def use() -> None:
            registry = blocking.SchemaRegistry(server.url, **QUICK)
            assert registry.register_schema("a", INT).schema_id == 1
            assert registry.get_schema(1) == INT
            assert registry.lookup_schema("a", INT).version == registry.get_version("a").version == 1
            assert registry.list_subjects() == ("a",)
            assert registry.list_versions("a") == (1,)
            assert registry.get_references(INT) == {}
            assert registry.check_compatibility("a", INT).is_compatible
            registry.set_compatibility("FULL", "a")
            assert registry.get_compatibility("a") is CompatibilityLevel.FULL
            registry.delete_compatibility("a")
            with pytest.raises(SchemaRegistryError, match="Schema 5 not found"):
                registry.get_schema(5)
            data = anyio.run(finished, AvroSerializer(registry.asynchronous, '"int"').serialize(1, context()))
            assert data == b"\x00\x00\x00\x00\x01\x02"
            assert registry.delete_version("a", 1) == 1
            registry.clear_caches()
            assert registry.delete_subject("a", permanent=True) == (1,)
            assert repr(registry) == f"<SchemaRegistry {server.url}>"

        await anyio.to_thread.run_sync(use)
        assert not [thread for thread in threading.enumerate() if "schema-registry" in thread.name]


def test_the_blocking_registry_has_every_call() -> None:
    def calls(cls: type) -> dict[str, list[str]]:
        functions = inspect.getmembers(cls, inspect.isfunction)
        return {name: [*inspect.signature(one).parameters] for name, one in functions if name[0] != "_"}

    ours = calls(SchemaRegistry)
    del ours["cached_latest_version"]  # for serializers
    assert calls(blocking.SchemaRegistry) == ours


async def test_wrong_arguments_are_refused() -> None:
    registry: Any = SchemaRegistry("http://localhost:1")
    calls: list[tuple[Any, str]] = [
        (lambda: registry.register_schema("", INT), "subject must be"),
        (lambda: registry.register_schema("a", '"int"'), "schema must be a Schema"),
        (lambda: registry.register_schema("a", INT, normalize=1), "normalize must be"),
        (lambda: registry.lookup_schema(1, INT), "subject must be"),
        (lambda: registry.get_schema(-1), "schema_id must be"),
        (lambda: registry.get_schema(""), "schema_id must be"),
        (lambda: registry.get_schema(1, schema_format="x"), "schema_format must be"),
        (lambda: registry.get_version("a", 0), "version must be"),
        (lambda: registry.get_version("a", "all"), "version must be"),
        (lambda: registry.check_compatibility("a", INT, version=True), "version must be"),
        (lambda: registry.delete_version("a", "x"), "version must be"),
        (lambda: registry.delete_subject("a", permanent=1), "permanent must be"),
        (lambda: registry.set_compatibility("BACKWARDS"), "level must be"),
        (lambda: registry.list_subjects(prefix=1), "prefix must be"),
        (lambda: registry.list_versions("a", deleted="no"), "deleted must be"),
        (lambda: registry.get_references("x"), "schema must be a Schema"),
    ]
    for call, reason in calls:
        with pytest.raises(UsageError, match=reason):
            await call()
    wrong: Any = None
    with pytest.raises(UsageError, match="the text of a schema"):
        Schema(wrong)
    with pytest.raises(UsageError, match="schema_type must be"):
        Schema("x", wrong)
    with pytest.raises(UsageError, match="references of a schema"):
        Schema("x", SchemaType.AVRO, ["x"])
