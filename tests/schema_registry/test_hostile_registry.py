"""Registries that answer with something else, or not at all; and libraries that are not installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from support.schema_registries import QUICK, context, finished

from aiokafkawire.errors import SchemaMismatch, SchemaRegistryError
from aiokafkawire.schema_registry import AvroDeserializer, Schema, SchemaRegistry

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[str]:
    """The URL of a server that sends these bytes to one connection after the other, the last to all others."""
    left = list(answers)

    async def serve(stream: SocketStream) -> None:
        async with stream:
            with anyio.move_on_after(20):
                await stream.receive()
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
