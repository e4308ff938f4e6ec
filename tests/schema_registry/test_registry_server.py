"""The registry in memory: statuses, error codes and JSON of Confluent's REST API."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx2
import pytest

from aiokafkawire.errors import SchemaRegistryError, UsageError
from aiokafkawire.schema_registry import SchemaRegistry
from aiokafkawire.testing import SchemaRegistryServer

pytestmark = pytest.mark.anyio

INT, LONG, STRING = ({"schema": f'"{name}"'} for name in ("int", "long", "string"))
CITY = '{"type":"record","name":"City","fields":[{"name":"name","type":"string"}]}'


class Caller:
    """Makes requests, and keeps one connection."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body).encode()
        response = await self._client.request(method, path, content=content)
        assert response.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
        return response.status_code, response.json()

    async def refused(self, method: str, path: str, body: Any = None) -> int:
        """The error code of a refused request, whose status it begins with."""
        status, answer = await self(method, path, body)
        assert answer.keys() == {"error_code", "message"}
        assert str(answer["error_code"]).startswith(str(status))
        code: int = answer["error_code"]
        return code


async def test_versions_and_ids() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        assert await call("GET", "/") == (200, {})
        assert await call("GET", "/subjects") == (200, [])
        status, first = await call("POST", "/subjects/a/versions", INT)
        assert (status, first["id"], first["version"], len(first["guid"])) == (200, 1, 1, 36)
        assert (await call("POST", "/subjects/a/versions", INT))[1] == first
        assert (await call("POST", "/subjects/a/versions", LONG))[1]["id"] == 2
        assert (await call("POST", "/subjects/b/versions", {"schema": ' "int"'}))[1]["id"] == 1
        described = {"subject": "a", "version": 2, "id": 2, "schema": '"long"'}
        for path in ("/subjects/a/versions/2", "/subjects/a/versions/latest", "/subjects/a/versions/-1"):
            status, answer = await call("GET", path)
            assert described.items() <= answer.items()
        assert described.items() <= (await call("POST", "/subjects/a", LONG))[1].items()
        assert await call("GET", "/subjects/a/versions/2/schema") == (200, "long")
        assert await call("GET", "/subjects/a/versions") == (200, [1, 2])
        assert await call("GET", "/subjects?offset=1&limit=5") == (200, ["b"])
        assert (await call("GET", "/schemas/ids/2"))[1]["schema"] == '"long"'
        assert (await call("GET", f"/schemas/guids/{first['guid']}"))[1]["id"] == 1
        assert await call("GET", "/schemas/ids/1/subjects") == (200, ["a", "b"])
        assert await call("GET", "/schemas/ids/1/versions") == (
            200,
            [{"subject": "a", "version": 1}, {"subject": "b", "version": 1}],
        )
        assert await call("GET", "/schemas/ids/1/schema") == (200, "int")
        assert await call("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])


async def test_refusals() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        await call("POST", "/subjects/a/versions", INT)
        for code, method, path, body in (
            (40401, "GET", "/subjects/x/versions", None),
            (40401, "POST", "/subjects/x", INT),
            (40401, "DELETE", "/subjects/x", None),
            (40402, "GET", "/subjects/a/versions/2", None),
            (40403, "GET", "/schemas/ids/2", None),
            (40402, "POST", "/compatibility/subjects/x/versions/1", INT),
            (40403, "GET", "/schemas/ids/-1", None),
            (40403, "GET", "/schemas/guids/x", None),
            (40403, "POST", "/subjects/a", LONG),
            (40405, "DELETE", "/subjects/a?permanent=true", None),
            (40407, "DELETE", "/subjects/a/versions/1?permanent=true", None),
            (40408, "GET", "/config/a", None),
            (40401, "DELETE", "/config/a", None),
            (40401, "DELETE", "/mode/a", None),
            (40409, "GET", "/mode/a", None),
            (40901, "POST", "/subjects/a/versions", STRING),
            (40901, "POST", "/subjects/a/versions", {"schema": "{}", "schemaType": "JSON"}),
            (42201, "POST", "/subjects/a/versions", {"schema": "{"}),
            (42201, "POST", "/subjects/a/versions", {"schema": ""}),
            (42201, "POST", "/subjects/a/versions", {"schema": "int"}),
            (42201, "POST", "/subjects/a", {"schema": "{"}),
            (42201, "POST", "/compatibility/subjects/a/versions/latest", {"schema": "{"}),
            (42201, "POST", "/subjects/b/versions", {"schema": "[]", "schemaType": "JSON"}),
            (42201, "POST", "/subjects/b/versions", {"schema": "{}", "schemaType": "XML"}),
            (42202, "GET", "/subjects/a/versions/0", None),
            (42202, "GET", "/subjects/a/versions/x", None),
            (42203, "PUT", "/config", {"compatibility": "x"}),
            (42204, "PUT", "/mode", {"mode": "x"}),
            (400, "POST", "/subjects/a/versions", []),
            (400, "POST", "/subjects/a/versions", {"schema": {"type": "int"}}),
            (404, "GET", "/schemas/ids/x", None),
            (404, "GET", "/schemas/ids/99999999999", None),
            (404, "GET", "/subjects?offset=x", None),
            (404, "GET", "/nothing", None),
            (404, "PATCH", "/nothing", None),
            (405, "PATCH", "/subjects/a", None),
            (405, "GET", "/subjects/a", None),
            (405, "PUT", "/subjects", None),
            (405, "POST", "/config", {}),
        ):
            assert await call.refused(method, path, body) == code, (method, path)
        missing = {"schema": '"int"', "references": [{"name": "x", "subject": "x", "version": 1}]}
        assert await call.refused("POST", "/subjects/b/versions", missing) == 42201
        assert await call.refused("POST", "/subjects/b/versions", {"schema": "x", "references": [{}]}) == 42201


async def test_deletion_is_soft_before_it_is_hard() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        await call("POST", "/subjects/a/versions", INT)
        await call("POST", "/subjects/a/versions", LONG)
        assert await call("DELETE", "/subjects/a/versions/1") == (200, 1)
        assert await call.refused("DELETE", "/subjects/a/versions/1") == 40406
        assert await call("GET", "/subjects/a/versions") == (200, [2])
        assert await call("GET", "/subjects/a/versions?deleted=true") == (200, [1, 2])
        assert (await call("GET", "/subjects/a/versions/1?deleted=true"))[0] == 200
        assert (await call("GET", "/schemas/ids/1"))[0] == 200
        assert (await call("POST", "/subjects/a?deleted=true", INT))[1]["version"] == 1
        assert await call("DELETE", "/subjects/a/versions/1?permanent=true") == (200, 1)
        assert await call.refused("GET", "/schemas/ids/1") == 40403
        assert await call("DELETE", "/subjects/a") == (200, [2])
        assert await call.refused("DELETE", "/subjects/a") == 40404
        assert await call("GET", "/subjects?deletedOnly=true") == (200, ["a"])
        answer = (await call("POST", "/subjects/a/versions", LONG))[1]  # the same schema, and a new version
        assert (answer["id"], answer["version"]) == (2, 3)
        assert await call("DELETE", "/subjects/a") == (200, [3])
        assert await call("GET", "/subjects/a/versions?deleted=true") == (200, [3])  # the deleted version has gone
        assert await call("PUT", "/config/a", {"compatibility": "FULL"}) == (200, {"compatibility": "FULL"})
        for path in ("/subjects/a/versions/latest?deleted=true", "/subjects/a/versions/-1?deleted=true"):
            assert await call.refused("GET", path) == 40402
        assert await call.refused("DELETE", "/subjects/a/versions/latest") == 40402
        assert (await call("GET", "/config/a"))[0] == 200
        assert await call("DELETE", "/subjects/a?permanent=true") == (200, [3])
        assert await call.refused("GET", "/config/a") == 40408
        assert await call("GET", "/subjects?deleted=true") == (200, [])
        assert (await call("POST", "/subjects/a/versions", LONG))[1]["id"] == 3  # nobody had the schema any more


async def test_what_is_referenced_cannot_be_deleted() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        await call("POST", "/subjects/city/versions", {"schema": CITY})
        trip = {
            "schema": '{"type":"record","name":"Trip","fields":[{"name":"to","type":"City"}]}',
            "references": [{"name": "City", "subject": "city", "version": 1}],
        }
        assert (await call("POST", "/subjects/trip/versions", trip))[0] == 200
        assert (await call("GET", "/subjects/trip/versions/1"))[1]["references"] == trip["references"]
        assert await call("GET", "/subjects/city/versions/1/referencedby") == (200, [2])
        assert await call.refused("DELETE", "/subjects/city") == 42206
        assert await call.refused("DELETE", "/subjects/city?permanent=true") == 42206
        assert await call.refused("DELETE", "/subjects/city/versions/1") == 42206
        await call("DELETE", "/subjects/trip")
        assert await call("DELETE", "/subjects/city") == (200, [1])


@pytest.mark.parametrize(
    ("level", "before", "accepted"),
    [
        ("NONE", "int", ["int", "long", "float", "string"]),
        ("BACKWARD", "long", ["long", "float"]),
        ("BACKWARD_TRANSITIVE", "long", ["long", "float"]),
        ("FORWARD", "long", ["int", "long"]),
        ("FORWARD_TRANSITIVE", "long", ["int", "long"]),
        ("FULL", "long", ["long"]),
        ("FULL_TRANSITIVE", "long", ["long"]),
    ],
)
async def test_levels_decide_what_is_compatible(level: str, before: str, accepted: list[str]) -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        await call("POST", "/subjects/a/versions", {"schema": f'"{before}"'})
        await call("PUT", "/config/a", {"compatibility": level})
        found = []
        for name in ("int", "long", "float", "string"):
            body = {"schema": f'"{name}"'}
            latest = (await call("POST", "/compatibility/subjects/a/versions/latest?verbose=true", body))[1]
            every = (await call("POST", "/compatibility/subjects/a/versions", body))[1]
            assert latest["is_compatible"] is every["is_compatible"] is not bool(latest["messages"])
            if latest["is_compatible"]:
                found.append(name)
        assert found == accepted


async def test_transitive_levels_look_at_every_version() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        fields = ['{"name":"a","type":"int"}', "", '{"name":"a","type":"string","default":""}']
        first, second, third = ({"schema": f'{{"type":"record","name":"R","fields":[{one}]}}'} for one in fields)
        await call("POST", "/subjects/a/versions", first)
        await call("POST", "/subjects/a/versions", second)
        await call("PUT", "/config", {"compatibility": "BACKWARD_TRANSITIVE"})
        assert await call.refused("POST", "/subjects/a/versions", third) == 40901
        assert (await call("POST", "/compatibility/subjects/a/versions", third))[1] == {"is_compatible": False}
        await call("PUT", "/config", {"compatibility": "BACKWARD"})
        assert (await call("POST", "/subjects/a/versions", third))[0] == 200


async def test_config_and_mode_are_of_all_or_of_a_subject() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        assert await call("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
        assert await call("PUT", "/config/a", {"compatibility": "none"}) == (200, {"compatibility": "NONE"})
        assert await call("GET", "/config/a") == (200, {"compatibilityLevel": "NONE"})
        assert await call("GET", "/config/b?defaultToGlobal=true") == (200, {"compatibilityLevel": "BACKWARD"})
        assert await call("DELETE", "/config/a") == (200, {"compatibilityLevel": "NONE"})
        assert await call("GET", "/mode") == (200, {"mode": "READWRITE"})
        assert await call("PUT", "/mode/a", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
        assert await call("GET", "/mode/a") == (200, {"mode": "READONLY"})
        assert await call.refused("POST", "/subjects/a/versions", INT) == 42205
        assert await call.refused("PUT", "/config/a", {"compatibility": "FULL"}) == 42205
        assert await call("DELETE", "/mode/a") == (200, {"mode": "READONLY"})
        assert (await call("POST", "/subjects/a/versions", INT))[0] == 200
        assert await call("PUT", "/mode", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
        for path in ("/subjects/a", "/subjects/a/versions/1", "/config"):
            assert await call.refused("DELETE", path) == 42205
        assert await call("DELETE", "/mode") == (200, {"mode": "READONLY"})
        assert await call("DELETE", "/mode") == (200, {"mode": "READWRITE"})
        assert await call("PUT", "/config", {"compatibility": "NONE"}) == (200, {"compatibility": "NONE"})
        assert await call("DELETE", "/config") == (200, {"compatibilityLevel": "NONE"})
        assert await call("DELETE", "/config") == (200, {"compatibilityLevel": "BACKWARD"})


async def test_schemas_are_imported_into_empty_subjects() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        await call("POST", "/subjects/a/versions", INT)
        for path in ("/mode", "/mode/a"):
            assert await call.refused("PUT", path, {"mode": "IMPORT"}) == 42205
        assert await call("PUT", "/mode/b", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
        assert await call("PUT", "/mode?force=true", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})


async def test_what_cannot_be_compared_is_compatible_or_not_valid() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        for path in ("latest", "-1", "latest?verbose=true", ""):
            status, answer = await call("POST", f"/compatibility/subjects/x/versions/{path}", INT)
            assert (status, answer["is_compatible"]) == (200, True)
        await call("POST", "/subjects/a/versions", INT)
        for body in ({"schema": "{"}, {"schema": ""}, {"schema": '"int"', "schemaType": "XML"}):
            for path in ("/latest", "/1", ""):
                status, answer = await call("POST", f"/compatibility/subjects/a/versions{path}?verbose=true", body)
                assert (status, answer["is_compatible"], len(answer["messages"])) == (200, False, 1)
        assert "details: it is not JSON" in str(
            await call("POST", "/compatibility/subjects/a/versions?verbose=true", {"schema": "{"})
        )
        assert await call.refused("POST", "/compatibility/subjects/a/versions?verbose=true", []) == 400


SAME: list[tuple[str, str, str]] = [
    ("AVRO", '"int"', '{"type": "int"}'),
    ("AVRO", '{"type":"int","a":"1","b":"2"}', '{"b":"2","type":"int","a":"1"}'),
    ("AVRO", '{"type":"enum","name":"A","namespace":"n","symbols":[]}', '{"type":"enum","name":"n.A","symbols":[]}'),
    ("AVRO", '{"type":"array","items":"int"}', '{"type":"array","items":{"type":"int"}}'),
    (
        "AVRO",
        '{"type":"fixed","name":"A","size":1,"doc":"\u00e9"}',
        r'{"name":"A","size":1,"doc":"\u00e9","type":"fixed"}',
    ),
    (
        "AVRO",
        '{"type":"record","name":"n.A","aliases":["B"],"fields":[{"name":"a","type":["null","A"],"order":"ascending"}]}',
        '{"name":"A","namespace":"n","aliases":["n.B"],"fields":[{"type":["null",{"type":"n.A"}],"name":"a"}],"type":"record"}',
    ),
    ("JSON", '{"type":"object","a":[1,2]}', ' { "type" : "object", "a": [1, 2] } '),
    (
        "PROTOBUF",
        'syntax="proto3";message A{string a=1;}',
        'syntax = "proto3"; /* a */\nmessage A { // b\n string a = 1; }\n',
    ),
]
OTHER: list[tuple[str, str, str]] = [
    ("AVRO", '"int"', '{"type":"int","logicalType":"date"}'),
    ("AVRO", '{"type":"record","name":"A","fields":[]}', '{"type":"record","name":"A","doc":"a","fields":[]}'),
    ("AVRO", '{"type":"record","name":"A","fields":[]}', '{"type":"record","name":"A","aliases":["B"],"fields":[]}'),
    ("AVRO", '{"type":"record","name":"A","fields":[]}', '{"type":"record","name":"n.A","fields":[]}'),
    ("AVRO", '{"type":"enum","name":"A","symbols":["B","C"]}', '{"type":"enum","name":"A","symbols":["C","B"]}'),
    ("JSON", '{"type":"object","title":"a"}', '{"title":"a","type":"object"}'),
    ("JSON", '{"a":{"b":1,"c":1}}', '{"a":{"c":1,"b":1}}'),
    ("PROTOBUF", 'message A { string a = 1 [default = "b c"]; }', 'message A { string a = 1 [default = "b  c"]; }'),
    ("PROTOBUF", 'message A { string a = 1 [default = "//b"]; }', 'message A { string a = 1 [default = "//c"]; }'),
    ("PROTOBUF", "message A { int32 a = 1; int32 b = 2; }", "message A { int32 b = 2; int32 a = 1; }"),
]


@pytest.mark.parametrize(
    ("is_same", "schema_type", "first", "second"),
    [*((True, *each) for each in SAME), *((False, *each) for each in OTHER)],
)
async def test_what_means_the_same_has_one_id(is_same: bool, schema_type: str, first: str, second: str) -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        await call("PUT", "/config", {"compatibility": "NONE"})
        ids = []
        for text in (first, second):
            status, answer = await call("POST", "/subjects/a/versions", {"schema": text, "schemaType": schema_type})
            assert status == 200, answer
            ids.append(answer["id"])
        assert ids == ([1, 1] if is_same else [1, 2])
        assert (await call("POST", "/subjects/a", {"schema": second, "schemaType": schema_type}))[1]["id"] == ids[1]


async def test_normal_forms_of_json_schemas_have_their_keys_in_order() -> None:
    async with SchemaRegistryServer() as server, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        call = Caller(client)
        for text in ('{"type":"object","title":"a"}', '{"title":"a","type":"object"}'):
            body = {"schema": text, "schemaType": "JSON"}
            assert (await call("POST", "/subjects/a/versions?normalize=true", body))[1]["id"] == 1
            assert (await call("POST", "/subjects/a?normalize=true", body))[1]["id"] == 1
        assert await call("GET", "/subjects/a/versions/1/schema") == (200, {"title": "a", "type": "object"})


async def test_older_registries_give_ids_alone() -> None:
    async with (
        SchemaRegistryServer(gives_guids=False) as server,
        httpx2.AsyncClient(base_url=server.url, trust_env=False) as client,
    ):
        call = Caller(client)
        assert await call("POST", "/subjects/a/versions", INT) == (200, {"id": 1})
        assert await call("GET", "/schemas/ids/1") == (200, {"schema": '"int"'})
        assert await call.refused("GET", "/schemas/guids/x") == 404


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"port": -1}, "port must be"),
        ({"host": ""}, "host must be"),
        ({"gives_guids": 1}, "gives_guids must be"),
        ({"bearer_tokens": "abc"}, "bearer_tokens must be"),
    ],
)
def test_wrong_arguments_are_refused(options: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        SchemaRegistryServer(**options)
    server = SchemaRegistryServer()
    wrong: list[dict[str, Any]] = [{"status": 200}, {"status": 500, "times": 0}, {"status": 500, "error_code": -1}]
    for arguments in wrong:
        with pytest.raises(UsageError):
            server.fail(**arguments)


@pytest.mark.parametrize("message", ["", "busy"])
async def test_it_fails_with_statuses_that_have_no_name(message: str) -> None:
    async with SchemaRegistryServer() as server:
        registry = SchemaRegistry(server.url, max_retries=0)
        server.fail(520, message=message)
        with pytest.raises(SchemaRegistryError, match=f"HTTP status 520: {message or 'HTTP status 520'}"):
            await registry.list_subjects()
        assert await registry.list_subjects() == ()


async def test_strange_requests_do_not_end_it() -> None:
    endless = b'{"schema": "x", "references": [{"name": "a", "subject": "b", "version": 1e999}]}'
    async with (
        SchemaRegistryServer() as server,
        httpx2.AsyncClient(base_url=server.url, trust_env=False) as client,
    ):
        assert (await client.head("/subjects")).status_code == 405
        assert (await client.post("/subjects/a/versions", content=endless)).status_code == 422
        assert (await client.get("/subjects")).json() == []


@pytest.mark.parametrize(
    ("target", "status"),
    [("//[", b"400"), (f"/subjects/a/versions/{'9' * 5000}", b"422"), ("//a/subjects?x=[", b"200")],
)
async def test_strange_targets_do_not_end_it(target: str, status: bytes) -> None:
    async with SchemaRegistryServer() as server:
        for _ in range(2):
            async with await anyio.connect_tcp("127.0.0.1", int(server.url.rpartition(":")[2])) as stream:
                await stream.send(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                assert (await stream.receive()).split()[1] == status


def test_an_address_of_ipv6_is_in_brackets_in_the_url() -> None:
    assert SchemaRegistryServer(8081, host="::1").url == "http://[::1]:8081"


async def test_a_taken_port_is_an_error_and_leaves_nothing() -> None:
    async with SchemaRegistryServer() as server:
        with pytest.raises(OSError, match=r"in use|already"):
            async with SchemaRegistryServer(int(server.url.rpartition(":")[2])):
                pass
        assert await SchemaRegistry(server.url).list_subjects() == ()
