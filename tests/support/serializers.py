"""Serializers and deserializers of tests, which know the record."""

from collections.abc import Awaitable
from typing import Any

import anyio
import anyio.lowlevel

from aiokafkawire.serialization import SerializationContext

__all__ = ("Gated", "Marking", "Slow", "SlowReader", "Unmarking")


class Marking:
    """Serializes text, and adds a header that names the topic."""

    def __init__(self, name: str = "format") -> None:
        self.name = name
        self.contexts: list[SerializationContext] = []

    def serialize(self, value: str, context: SerializationContext) -> bytes:
        self.contexts.append(context)
        context.headers.append((self.name, f"{context.topic}, {context.is_key}".encode()))
        return value.encode()


class Slow:
    """Serializes text after other tasks have run."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def serialize(self, value: str, context: SerializationContext) -> bytes:
        await anyio.lowlevel.checkpoint()
        self.seen.append(value)
        context.headers.append(("slow", b"1"))
        return value.encode()


class Gated:
    """Serializes text, and deserializes it, once a gate is open; text with an "x" is refused."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.entered = anyio.Event()
        self.left = 0
        self.cancelled = 0

    async def _wait(self) -> None:
        self.entered.set()
        try:
            await self.gate.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        self.left += 1

    async def serialize(self, value: str, context: SerializationContext) -> bytes:
        await self._wait()
        return value.encode()

    def deserialize(self, data: bytes, context: SerializationContext) -> str | Awaitable[str]:
        return self._read(data)

    async def _read(self, data: bytes) -> str:
        await self._wait()
        if b"x" in data:
            raise ValueError("an x")
        return data.decode()


class Unmarking:
    """Deserializes text, and notes the contexts."""

    def __init__(self) -> None:
        self.contexts: list[SerializationContext] = []

    def deserialize(self, data: bytes, context: SerializationContext) -> str:
        self.contexts.append(context)
        context.headers.clear()
        return data.decode()


class SlowReader:
    """Deserializes numbers, each second one after other tasks have run; notes the order."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def deserialize(self, data: bytes, context: SerializationContext) -> Any:
        self.seen.append(data)
        if len(self.seen) % 2:
            return int(data)
        return self._later(data)

    async def _later(self, data: bytes) -> int:
        await anyio.lowlevel.checkpoint()
        return int(data)
