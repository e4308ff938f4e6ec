"""Requests, answers and message sets of 0.7, held to conversations with a real broker and real Java clients."""

import base64
import tracemalloc
import zlib
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.legacy_vectors import Step, steps, transcripts
from support.rows import every_row

from aiokafkawire.errors import CorruptBatch, UsageError, WireError
from aiokafkawire.legacy.decoding import decode_answer, decode_request
from aiokafkawire.legacy.errors import MisalignedOffset
from aiokafkawire.legacy.messages import LegacyMessageSet, encode_entry, encode_messages
from aiokafkawire.legacy.requests import (
    Answer,
    Fetch,
    FetchAnswer,
    MultiFetch,
    MultiFetchAnswer,
    MultiProduce,
    Offsets,
    OffsetsAnswer,
    Produce,
    Request,
    check_legacy_topic,
    encode_answer,
    encode_request,
    largest_answer,
)
from aiokafkawire.records.compression import Codec

SENT = [step for step in steps() if step.frames]
ANSWERED = [step for step in SENT if step.receive and len(step.frames) == 1 and not step.raw]


def test_all_conversations_are_there() -> None:
    assert len(transcripts()) == 75
    assert len(SENT) > 190
    assert len(ANSWERED) > 100


@every_row("step", SENT)
def test_requests_are_read_and_written_as_they_were_recorded(step: Step) -> None:
    told = step.decoded.get("request", {})
    if step.name in ("unknown_request_key", "frame_length_zero"):
        with pytest.raises(WireError, match=r"request key 5, where|the key of 2 bytes"):
            decode_request(step.frames[0][4:])
        return
    for frame in step.frames:
        request = decode_request(frame[4:])
        assert encode_request(request) == frame
        if told.get("api"):
            assert as_told(request) == {key: value for key, value in told.items() if key in as_told(request)}
            assert type(request).__name__.lower() == told["api"].replace("_", "")


def as_told(request: Request) -> dict[str, Any]:
    match request:
        case Produce():
            return {"topic": request.topic, "partition": request.partition, "set_bytes": len(request.messages)}
        case Fetch():
            return {
                "topic": request.topic,
                "partition": request.partition,
                "offset": request.offset,
                "max_bytes": request.max_bytes,
            }
        case Offsets():
            return {
                "topic": request.topic,
                "partition": request.partition,
                "time": request.time,
                "max_offsets": request.max_offsets,
            }
    return {}


@every_row("step", ANSWERED)
def test_answers_are_read_and_written_as_they_were_recorded(step: Step) -> None:
    assert step.receive is not None
    request = decode_request(step.frames[0][4:])
    answer = decode_answer(request, step.receive[4:])
    assert encode_answer(answer) == step.receive
    assert len(step.receive) - 4 <= largest_answer(request)
    told = step.decoded["response"]
    match answer:
        case FetchAnswer():
            assert (answer.error_code, len(answer.messages)) == (told["error"], told["bytes"])
        case MultiFetchAnswer():
            assert answer.error_code == told["error"]
            assert [(one.error_code, len(one.messages)) for one in answer.parts] == [
                (one["error"], one["bytes"]) for one in told["sets"]
            ]
        case OffsetsAnswer():
            assert (answer.error_code, list(answer.offsets)) == (told["error"], told["offsets"])


def recorded_sets() -> list[Any]:
    """Every message set that is not damaged: its bytes, where it begins, and what is in it."""
    found = []
    for step in SENT:
        request = step.decoded.get("request", {})
        if "messages" in request and well(request["messages"]) and not refused(step):
            produce = decode_request(step.frames[0][4:])
            assert isinstance(produce, Produce)
            found.append(pytest.param(produce.messages, request, 0, id=f"{step}-sent"))
        response = step.decoded.get("response") or {}
        if response.get("messages") and len(step.frames) == 1:
            assert step.receive is not None
            found.append(pytest.param(step.receive[6:], response, response["offset"], id=f"{step}-received"))
    return found


def well(messages: list[dict[str, Any]]) -> bool:
    return all(one.get("crc_ok") and well(one.get("inner", [])) for one in messages)


def refused(step: Step) -> bool:
    return step.name in ("produce_size_negative", "produce_size_zero")


def flat(messages: list[dict[str, Any]], start: int = -1, end: int = -1) -> list[tuple[bytes, int, int, int]]:
    """What Java's classes give: value, offset, next offset, magic."""
    found: list[tuple[bytes, int, int, int]] = []
    for one in messages:
        begin, after = (start, end) if start >= 0 else (one["offset"], one["next"])
        if "inner" in one:
            inner = flat(one["inner"], begin, after)
            found += [(value, begin, begin, magic) for value, _, _, magic in inner]
            if inner:
                found[-1] = (found[-1][0], begin, after, found[-1][3])
        else:
            found.append((base64.b64decode(one["value"]), begin, after, one["magic"]))
    return found


@every_row(("data", "told", "offset"), recorded_sets())
def test_message_sets_are_read_as_they_were_recorded(data: bytes, told: dict[str, Any], offset: int) -> None:
    found = LegacyMessageSet(data, offset)
    assert found.cut == told["partial_bytes"]
    assert [(one.offset, one.next_offset, one.magic, one.codec) for one in found.entries()] == [
        (one["offset"], one["next"], one["magic"], one["codec"]) for one in told["messages"]
    ]
    assert all(one.crc_ok for one in found.entries())
    assert [(one.value, one.offset, one.next_offset, one.magic) for one in found.messages()] == flat(told["messages"])
    written = b"".join(encode_entry(one.payload, magic=one.magic, attributes=one.attributes) for one in found.entries())
    assert written == bytes(data)[: len(written)]
    assert len(written) + found.cut == len(data)


def java_reads() -> list[Any]:
    return [pytest.param(one, id=one["name"]) for one in transcripts() if one["name"].startswith("java_reads_")]


@pytest.mark.parametrize("transcript", java_reads())
def test_offsets_of_messages_are_those_that_javas_client_saw(transcript: dict[str, Any]) -> None:
    fetched = bytes.fromhex(transcript["steps"][1]["receive"])[6:]
    ours = [
        f"M {one.next_offset} {one.magic} {base64.b64encode(one.value).decode()}"
        for one in LegacyMessageSet(fetched).messages()
    ]
    assert ["E 0", *ours] == transcript["decoded"]["java_output"]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
def test_what_is_written_is_read(codec: Codec) -> None:
    values = [b"", b"one", b"x" * 100_000]
    found = LegacyMessageSet(encode_messages(values, codec=codec), 7)
    assert [one.value for one in found.messages()] == values
    assert len(found) == (3 if codec is Codec.NONE else 1)
    assert list(found.messages())[-1].next_offset == found.next_offset


def test_a_view_of_numbers_or_of_every_other_byte_is_written_as_its_bytes() -> None:
    values = [memoryview(array("i", [1, 2, 3])), memoryview(b"abcdef")[::2]]
    found = list(LegacyMessageSet(encode_messages(values)).messages())  # type: ignore[arg-type]
    assert [one.value for one in found] == [array("i", [1, 2, 3]).tobytes(), b"ace"]


def test_a_wrapper_of_nothing_has_no_messages_and_is_passed() -> None:
    empty = encode_entry(zlib.compress(b"", wbits=31), attributes=1)
    found = LegacyMessageSet(empty + encode_entry(b"after"))
    assert [(one.value, one.offset) for one in found.messages()] == [(b"after", len(empty))]


@pytest.mark.parametrize(
    ("values", "options", "told"),
    [
        ([b"x"], {"codec": Codec.LZ4}, "gzip and snappy, not lz4"),
        ([b"x"], {"codec": Codec.GZIP, "magic": 0}, "magic 0, of Kafka 0.6, has no attributes"),
        ([b"x"], {"magic": 2}, "magic 0 or 1, not 2"),
        ([None], {}, "bytes, without a null; got NoneType"),
    ],
)
def test_what_the_formats_cannot_hold_is_refused(values: list[Any], options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        encode_messages(values, **options)


# --- damage ---------------------------------------------------------------------------------------------------------

GOOD = encode_messages([b"first", b"second!", b"third"])


@pytest.mark.parametrize("start", [2, 4, 5, 9, 14])
def test_an_offset_inside_a_message_is_told_by_size_and_magic(start: int) -> None:
    with pytest.raises(MisalignedOffset, match=f"^t-0 at b:9092: no message begins at offset {start} "):
        LegacyMessageSet(GOOD[start:], start, "t-0 at b:9092")


def test_an_offset_inside_a_message_may_look_like_a_message_that_is_too_large() -> None:
    found = LegacyMessageSet(GOOD[1:], 1)
    assert not found
    assert found.needed is not None
    assert found.needed > len(GOOD)


def test_a_wrong_checksum_is_misaligned_at_the_first_message_and_damage_later() -> None:
    bad = bytearray(GOOD)
    bad[12] ^= 1
    with pytest.raises(MisalignedOffset, match=r"no message begins at offset 100 \(its checksum is wrong\)"):
        list(LegacyMessageSet(bad, 100).messages())
    bad = bytearray(GOOD)
    bad[30] ^= 1
    reader = LegacyMessageSet(bad, 100).messages()
    assert next(reader).value == b"first"
    with pytest.raises(CorruptBatch, match="message at byte 115: checksum") as caught:
        next(reader)
    assert not isinstance(caught.value, MisalignedOffset)


def test_codec_3_is_none_that_kafka_07_had() -> None:
    with pytest.raises(CorruptBatch, match="unknown compression codec 3"):
        list(LegacyMessageSet(encode_entry(b"whatever", attributes=3)).messages())


def test_inflating_is_bounded_over_wrappers_in_wrappers() -> None:
    bomb = encode_messages([b"\0" * 100_000], codec=Codec.GZIP)
    both = encode_entry(zlib.compress(bomb * 20, wbits=31), attributes=1)
    assert len(list(LegacyMessageSet(both).messages())) == 20
    with pytest.raises(CorruptBatch, match="more than the limit"):
        list(LegacyMessageSet(both).messages(limit=1_000_000))


def test_very_many_messages_in_one_wrapper_are_made_one_by_one() -> None:
    packed = encode_messages([b""] * 200_000, codec=Codec.GZIP)
    tracemalloc.start()
    try:
        reader = LegacyMessageSet(packed).messages()
        assert next(reader).value == b""
        for _ in range(1000):
            next(reader)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 12_000_000  # what is inflated, and what it is put together from


def test_wrappers_one_in_the_other_are_bounded() -> None:
    data = encode_entry(b"deep")
    for _ in range(8):
        data = encode_entry(zlib.compress(data, wbits=31), attributes=1)
    assert [one.value for one in LegacyMessageSet(data).messages()] == [b"deep"]
    data = encode_entry(zlib.compress(data, wbits=31), attributes=1)
    with pytest.raises(CorruptBatch, match="more than 8 nested compressed messages"):
        list(LegacyMessageSet(data).messages())


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0", "a\x7f", "\ud800", "\U0001f600", "x" * 256])
def test_illegal_names_are_refused_before_they_are_sent(name: str) -> None:
    with pytest.raises(UsageError, match=r"not a topic's name for Kafka 0\.7"):
        check_legacy_topic(name)


@pytest.mark.parametrize("name", ["t", "dots.and-dash_ü ok", "tøpic-✓.x", "x" * 255])
def test_legal_names_pass(name: str) -> None:
    check_legacy_topic(name)


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="does not fit its field"):
        encode_request(Fetch("t", 2**31, 0, 0))
    with pytest.raises(UsageError, match="does not fit its field"):
        encode_request(Fetch("t" * 40_000, 0, 0, 0))


# --- hostile bytes --------------------------------------------------------------------------------------------------

REQUESTS: list[Request] = [
    Fetch("t", 0, 0, 100),
    Offsets("t", 0, -1, 5),
    MultiFetch((Fetch("t", 0, 0, 100), Fetch("t", 1, 0, 100))),
    MultiProduce(()),
]
FRAMES = [frame[4:] for step in SENT for frame in step.frames]


@given(st.binary(max_size=200) | st.sampled_from(FRAMES).flatmap(lambda one: mutated(one)))
def test_any_bytes_are_a_request_or_an_error(data: bytes) -> None:
    try:
        request = decode_request(data)
    except WireError:
        return
    assert encode_request(request)[4:] == data


@given(st.sampled_from(REQUESTS), st.binary(max_size=100))
def test_any_bytes_are_an_answer_or_an_error(request: Request, data: bytes) -> None:
    try:
        answer: Answer = decode_answer(request, data)
    except WireError:
        return
    assert encode_answer(answer)[4:] == data or (data[:2] != b"\0\0" and len(data) == 2)


SETS = [bytes(one.values[0]) for one in recorded_sets() if len(one.values[0]) < 2000]


@given(st.binary(max_size=100) | st.sampled_from(SETS).flatmap(lambda one: mutated(one)))
def test_any_bytes_are_messages_or_an_error(data: bytes) -> None:
    try:
        found = LegacyMessageSet(data)
        assert found.cut + sum(one.size for one in found.entries()) == len(data)
        list(found.messages(limit=100_000))
    except CorruptBatch:
        pass


def mutated(data: bytes) -> st.SearchStrategy[bytes]:
    """The bytes with some changed, or cut."""
    if not data:
        return st.just(data)
    change = st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255))
    return st.tuples(st.lists(change, min_size=1, max_size=4), st.integers(0, len(data))).map(
        lambda drawn: bytes(dict(drawn[0]).get(at, byte) for at, byte in enumerate(data))[: drawn[1] or None]
    )
