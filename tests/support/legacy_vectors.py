"""Conversations with a real Kafka 0.7.2, and what its ZooKeeper held: `tests/data/legacy07.jsonl.gz`."""

import gzip
import json
from functools import cache
from typing import Any

import attrs
from support.vectors import OURS

__all__ = ("Step", "moments", "steps", "steps_of", "transcripts")


@attrs.frozen
class Step:
    """One write of a client, and what came back."""

    name: str
    index: int
    frames: tuple[bytes, ...]
    """The requests with their sizes; several if they were written at once."""
    receive: bytes | None
    closed: bool
    raw: bool
    """What came is framed wrongly."""
    decoded: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}-{self.index}"


@cache
def _lines() -> tuple[dict[str, Any], ...]:
    with gzip.open(OURS / "legacy07.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(map(json.loads, lines))


def transcripts() -> list[dict[str, Any]]:
    """The conversations."""
    return [line for line in _lines() if "steps" in line]


def moments() -> dict[str, dict[str, dict[str, Any]]]:
    """The nodes of ZooKeeper by moment, then by path."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for line in _lines():
        if "moment" in line:
            found.setdefault(line["moment"], {})[line["path"]] = line
    return found


def steps() -> list[Step]:
    """The steps of all conversations."""
    return [step for one in transcripts() for step in steps_of(one)]


def steps_of(transcript: dict[str, Any]) -> list[Step]:
    """The steps of one."""
    pairs = zip(transcript["steps"], transcript["decoded"].get("steps", ()), strict=True)
    return [_step(transcript["name"], index, *pair) for index, pair in enumerate(pairs)]


def _step(name: str, index: int, step: dict[str, Any], decoded: dict[str, Any]) -> Step:
    received = step.get("receive")
    return Step(
        name,
        index,
        tuple(_frames(bytes.fromhex(step["send"]))),
        None if received is None else bytes.fromhex(received),
        step.get("closed", False),
        step.get("raw", False),
        decoded,
    )


def _frames(data: bytes) -> list[bytes]:
    frames = []
    while data:
        end = 4 + int.from_bytes(data[:4])
        frames.append(data[:end])
        data = data[end:]
    return frames
