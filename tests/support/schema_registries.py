"""Schema registries for tests, and what serializers are given and return."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from inspect import isawaitable
from pathlib import Path
from typing import Any

import anyio
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from aiokafkawire.schema_registry import SchemaRegistry
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.testing import SchemaRegistryServer

__all__ = ("QUICK", "compiled", "context", "finished", "message_classes", "running_registry")

QUICK: dict[str, Any] = {"retries_wait_ms": 1, "retries_max_wait_ms": 2}
"""Settings by which retries do not wait."""


@asynccontextmanager
async def running_registry(**options: Any) -> AsyncIterator[tuple[SchemaRegistryServer, SchemaRegistry]]:
    """A registry and a client of it."""
    async with SchemaRegistryServer() as server:
        with anyio.fail_after(50):
            yield server, SchemaRegistry(server.url, **{**QUICK, **options})


def context(topic: str = "flights", *, is_key: bool = False) -> SerializationContext:
    """The context of a new record."""
    return SerializationContext(topic, [], is_key)


async def finished(given: Any) -> Any:
    """The result of a serializer, which may be an awaitable."""
    return await given if isawaitable(given) else given


def compiled(sources: Mapping[str, str]) -> FileDescriptorSet:
    """The descriptors that protoc makes of .proto files, by their names; imports come before what imports them."""
    from grpc_tools import protoc

    known = str(files("grpc_tools") / "_proto")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            Path(folder, name).write_text(text)
        made = Path(folder, "descriptors")
        arguments = ["protoc", f"-I{folder}", f"-I{known}", "--include_imports", f"--descriptor_set_out={made}"]
        assert protoc.main([*arguments, *(str(Path(folder, name)) for name in sources)]) == 0
        return FileDescriptorSet.FromString(made.read_bytes())


def message_classes(sources: Mapping[str, str]) -> dict[str, Any]:
    """The classes of all messages in .proto files, by their full names."""
    pool = descriptor_pool.DescriptorPool()
    found: dict[str, Any] = {}
    for file in compiled(sources).file:
        pool.Add(file)
        pending = list(pool.FindFileByName(file.name).message_types_by_name.values())
        while pending:
            descriptor = pending.pop()
            pending += descriptor.nested_types
            found[descriptor.full_name] = message_factory.GetMessageClass(descriptor)
    return found
