"""The tests' 0.7 broker does what a real one did in all recorded conversations."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from support.legacy_vectors import Step, steps_of, transcripts

from aiokafkawire.legacy.decoding import decode_answer, decode_request
from aiokafkawire.legacy.messages import encode_messages
from aiokafkawire.legacy.requests import (
    Fetch,
    MultiFetch,
    MultiFetchAnswer,
    Offsets,
    OffsetsAnswer,
    Produce,
    encode_request,
)
from aiokafkawire.testing.legacy.logs import LegacyLogs, LegacySettings
from aiokafkawire.testing.legacy.server import LegacyServer

pytestmark = pytest.mark.anyio

BY_NAME = {one["name"]: one for one in transcripts()}


def logs_of(clock: Callable[[], int] = lambda: 10**12, **settings: Any) -> LegacyLogs:
    return LegacyLogs(LegacySettings(**settings), clock=clock, choose=lambda request, count: 0)


def settings_of(config: dict[str, Any]) -> LegacySettings:
    known: dict[str, Any] = {}
    for name, value in config.items():
        field = name.replace(".", "_")
        if name.startswith("topic."):
            topic, _, number = value.partition(":")
            known[field] = {topic: int(number)}
        elif field in ("num_partitions", "log_file_size", "log_retention_size", "max_message_size") or field in (
            "log_flush_interval",
            "max_socket_request_bytes",
        ):
            known[field] = value
    return LegacySettings(**known)


def chooser(steps: list[Step]) -> Callable[[Produce, int], int]:
    """Picks the partition that the recorded broker picked."""
    fetched: dict[tuple[str, int], bytes] = {}
    for step in steps:
        key = step.frames[0][4:6]
        if not step.receive or key not in (b"\0\1", b"\0\2"):
            continue
        request = decode_request(step.frames[0][4:])
        if isinstance(request, Fetch):
            fetched[request.topic, request.partition] = step.receive[6:]
        elif isinstance(request, MultiFetch):
            answer = decode_answer(request, step.receive[4:])
            assert isinstance(answer, MultiFetchAnswer)
            for part, one in zip(request.parts, answer.parts, strict=True):
                fetched[part.topic, part.partition] = bytes(one.messages)

    def choose(request: Produce, count: int) -> int:
        return next(
            number for number in range(count) if bytes(request.messages) in fetched.get((request.topic, number), b"")
        )

    return choose


def prepare(name: str, logs: LegacyLogs, steps: list[Step]) -> None:
    """What was there before the conversation began."""
    if name == "retention_trimmed":
        for number in range(8):
            value = f"trim-{number} ".encode().ljust(67, b"t")
            logs.answer(Produce("trim", 0, encode_messages([value])))
        logs.clean()
    elif name == "java_console_producer_compress":
        assert steps[0].receive is not None
        request = decode_request(steps[0].frames[0][4:])
        assert isinstance(request, Fetch)
        logs.answer(Produce(request.topic, 0, steps[0].receive[6:]))


@pytest.mark.parametrize("name", BY_NAME)
async def test_a_conversation_goes_as_it_went_with_a_real_broker(name: str) -> None:
    transcript = BY_NAME[name]
    steps = steps_of(transcript)
    logs = LegacyLogs(settings_of(transcript["broker"]), clock=lambda: 10**12, choose=chooser(steps))
    for needed in transcript["decoded"].get("needs", []):
        for step in steps_of(BY_NAME[needed]):
            for frame in step.frames:
                logs.answer(decode_request(frame[4:]))
    prepare(name, logs, steps)
    afresh = transcript["decoded"].get("new_connection_at", [])
    async with LegacyServer(logs) as server:
        stream = await server.connect("legacy", 9092)
        for step in steps:
            if step.index in afresh:
                await stream.aclose()
                stream = await server.connect("legacy", 9092)
            if step.index in transcript["decoded"].get("wait_before_step", []):
                logs.flush()
            await stream.send(b"".join(step.frames))
            if step.receive is not None:
                assert await received(stream, len(step.receive)) == step.receive, step
            if step.closed:
                with pytest.raises(anyio.EndOfStream):
                    await stream.receive()
            elif step.receive is None:
                await answers_nothing(stream)
        await stream.aclose()


async def received(stream: ByteStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += await stream.receive(size - len(data))
    return data


async def answers_nothing(stream: ByteStream) -> None:
    """What is asked next is what is answered next, on the same connection."""
    await stream.send(encode_request(Offsets("nobody has this", 0, -2, 1)))
    assert (await received(stream, 18))[4:] == b"\0\0\0\0\0\1" + b"\0" * 8


def test_what_was_recorded_can_be_told_from_what_was_not() -> None:
    """The comparison above can fail: another limit gives another log."""
    logs = logs_of(max_message_size=3)
    logs.answer(Produce("t", 0, encode_messages([b"four"])))
    assert logs.content("t", 0) == []


def test_time_finds_segments_by_when_they_were_written_last() -> None:
    clock = iter((100, 200, 300))
    logs = logs_of(clock=lambda: next(clock, 1_000), log_file_size=1)
    for _ in range(3):
        logs.answer(Produce("t", 0, encode_messages([b"x" * 10])))
    for time, found in ((99, ()), (100, (0,)), (250, (20, 0)), (999, (40, 20, 0)), (1_000, (60, 40, 20, 0))):
        assert logs.answer(Offsets("t", 0, time, 9)) == OffsetsAnswer(0, found)
