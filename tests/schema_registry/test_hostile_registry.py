"""Registries that answer with something else, or not at all; and libraries that are not installed."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from support.schema_registries import QUICK, context, finished

from aiokafkawire.errors import SchemaMismatch, SchemaRegistryError, UsageError
from aiokafkawire.schema_registry import AvroDeserializer, AvroSerializer, Schema, SchemaRegistry, SchemaType
from aiokafkawire.schema_registry.json_codec import parse_json_schema
from aiokafkawire.schema_registry.rest_messages import RestRequest

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def answering(*answers: bytes, received: list[bytes] | None = None) -> AsyncIterator[str]:
    """The URL of a server that sends these bytes to one connection after the other, the last to all others.

    ``received`` gets the beginning of each request.
    """
    left = list(answers)

    async def serve(stream: SocketStream) -> None:
        async with stream:
            with anyio.move_on_after(20):
                request = await stream.receive()
                if received is not None:
                    received.append(request)
                await stream.send(left.pop(0) if len(left) > 1 else left[0])

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        with anyio.fail_after(50):
            yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "the response is not a schema registry's|disconnected"),
        (b"\x00\x00\x00\x04kafka", "the response is not a schema registry's"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "not a schema registry's|incomplete|closed"),
        (http(b"<html>hello</html>"), "the response is not a schema registry's: b'<html>hello</html>'; check the URL"),
        (http(b"[]"), "the response is not a schema registry's"),
        (http(b"null"), "the response is not a schema registry's"),
        (http(b"{}"), "the response is not a schema registry's"),
        (http(b'{"schema": 5}'), "the response is not a schema registry's"),
        (http(b'{"schema": ""}'), "the response is not a schema registry's"),
        (http(b'{"schema": "x", "schemaType": "XML"}'), "the response is not a schema registry's"),
        (http(b'{"schema": "x", "references": [{}]}'), "the response is not a schema registry's"),
        (http(b"[" * 100_000), "the response is not a schema registry's"),
        (http(b"\xff\xfe", "404 Not Found"), "HTTP status 404: "),
        (http(b"moved", "302 Found", "Location: http://127.0.0.1:1/"), "HTTP status 302: moved"),
        (http(b'{"error_code": "x", "message": 5}', "422 No"), "HTTP status 422: 5"),
        (http(b"[]", "422 No"), r"HTTP status 422: \[\]"),
        (http(b"x", "200 OK", "Content-Encoding: gzip"), "the response is not a schema registry's"),
    ],
)
async def test_what_is_no_schema_is_one_error(answer: bytes, reason: str) -> None:
    async with answering(answer) as url:
        registry = SchemaRegistry(url, max_retries=1, **QUICK)
        with pytest.raises(SchemaRegistryError, match=reason):
            await registry.get_schema(1)


@pytest.mark.parametrize("answer", [b"{}", b"[1]", b'{"id": "1"}', b'{"id": -1}', b'{"id": true}'])
async def test_what_is_no_id_is_one_error(answer: bytes) -> None:
    async with answering(http(answer)) as url:
        registry = SchemaRegistry(url, **QUICK)
        with pytest.raises(SchemaRegistryError, match="the response is not a schema registry's"):
            await registry.register_schema("a", Schema('"int"'))


async def test_a_connection_that_is_lost_is_opened_again() -> None:
    async with answering(b"", http(b'{"schema": "\\"int\\""}')) as url:
        assert (await SchemaRegistry(url, **QUICK).get_schema(1)).text == '"int"'


async def test_an_empty_response_is_no_list() -> None:
    async with answering(http(b"")) as url:
        with pytest.raises(SchemaRegistryError, match="the response is not a schema registry's"):
            await SchemaRegistry(url, **QUICK).list_subjects()


@pytest.mark.parametrize("messages", [b"5", b"true", b'"no"', b'{"a": 1}'])
async def test_differences_that_are_no_list_are_one_error(messages: bytes) -> None:
    async with answering(http(b'{"is_compatible": false, "messages": %s}' % messages)) as url:
        with pytest.raises(SchemaRegistryError, match="the response is not a schema registry's"):
            await SchemaRegistry(url, **QUICK).check_compatibility("a", Schema('"int"'))


@pytest.mark.parametrize(
    "answer",
    [
        http(b"", "302 Found", "Location: https://login.example.org/"),
        http(b"sent to a port of TLS", "400 Bad Request"),
        http(b'{"error_code": 50101, "message": "no"}', "501 Not Implemented"),
        http(b"<html>error code: 520</html>", "520 No"),
        http(b""),
        http(b"{}"),
        http(b"null"),
        http(b'{"status": "starting"}'),
    ],
)
async def test_what_answers_in_the_place_of_a_registry_says_nothing_of_a_schema(answer: bytes) -> None:
    async with answering(answer) as url:
        with pytest.raises(SchemaRegistryError) as failed:
            await SchemaRegistry(url, max_retries=0).get_schema(1)
    assert failed.value.retriable


@pytest.mark.parametrize(
    "answer",
    [
        http(b'{"error_code": 40403, "message": "Schema 1 not found"}', "404 Not Found"),
        http(b'{"error_code": 40403}', "404 Not Found"),
        http(b'{"error_code": 42201, "message": "no"}', "422 No"),
        http(b'{"schema": "x", "schemaType": "XML"}'),
    ],
)
async def test_what_a_registry_says_of_a_schema_is_final(answer: bytes) -> None:
    async with answering(answer) as url:
        with pytest.raises(SchemaRegistryError) as failed:
            await SchemaRegistry(url, max_retries=0).get_schema(1)
    assert not failed.value.retriable


async def test_a_404_of_something_else_does_not_say_that_the_subject_lacks_the_schema() -> None:
    async with answering(http(b"no such service", "404 Not Found")) as url:
        writer = AvroSerializer(SchemaRegistry(url, max_retries=0), '"int"', auto_register=False)
        with pytest.raises(SchemaRegistryError, match=r"HTTP status 404: no such service$") as failed:
            await finished(writer.serialize(1, context()))
    assert failed.value.retriable


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_whoever_is_redirected_to_is_not_asked(status: str) -> None:
    asked = list[bytes]()
    async with (
        answering(http(b"{}"), received=asked) as other,
        answering(http(b"", status, f"Location: {other}/schemas/ids/1")) as url,
    ):
        registry = SchemaRegistry(url, basic_auth_user_info="me:Zq7-password", max_retries=1, **QUICK)
        with pytest.raises(SchemaRegistryError, match=f"HTTP status {status[:3]}"):
            await registry.get_schema(1)
    assert asked == []


async def test_only_the_settings_say_who_logs_in_and_by_which_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1\nlogin me\npassword Zq7-password\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    asked = list[bytes]()
    async with answering(http(b'{"schema": "\\"int\\""}'), received=asked) as url:
        await SchemaRegistry(url, max_retries=0).get_schema(1)
    (request,) = asked
    assert request.startswith(b"GET /schemas/ids/1 HTTP/1.1")
    assert b"authorization" not in request.lower()


@pytest.mark.filterwarnings("ignore:Async generator 'httpcore2:ResourceWarning")  # httpx2 leaves its own to trio
@pytest.mark.parametrize("layers", [1, 2])
async def test_a_compressed_response_is_not_read_beyond_its_limit(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiokafkawire.schema_registry.http_transport._MAX_RESPONSE", 1_000_000)
    body = bytes(50_000_000)
    for _ in range(layers):
        body = gzip.compress(body)
    async with answering(http(body, "200 OK", f"Content-Encoding: {', '.join(['gzip'] * layers)}")) as url:
        tracemalloc.start()
        try:
            with pytest.raises(SchemaRegistryError, match="more than 1000000 bytes"):
                await SchemaRegistry(url, max_retries=0).get_schema(1)
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()


async def test_what_a_registry_says_moves_no_cursor_and_has_a_limit() -> None:
    said = b'{"error_code": 42201, "message": "\\u001b[2Jno\\r\\n such %s"}' % (b"x" * 100_000)
    for answer in (http(said, "422 No"), http(b"\x1b[2J no", "404 Not Found")):
        async with answering(answer) as url:
            with pytest.raises(SchemaRegistryError, match=r"HTTP status 4\d\d.*: \?\[2J ?no") as failed:
                await SchemaRegistry(url, max_retries=0).get_schema(1)
        assert str(failed.value).isprintable()
        assert len(str(failed.value)) < 5_000


async def test_references_that_go_round_are_one_error() -> None:
    references = b'[{"name": "a", "subject": "a", "version": 1}]'
    round_about = b'{"subject": "a", "id": 1, "version": 1, "schema": "{}", "references": %s}' % references
    async with answering(http(round_about)) as url:
        with pytest.raises(SchemaRegistryError, match="references itself through others"):
            await finished(AvroDeserializer(SchemaRegistry(url)).deserialize(b"\0\0\0\0\1\2", context()))


async def test_a_schema_of_the_registry_that_is_not_valid_is_one_error() -> None:
    async with answering(http(b'{"schema": "{}"}')) as url:
        with pytest.raises(SchemaMismatch, match="the schema is not valid Avro"):
            await finished(AvroDeserializer(SchemaRegistry(url)).deserialize(b"\0\0\0\0\1\2", context()))


DEEP = '{"items":' * 300 + "true" + "}" * 300


@pytest.mark.parametrize(
    ("text", "referenced"),
    [
        (DEEP, "true"),
        ('{"$schema": 1}', "true"),
        ('{"$schema": []}', "true"),
        ('{"$id": "http://["}', "true"),
        ("{}", '{"$schema": 7}'),
        ("{}", "[" * 300),
        (json.dumps({"type": ["x" * 100_000]}), "true"),
    ],
)
def test_any_json_schema_is_parsed_or_refused_in_short(text: str, referenced: str) -> None:
    with pytest.raises(SchemaMismatch) as failed:
        parse_json_schema(Schema(text, SchemaType.JSON), {"other": Schema(referenced, SchemaType.JSON)})
    assert len(str(failed.value)) < 1_000


def test_names_in_a_json_value_move_no_cursor() -> None:
    schema = parse_json_schema(Schema('{"additionalProperties": {"type": "integer"}}', SchemaType.JSON), {})
    with pytest.raises(SchemaMismatch, match=r"\$\['\?\[2J'\]: 'a' is not of type 'integer'"):
        schema.validate({"\x1b[2J": "a"})


def test_names_in_a_protobuf_schema_move_no_cursor() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install aiokafkawire[protobuf]")
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from aiokafkawire.schema_registry.protobuf_codec import parse_protobuf

    proto = FileDescriptorProto(name="orders.proto", package="\x1b[2J")
    proto.message_type.add(name="\x1b[2J")
    text = base64.b64encode(proto.SerializeToString()).decode()
    with pytest.raises(SchemaMismatch, match=r"the Protobuf schema 'schema\.proto' is not valid") as failed:
        parse_protobuf(Schema(text, SchemaType.PROTOBUF), {})
    assert str(failed.value).isprintable()


@pytest.mark.parametrize(
    ("library", "name", "extra"),
    [
        ("httpx2", "SchemaRegistry", "schema-registry"),
        ("fastavro", "AvroSerializer", "avro"),
        ("jsonschema", "JsonSchemaDeserializer", "json-schema"),
        ("google.protobuf", "ProtobufSerializer", "protobuf"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(library: str, name: str, extra: str) -> None:
    program = f"""
import sys
sys.modules[{library!r}] = None
from aiokafkawire.schema_registry import Schema, topic_subject
try:
    from aiokafkawire.schema_registry import {name}
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(f"pip install 'aiokafkawire[{extra}]'"), done.stdout + done.stderr


def test_the_package_imports_no_library_before_its_use() -> None:
    program = """
import sys, aiokafkawire.schema_registry, aiokafkawire.testing
print([name for name in ("httpx2", "fastavro", "jsonschema", "google.protobuf", "h11") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(autouse=True)
def _nothing_is_logged_as_an_error(caplog: Any) -> Any:
    yield
    assert [record for record in caplog.get_records("call") if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("subject", [".", ".."])
def test_a_subject_that_urls_remove_is_refused(subject: str) -> None:
    with pytest.raises(UsageError, match=r"URLs cannot name"):
        RestRequest("DELETE", ("subjects", subject))
    assert RestRequest("GET", ("subjects", "...")).target == "subjects/..."
