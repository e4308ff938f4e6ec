"""The pipeline alone: bytes in, bytes out, no stream and no clock."""

import time
import tracemalloc
from struct import pack

import pytest
from fuzz.feeding import asked, fed
from fuzz.seeds import seeds
from fuzz.targets import frames, read_frames
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.scripted_broker import answer_frame, api_versions

from aiokafkawire.errors import ConnectionLost, InvalidMessage, KafkaError, UnsupportedVersion, WireError
from aiokafkawire.network import connection_protocol as module
from aiokafkawire.network.connection_protocol import LARGE_PART, ConnectionProtocol, RequestNotes
from aiokafkawire.network.connection_reports import ConnectionReports
from aiokafkawire.notes import RequestNote
from aiokafkawire.observe import Observers
from aiokafkawire.protocol.api import ApiKey, RequestHeader, ResponseHeader
from aiokafkawire.protocol.compiler import decode, decode_prefix, encode
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aiokafkawire.types import Address

MAX_FRAME = 4 * 1024 * 1024


class Box:
    """A slot that keeps what it hears."""

    def __init__(self, order: list["Box"] | None = None) -> None:
        self.body: bytes | None = None
        self.error: KafkaError | None = None
        self.order = order if order is not None else []

    def resolve(self, frame: bytes, position: int) -> None:
        assert self.body is None
        assert self.error is None
        self.body = frame[position:]
        self.order.append(self)

    def fail(self, error: KafkaError) -> None:
        assert self.body is None
        assert self.error is None
        self.error = error
        self.order.append(self)


def make(max_frame: int = MAX_FRAME, notes: RequestNotes | None = None) -> ConnectionProtocol:
    return ConnectionProtocol(client_id="me", broker="b:9092", max_frame=max_frame, notes=notes)


def metadata(*topics: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])


def answered(correlation_id: int, body: bytes, *, flexible: bool = True) -> bytes:
    header = encode(ResponseHeader(correlation_id=correlation_id), 1 if flexible else 0)
    return pack(">i", len(header) + len(body)) + header + body


def feed(pipeline: ConnectionProtocol, data: bytes, step: int) -> None:
    for start in range(0, len(data), step):
        pipeline.receive(data[start : start + step])


# --- frames out ----------------------------------------------------------------------------------------------


def test_a_frame_is_size_header_and_body() -> None:
    pipeline = make()
    pipeline.send(metadata(), 12, Box())
    frame = pipeline.send(metadata("a"), 12, Box())
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, position = decode_prefix(RequestHeader, 2, frame, 4)
    assert header == RequestHeader(
        request_api_key=ApiKey.METADATA, request_api_version=12, correlation_id=1, client_id="me"
    )
    assert decode(MetadataRequest, 12, frame, position) == metadata("a")
    assert pipeline.in_flight == 2


def test_a_large_part_of_a_body_is_a_piece_of_the_frame_and_no_copy() -> None:
    large, other = bytes(LARGE_PART), bytes(2 * LARGE_PART)
    body = (b"before", b"length", large, b"between", memoryview(b"them"), other, b"after")
    pieces = make().send_encoded(MetadataRequest, 12, body, Box())
    assert b"".join(pieces) == b"".join(make().send_encoded(MetadataRequest, 12, [b"".join(body)], Box()))
    assert pieces[1] is large
    assert pieces[3] is other
    assert list(map(len, pieces[2::2])) == [11, 5]
    assert int.from_bytes(pieces[0][:4], "big") == sum(map(len, pieces)) - 4
    assert len(make().send_encoded(MetadataRequest, 12, (b"small", b"parts"), Box())) == 1
    assert make().send_encoded(MetadataRequest, 12, (b"a", large), Box())[-1] is large


def test_a_request_that_cannot_be_encoded_leaves_the_pipeline_as_it_was() -> None:
    pipeline, box = make(), Box()
    pipeline.send(metadata(), 12, box)
    before = make()
    before.send(metadata(), 12, Box())
    wrong: list[MetadataRequestTopic] = [MetadataRequestTopic(name=5)]  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage):
        pipeline.send(MetadataRequest(topics=wrong), 12, Box())
    with pytest.raises(UnsupportedVersion):
        pipeline.send(metadata(), 99, Box())
    records = [PartitionProduceData(index=0, records="text")]  # type: ignore[arg-type]
    produce = ProduceRequest(acks=1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=records)])
    with pytest.raises(InvalidMessage):
        pipeline.send(produce, 9, Box())
    assert pipeline.in_flight == 1
    assert pipeline.send(metadata("a"), 12, Box()) == before.send(metadata("a"), 12, Box())
    pipeline.receive(answered(0, b"first"))
    assert box.body == b"first"


def test_a_request_without_an_answer_takes_a_correlation_id_and_no_place() -> None:
    pipeline, box = make(), Box()
    pipeline.send(metadata(), 12, None)
    assert (pipeline.in_flight, pipeline.next_answered) == (0, None)
    pipeline.send(metadata(), 12, box)
    assert pipeline.next_answered == ("MetadataRequest", box)
    pipeline.receive(answered(1, b"second"))
    assert box.body == b"second"


def test_correlation_ids_begin_anew_before_they_turn_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CORRELATION_IDS", 3)
    pipeline, boxes = make(), [Box() for _ in range(5)]
    ids = [int.from_bytes(pipeline.send(metadata(), 12, box)[8:12], "big") for box in boxes]
    assert ids == [0, 1, 2, 0, 1]
    for number, one in enumerate(ids):
        pipeline.receive(answered(one, b"%d" % number))
    assert [box.body for box in boxes] == [b"0", b"1", b"2", b"3", b"4"]


def test_there_are_as_many_correlation_ids_as_positive_int32() -> None:
    pipeline = make()
    pipeline._correlation_id = 2**31 - 1
    assert pipeline.send(metadata(), 12, Box())[8:12] == b"\x7f\xff\xff\xff"
    assert pipeline.send(metadata(), 12, Box())[8:12] == b"\0\0\0\0"


# --- frames in -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 7, 1000])
def test_answers_come_whole_in_pieces_and_several_at_once(step: int) -> None:
    pipeline, boxes = make(), [Box() for _ in range(5)]
    for box in boxes:
        pipeline.send(metadata(), 12, box)
    bodies = [b"", b"a", b"bc" * 50, b"d", b"e" * 3]
    feed(pipeline, b"".join(answered(number, body) for number, body in enumerate(bodies)), step)
    assert [box.body for box in boxes] == bodies
    assert pipeline.in_flight == 0


def test_each_answer_goes_out_as_soon_as_its_last_byte_came() -> None:
    pipeline, first, second = make(), Box(), Box()
    pipeline.send(metadata(), 12, first)
    pipeline.send(metadata(), 12, second)
    data = answered(0, b"first") + answered(1, b"second")
    end = len(answered(0, b"first"))
    pipeline.receive(data[: end - 1])
    assert first.body is None
    pipeline.receive(data[end - 1 : -1])
    assert [first.body, second.body] == [b"first", None]
    pipeline.receive(data[-1:])
    assert second.body == b"second"


def test_the_plain_header_is_read_where_the_version_has_it() -> None:
    pipeline, old, versions = make(), Box(), Box()
    pipeline.send(metadata(), 8, old)
    pipeline.send(ApiVersionsRequest(), 3, versions)
    pipeline.receive(answered(0, b"old", flexible=False))
    pipeline.receive(answer_frame(ApiVersionsRequest, 3, 1, api_versions({})))
    assert old.body == b"old"
    assert versions.body == encode(api_versions({}), 3)


def test_a_frame_in_many_pieces_is_joined_once() -> None:
    def seconds(size: int) -> float:
        pipeline, box = make(64 << 20), Box()
        pipeline.send(metadata(), 12, box)
        data = answered(0, bytes(size))
        started = time.process_time()
        feed(pipeline, data, 1024)
        taken = time.process_time() - started
        assert box.body == bytes(size)
        return taken

    assert seconds(1 << 20) < 2
    # Joined anew with every piece, this copies 0.5 TB.
    assert seconds(32 << 20) < 15


# --- what must not be ----------------------------------------------------------------------------------------


def poisoned_by(data: bytes, step: int = 1 << 20) -> WireError:
    """What a pipeline with three waiters says of these bytes."""
    pipeline, order = make(), list[Box]()
    boxes = [Box(order) for _ in range(3)]
    for box in boxes:
        pipeline.send(metadata(), 12, box)
    with pytest.raises(WireError) as caught:
        feed(pipeline, data, step)
    assert order == boxes
    assert {box.error for box in boxes} == {caught.value}
    assert pipeline.failure is caught.value
    assert pipeline.in_flight == 0
    return caught.value


def test_an_answer_out_of_turn_ends_it_for_all() -> None:
    told = "b:9092 answered correlation id 1 when 0 (MetadataRequest) was next"
    assert str(poisoned_by(answered(1, b"second"))) == told


def test_what_came_before_the_fault_still_counts() -> None:
    pipeline, first, second = make(), Box(), Box()
    pipeline.send(metadata(), 12, first)
    pipeline.send(metadata(), 12, second)
    with pytest.raises(WireError):
        pipeline.receive(answered(0, b"good") + answered(7, b"bad"))
    assert first.body == b"good"
    assert isinstance(second.error, WireError)


def test_an_answer_that_nobody_asked_for_is_told() -> None:
    pipeline = make()
    with pytest.raises(WireError, match=r"^b:9092 sent a frame of 9 bytes that answers no request$"):
        pipeline.receive(answered(0, b"body"))


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 3, MAX_FRAME + 1, 2**31 - 1])
def test_a_size_that_cannot_be_is_told_before_the_frame_comes(size: int) -> None:
    told = f"b:9092 sent a frame of {size} bytes, allowed are 4 to {MAX_FRAME} (receive_message_max_bytes)"
    assert str(poisoned_by(pack(">i", size))) == told
    assert str(poisoned_by(pack(">i", size) + b"\0\1\2", 1)) == told


def test_the_largest_frame_that_is_allowed_is_taken() -> None:
    pipeline, box = make(1024), Box()
    pipeline.send(metadata(), 12, box)
    pipeline.receive(answered(0, bytes(1024 - 5)))
    assert box.body == bytes(1024 - 5)


def test_a_header_that_is_broken_is_told_by_the_request() -> None:
    error = poisoned_by(pack(">ii", 4, 0))
    assert str(error).startswith("b:9092 answered MetadataRequest with a broken header: ResponseHeader v1: ")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n", r"an HTTP answer \('HTTP/1.1 400 Bad Request'\): .*web"),
        (b"\x15\x03\x03\0\2\2\x50", "a TLS record: this listener speaks TLS"),
        (b"\x16\x03\x01\2\0\1\0", "a TLS record: this listener speaks TLS"),
        (b"220 mail.example.org ESMTP\r\n", r"text \('220 mail.example.org ESMTP.*'\), not Kafka's protocol"),
        (b"-ERR unknown command\r\n", r"text \('-ERR unknown command.*not Kafka's protocol"),
        (b"\xde\xad\xbe\xef", "a frame of -559038737 bytes"),
    ],
)
def test_who_is_plainly_not_kafka_is_named(data: bytes, told: str) -> None:
    error = poisoned_by(data)
    with pytest.raises(WireError, match=f"^b:9092 sent {told}"):
        raise error
    poisoned_by(data, 1)


def test_the_first_failure_counts_and_meets_later_calls() -> None:
    pipeline, box = make(), Box()
    pipeline.send(metadata(), 12, box)
    cause = OSError("cable")
    lost = ConnectionLost("b:9092 is gone")
    lost.__cause__ = cause
    pipeline.fail(lost)
    pipeline.fail(ConnectionLost("later"))
    assert box.error is lost
    for call in (lambda: pipeline.send(metadata(), 12, Box()), lambda: pipeline.receive(b"\0")):
        with pytest.raises(ConnectionLost, match=r"^b:9092 is gone$") as caught:
            call()
        # A single error raised in many tasks would gather all their tracebacks.
        assert caught.value is not lost
        assert caught.value.__cause__ is cause
    assert pipeline.in_flight == 0


# --- any bytes -----------------------------------------------------------------------------------------------

STREAMS = list(seeds("frames"))
"""A byte that says which requests wait, and then a golden answer to each of them."""


def test_golden_streams_are_the_same_whole_in_pieces_and_with_a_tail() -> None:
    for stream in STREAMS:
        assert frames(stream)
        heard = fed(stream[0], [stream[1:]])
        assert len(heard.answers) == len(asked(stream[0]))
        assert all(message is not None for _, _, message in heard.answers)
        assert (heard.failure, heard.in_flight) == (None, 0)


def test_a_stream_cut_at_any_byte_is_its_beginning() -> None:
    for waiting, *data in STREAMS:
        whole = fed(waiting, [bytes(data)])
        for end in range(len(data)):
            cut = fed(waiting, [bytes(data[:end])])
            assert cut.failure is None
            assert cut.answers == whole.answers[: len(cut.answers)]
            assert len(cut.answers) + cut.in_flight == len(whole.answers)
            assert fed(waiting, [bytes(data[:end]), bytes(data[end:])]) == whole


@st.composite
def damaged_streams(draw: st.DrawFn) -> tuple[int, bytes]:
    """A golden stream with pieces replaced, left out or put in."""
    waiting, *rest = draw(st.sampled_from(STREAMS))
    data = bytes(rest)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 6)))
        lies = st.sampled_from((b"\0\0\0\0", b"\0\0\0\4", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0\1\0\0"))
        data = data[:start] + draw(st.one_of(st.binary(max_size=6), lies)) + data[end:]
    return waiting, data


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(damaged_streams())
def test_a_damaged_stream_is_the_same_in_every_way_it_comes(stream: tuple[int, bytes]) -> None:
    read_frames(*stream)


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.integers(0, 19), st.binary(max_size=80))
def test_any_bytes_are_the_same_in_every_way_they_come(waiting: int, data: bytes) -> None:
    read_frames(waiting, data)


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 5, MAX_FRAME, 128 << 20, 2**31 - 1])
def test_a_size_allocates_nothing(size: int) -> None:
    pipeline, box = make(128 << 20), Box()
    pipeline.send(metadata(), 12, box)
    tracemalloc.start()
    try:
        pipeline.receive(pack(">i", size) + b"\0\0")
        held, peak = tracemalloc.get_traced_memory()
    except WireError:
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held <= peak < 10_000


def test_what_is_held_is_what_came() -> None:
    pipeline, box = make(128 << 20), Box()
    pipeline.send(metadata(), 12, box)
    pipeline.receive(pack(">i", 128 << 20))
    tracemalloc.start()
    try:
        for _ in range(100):
            pipeline.receive(bytes(10_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 1_000_000 < peak < 2_200_000  # a frame grows in steps of twice its size


# --- going ahead, and bare tokens --------------------------------------------------------------------------------


def test_what_is_held_back_comes_behind_what_goes_ahead() -> None:
    pipeline, order, idle = make(), list[Box](), list[bool]()
    before, held, ahead = Box(order), Box(order), Box(order)
    pipeline.send(metadata("a"), 12, before)
    pipeline.hold(lambda: idle.append(True))
    pipeline.send(metadata("b"), 12, held)
    assert not idle
    assert pipeline.in_flight == 2
    pipeline.receive(answered(0, b"before"))
    assert idle
    pipeline.send(metadata("c"), 12, ahead, ahead=True)
    assert pipeline.next_answered == ("MetadataRequest", ahead)
    pipeline.receive(answered(2, b"ahead"))
    pipeline.release()
    pipeline.receive(answered(1, b"held"))
    assert order == [before, ahead, held]
    assert [one.body for one in order] == [b"before", b"ahead", b"held"]


def test_an_idle_pipeline_says_so_when_it_begins_to_hold() -> None:
    idle = list[bool]()
    make().hold(lambda: idle.append(True))
    assert idle


def test_those_that_are_held_back_hear_of_a_failure_too() -> None:
    pipeline, box = make(), Box()
    pipeline.hold(lambda: None)
    pipeline.send(metadata(), 12, box)
    pipeline.fail(ConnectionLost("gone"))
    assert isinstance(box.error, ConnectionLost)
    assert pipeline.in_flight == 0


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("said", [b"", b"a", b"a token"])
def test_a_bare_token_has_no_header_and_neither_has_its_answer(said: bytes, step: int) -> None:
    pipeline, box, behind = make(), Box(), Box()
    assert pipeline.send_bare(b"token", box) == b"\0\0\0\5token"
    pipeline.send(metadata(), 12, behind)
    feed(pipeline, pack(">i", len(said)) + said + answered(0, b"body"), step)
    assert (box.body, behind.body) == (said, b"body")


def test_no_bare_token_after_a_failure() -> None:
    pipeline = make()
    pipeline.fail(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost):
        pipeline.send_bare(b"token", Box())


# --- notes ---------------------------------------------------------------------------------------------------


def test_requests_with_a_time_are_noted_when_they_end() -> None:
    observers, noted, now, at = Observers(), list[RequestNote](), [7.0], Address("b", 9092)
    notes = ConnectionReports(observers, at, "data", {at: 4}, lambda: now[0])
    pipeline = make(notes=notes)
    boxes = [Box() for _ in range(4)]
    frames = [pipeline.send(metadata(), 12, box, now=1.0) for box in boxes[:1]]
    pipeline.receive(answered(0, pack(">i", 0)))
    assert noted == []  # nobody takes notes yet

    observers.note_request = noted.append
    frames += [pipeline.send(metadata("a"), 12, boxes[1], now=5.0), pipeline.send(metadata(), 12, boxes[2])]
    frames.append(pipeline.send(metadata(), 12, boxes[3], now=6.0))
    first = answered(1, pack(">i", 250))
    pipeline.receive(first + answered(2, pack(">i", 0)))
    now[0] = 8.0
    pipeline.connection_closed()
    (answer, lost), kind = noted, notes.kind(MetadataRequest, 12)
    assert answer == (kind, len(frames[1]), len(first) - 4, 2.0, 0.25, None, 7.0)
    assert lost[:5] == (kind, len(frames[3]), 0, 2.0, 0.0)
    assert isinstance(lost[5], ConnectionLost)
    assert (kind.api, kind.version, kind.lane, kind.node_id) == ("Metadata", 12, "data", 4)
    assert all(box.body is not None for box in boxes[:3])
    assert boxes[3].error is lost[5]
