"""Where the fuzzer begins: Kafka's golden vectors, in the form that each target takes. Made anew at every start."""

from collections.abc import Iterator

from support.vectors import vectors

from aiokafkawire.protocol.api import ResponseHeader, response_header_version
from aiokafkawire.protocol.compiler import encode

from .feeding import MOST_WAITING, asked
from .targets import EMBEDDED, MESSAGES, Decoder

__all__ = ("DICTIONARY", "MAX_LENGTH", "seeds")

MAX_LENGTH = 4096
"""Bytes of an input: what is wrong beyond that is wrong below it, mostly."""

DICTIONARY: tuple[bytes, ...] = (
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x7f\xff",
    b"\x80\0",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\xff\xff\x03",
    b"\xc3\x28",
)
"""Lengths that lie, plain and compact, the longest varints, and a string that is no UTF-8."""


def seeds(target: str) -> Iterator[bytes]:
    """Inputs of ``target`` that it takes, from the vectors."""
    match target:
        case "messages":
            return _messages(MESSAGES, "request", "response", only_longest=True)
        case "embedded":
            return _messages(EMBEDDED, "header", "data")
        case "frames":
            return _frames()
        case "records":
            return _buffers()
    raise ValueError(f"no target {target!r}")


def _messages(decoders: list[Decoder], *files: str, only_longest: bool = False) -> Iterator[bytes]:
    """The choice of the message before its bytes; ``only_longest`` gives one of each version, under 600 bytes."""
    numbers = {(cls.__name__, version): number for number, (cls, version) in enumerate(decoders)}
    longest: dict[int, bytes] = {}
    for file in files:
        for vector in vectors(file):
            data = bytes.fromhex(vector["hex"])
            number = numbers[vector["name"], vector["version"]]
            if not only_longest:
                yield number.to_bytes(2, "big") + data
            elif len(longest.get(number, b"")) <= len(data) < 600:
                longest[number] = data
    for number, data in longest.items():
        yield number.to_bytes(2, "big") + data


def _frames() -> Iterator[bytes]:
    bodies: dict[tuple[str, int], bytes] = {}
    for vector in vectors("response"):
        data = bytes.fromhex(vector["hex"])
        if len(bodies.get((vector["name"], vector["version"]), b"")) <= len(data) < 300:
            bodies[vector["name"], vector["version"]] = data
    for waiting in range(5 * (MOST_WAITING + 1)):
        stream = b""
        for number, (request, version) in enumerate(asked(waiting)):
            header = encode(ResponseHeader(correlation_id=number), response_header_version(type(request), version))
            frame = header + bodies[type(request).response.__name__, version]
            stream += len(frame).to_bytes(4, "big") + frame
        yield bytes((waiting,)) + stream


def _buffers() -> Iterator[bytes]:
    for vector in vectors("batches"):
        data = bytes.fromhex(vector["hex"])
        if len(data) <= MAX_LENGTH:
            yield data
