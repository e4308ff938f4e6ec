"""Measures the message codec of one client: one message, encoded or decoded again and again in one process.

Every contender reads the same bytes, and writes them again from its own objects; one whose bytes differ from ours is an
error. The garbage collector runs as it does in any program.
"""

import gc
import importlib
import io
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from aiokafkawire.protocol.compiler import IMPLEMENTATION, decode, encode
from aiokafkawire.protocol.schema import Message
from benchmarks.clients.measurement import Job as PlainJob
from benchmarks.clients.measurement import Watch, print_figures
from benchmarks.codec.messages import MESSAGES
from benchmarks.machine import version_of


@dataclass(frozen=True)
class Job:
    """One measurement. Its fields are the settings that cases have."""

    client: str
    message: str
    direction: Literal["encode", "decode"]
    seconds: float = 0.3
    """How long it is done again, about."""


class Codec(NamedTuple):
    """A contender's work on one message, ready to be called."""

    encode: Callable[[], bytes]
    decode: Callable[[], object]


def ours(message: Message, version: int, data: bytes) -> Codec:
    cls = type(message)
    return Codec(partial(encode, decode(cls, version, data), version), partial(decode, cls, version, data))


def kafka_python(message: Message, version: int, data: bytes) -> Codec:
    name = type(message).__name__
    modules = [importlib.import_module(f"kafka.protocol.{one}") for one in ("metadata", "consumer", "producer")]
    (cls,) = {getattr(one, name) for one in modules if hasattr(one, name)}
    own = cls.decode(data, version=version)
    own._header = None  # its decoder leaves this slot empty, and its encoder asks for it
    return Codec(partial(own.encode, version=version), partial(cls.decode, data, version=version))


def kio(message: Message, version: int, data: bytes) -> Codec:
    name = type(message).__name__
    kind = "request" if name.endswith("Request") else "response"
    api = "".join(f"_{one.lower()}" if one.isupper() else one for one in name.removesuffix(kind.title())).lstrip("_")
    cls: Any = getattr(importlib.import_module(f"kio.schema.{api}.v{version}.{kind}"), name)
    serial: Any = importlib.import_module("kio.serial")
    write, read = serial.entity_writer(cls), serial.entity_reader(cls)
    own, _ = read(data, 0)

    def encoded() -> bytes:
        with io.BytesIO() as buffer:
            write(buffer, own)
            return buffer.getvalue()

    return Codec(encoded, partial(read, data, 0))


CODECS: dict[str, tuple[Callable[[Message, int, bytes], Codec], str]] = {
    "ours": (ours, f"{IMPLEMENTATION} decoder"),
    "kafka-python": (kafka_python, version_of("kafka-python") or ""),
    "kio": (kio, version_of("kio") or ""),
}


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    make, version = MESSAGES[job.message]
    message = make()
    data = encode(message, version)
    build, name = CODECS[job.client]
    codec = build(message, version, data)
    if bytes(codec.encode()) != data:
        raise SystemExit(f"{job.client} writes other bytes than aiokafkawire")
    function = codec.encode if job.direction == "encode" else codec.decode
    function()
    gc.collect()
    gc.freeze()  # earlier objects belong to no codec
    count, watch = 0, Watch(PlainJob())
    with watch:
        ends = time.perf_counter() + job.seconds
        while time.perf_counter() < ends:
            function()
            count += 1
    print_figures(watch, records=count, version=f"{name}, {len(data):,} B")


if __name__ == "__main__":
    main()
