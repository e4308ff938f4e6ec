"""OpenTelemetry's spans and metrics of producers and consumers, whichever broker they talk to."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode
from support.collected import Collected, attributes, context_of, linked, parent_id, span_id, trace_id

from aiokafkawire import Client, NewTopic, TopicPartition
from aiokafkawire.errors import KafkaError, UsageError
from aiokafkawire.opentelemetry import extract_context, instrument, process_span
from aiokafkawire.transform import OutgoingRecord

from .conftest import Where

pytestmark = pytest.mark.anyio

JAVAS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
"""A header of another implementation: the example in W3C's recommendation."""


@pytest.fixture
def collected() -> Iterator[Collected]:
    made = Collected()
    yield made
    made.close()


@pytest.fixture
def silent() -> Iterator[Collected]:
    made = Collected(ALWAYS_OFF)
    yield made
    made.close()


def watch(kafka: Client, collected: Collected) -> None:
    instrument(kafka, collected.tracers, collected.meters)


def names(record: Any) -> list[str]:
    return [name for name, _ in record.headers]


async def read(kafka: Client, topic: str, count: int) -> list[Any]:
    """Read without spans: records are taken as batches."""
    found: list[Any] = []
    async with kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        async for batch in consumer.batches():
            found.extend(batch)
            if len(found) >= count:
                return found
    raise AssertionError


async def test_a_record_is_followed_from_the_request_to_its_processing(
    kafka: Client, topic: str, collected: Collected
) -> None:
    watch(kafka, collected)
    async with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        with collected.tracer.start_as_current_span("request"):
            written = await producer.send(topic, b"value", key=b"key")
        async for record in consumer:
            with collected.tracer.start_as_current_span("work"):
                assert record.value == b"value"
            break
    request, work = collected.span("request"), collected.span("work")
    sent, processed = collected.span(f"send {topic}"), collected.span(f"process {topic}")
    assert parent_id(sent) == span_id(request)
    assert parent_id(processed) == span_id(sent)
    assert linked(processed) == {span_id(sent)}
    assert parent_id(work) == span_id(processed)
    assert {trace_id(each) for each in collected.spans()} == {trace_id(request)}
    assert (sent.kind, processed.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    place = {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.destination.partition.id": str(written.partition),
        "messaging.kafka.offset": written.offset,
        "messaging.kafka.message.key": "key",
        "messaging.client.id": "aiokafkawire",
    }
    assert attributes(processed) == place | {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
    }
    assert place.items() <= attributes(sent).items()
    assert attributes(sent)["messaging.operation.name"] == "send"
    assert attributes(sent)["server.port"] > 0
    assert sent.status.status_code is StatusCode.UNSET


async def test_each_awaited_send_has_a_span_and_enqueued_records_share_one(
    kafka: Client, topic: str, collected: Collected
) -> None:
    watch(kafka, collected)
    async with kafka.producer(linger_ms=50) as producer:
        await producer.partitions_for(topic)
        with collected.tracer.start_as_current_span("request"):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(lambda: producer.send(topic, b"alone", partition=0))
            for _ in range(4):
                producer.send_nowait(topic, b"together", partition=1)
            await producer.enqueue_many(topic, [b"together"] * 5, partition=1)
            await producer.flush()
    spans = collected.spans(f"send {topic}")
    alone = [each for each in spans if attributes(each)["messaging.destination.partition.id"] == "0"]
    (together,) = [each for each in spans if each not in alone]
    assert sorted(attributes(each)["messaging.kafka.offset"] for each in alone) == [0, 1, 2]
    assert attributes(together)["messaging.batch.message_count"] == 9
    assert "messaging.kafka.offset" not in attributes(together)
    records = await read(kafka, topic, 12)
    assert len({dict(record.headers)["traceparent"] for record in records}) == 4


async def test_without_a_span_around_it_a_batch_is_a_trace_of_its_own(
    kafka: Client, topic: str, collected: Collected
) -> None:
    watch(kafka, collected)
    async with kafka.producer() as producer:
        await producer.partitions_for(topic)
        for _ in range(2):
            await producer.send(topic, b"value", partition=0)
        for _ in range(10):
            producer.send_nowait(topic, b"value", partition=1)
        await producer.flush()
    spans = collected.spans(f"send {topic}")
    assert [parent_id(each) for each in spans] == [None] * 3
    assert len({trace_id(each) for each in spans}) == 3
    assert [attributes(each).get("messaging.batch.message_count") for each in spans] == [None, None, 10]


async def test_unsampled_records_get_no_headers_and_no_spans(kafka: Client, topic: str, silent: Collected) -> None:
    watch(kafka, silent)
    async with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        await producer.send(topic, b"root")
        with silent.tracer.start_as_current_span("request"):
            await producer.send(topic, b"child")
        records = [await anext(consumer) for _ in range(2)]
    assert [names(record) for record in records] == [[], []]
    assert silent.spans() == []


async def test_a_ratio_of_the_batches_is_sampled(kafka: Client, topic: str) -> None:
    collected = Collected(TraceIdRatioBased(0.5))
    watch(kafka, collected)
    async with kafka.producer() as producer:
        await producer.partitions_for(topic)
        for _ in range(64):
            await producer.send(topic, b"value")
    records = await read(kafka, topic, 64)
    sampled = [record for record in records if record.headers]
    assert 0 < len(sampled) < 64  # all or none: 1 of 2**63
    assert len(collected.spans(f"send {topic}")) == len(sampled)
    collected.close()


async def test_poll_is_a_span_with_links_to_all_senders(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    async with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        for _ in range(2):
            await producer.send(topic, b"value", partition=0)
        senders = {span_id(each) for each in collected.spans()}
        records: list[Any] = []
        while len(records) < 2:
            records += await consumer.poll()
        for record in records:
            with (
                process_span(record, tracer_provider=collected.tracers),
                collected.tracer.start_as_current_span("work"),
            ):
                pass
    polls = collected.spans(f"poll {topic}")
    assert set().union(*map(linked, polls)) == senders
    assert sum(attributes(each)["messaging.batch.message_count"] for each in polls) == 2
    assert {each.kind for each in polls} == {SpanKind.CLIENT}
    assert attributes(polls[0])["messaging.operation.type"] == "receive"
    assert all(each.start_time <= each.end_time for each in polls)  # type: ignore[operator]
    processed = collected.spans(f"process {topic}")
    assert {parent_id(each) for each in processed} == senders
    assert {parent_id(each) for each in collected.spans("work")} == {span_id(each) for each in processed}


async def test_records_of_one_sender_share_the_span_of_an_iteration(
    kafka: Client, topic: str, collected: Collected
) -> None:
    watch(kafka, collected)
    seen: list[int] = []
    async with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        await producer.partitions_for(topic)
        for _ in range(3):
            producer.send_nowait(topic, b"value", partition=0)
        await producer.flush()
        async for _ in consumer:
            seen.append(trace.get_current_span().get_span_context().span_id)
            if len(seen) == 3:
                break
        assert not trace.get_current_span().get_span_context().is_valid
    processed = collected.spans(f"process {topic}")
    assert seen == sorted(seen, key=[span_id(each) for each in processed].index)
    assert sum(attributes(each).get("messaging.batch.message_count", 1) for each in processed) == 3


async def test_the_context_before_the_loop_is_back_after_it(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    async with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        await producer.send(topic, b"value")
        with collected.tracer.start_as_current_span("outer") as outer:
            with pytest.raises(RuntimeError, match="of the body"):
                async for _ in consumer:
                    assert trace.get_current_span() is not outer
                    raise RuntimeError("of the body")
            assert trace.get_current_span() is outer
    sent, processed = collected.span(f"send {topic}"), collected.span(f"process {topic}")
    assert parent_id(processed) == span_id(collected.span("outer"))
    assert linked(processed) == {span_id(sent)}


async def test_two_tasks_have_contexts_of_their_own(
    kafka: Client, new_name: Callable[[], str], collected: Collected
) -> None:
    watch(kafka, collected)
    topics = [new_name(), new_name()]
    await kafka.admin.create_topics(dict.fromkeys(topics, 1))
    both = anyio.Event()
    seen: dict[str, Any] = {}

    async def handle(topic: str) -> None:
        async with kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
            async for _ in consumer:
                before = trace.get_current_span()
                if seen:
                    both.set()
                seen[topic] = before
                await both.wait()
                assert trace.get_current_span() is before
                return

    async with kafka.producer() as producer:
        for topic in topics:
            await producer.send(topic, b"value")
        async with anyio.create_task_group() as tasks:
            for topic in topics:
                tasks.start_soon(handle, topic)
    for topic in topics:
        assert seen[topic].get_span_context().span_id == span_id(collected.span(f"process {topic}"))


async def test_another_implementations_header_is_understood(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    headers = [("app", b"1"), ("traceparent", JAVAS.encode()), ("tracestate", b"congo=t61rcWkgMzE")]
    async with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        with collected.tracer.start_as_current_span("request"):
            await producer.send(topic, b"value", headers=headers)
            await producer.send(topic, b"unsampled", headers={"traceparent": JAVAS[:-1].encode() + b"0"})
            await producer.send(topic, b"damaged", headers={"traceparent": b"\xff\xfe"})
        records = [record async for record in _first(consumer, 3)]
    assert list(records[0].headers) == headers  # a context of the user's own is not changed
    assert collected.spans(f"send {topic}") == []
    processed = collected.span(f"process {topic}")
    assert f"{trace_id(processed):032x}" == JAVAS[3:35]
    assert f"{parent_id(processed):016x}" == JAVAS[36:52]
    assert context_of(processed).trace_state["congo"] == "t61rcWkgMzE"


async def _first(consumer: Any, count: int) -> Any:
    async for record in consumer:
        yield record
        count -= 1
        if not count:
            return


async def test_baggage_travels_with_the_record(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    async with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        token = context.attach(baggage.set_baggage("tenant", "a"))
        try:
            await producer.send(topic, b"value")
        finally:
            context.detach(token)
        async for record in consumer:
            assert baggage.get_baggage("tenant") == "a"
            assert baggage.get_baggage("tenant", extract_context(record)) == "a"
            break
        assert baggage.get_baggage("tenant") is None


async def test_a_record_that_the_broker_refuses_has_an_error(
    kafka: Client, new_name: Callable[[], str], collected: Collected
) -> None:
    watch(kafka, collected)
    topic = new_name()
    await kafka.admin.create_topics({topic: NewTopic(1, 1, configs={"max.message.bytes": "2000"})})
    async with kafka.producer() as producer:
        with pytest.raises(KafkaError):
            await producer.send(topic, b"x" * 4_000)
        # A batch that is too large is split, and its span is that of both parts.
        await producer.enqueue_many(topic, [b"x" * 500] * 8)
        await producer.flush()
    failed, split = collected.spans(f"send {topic}")
    assert failed.status.status_code is StatusCode.ERROR
    assert attributes(failed)["error.type"] == "MESSAGE_TOO_LARGE"
    assert "messaging.kafka.offset" not in attributes(failed)
    assert split.status.status_code is StatusCode.UNSET
    assert attributes(split)["messaging.batch.message_count"] == 8


async def test_records_of_transactions_have_spans(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    async with kafka.producer(transactional_id=topic) as producer:
        with pytest.raises(RuntimeError, match="undo"):
            async with producer.transaction() as transaction:
                await transaction.send(topic, b"aborted", partition=0)
                raise RuntimeError("undo")
        async with producer.transaction() as transaction:
            written = await transaction.send(topic, b"committed", partition=0)
    offsets = [attributes(each)["messaging.kafka.offset"] for each in collected.spans(f"send {topic}")]
    assert offsets == [0, written.offset]


async def test_a_failure_of_processing_is_in_the_explicit_span(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    async with kafka.producer() as producer:
        await producer.send(topic, b"value")
    (record,) = await read(kafka, topic, 1)
    with pytest.raises(KeyError), process_span([record], group="g", tracer_provider=collected.tracers):
        raise KeyError("x")
    processed = collected.span(f"process {topic}")
    assert processed.status.status_code is StatusCode.ERROR
    assert attributes(processed)["error.type"] == "KeyError"
    assert attributes(processed)["messaging.consumer.group.name"] == "g"
    assert [event.name for event in processed.events] == ["exception"]


async def test_batches_have_the_spans_that_the_user_makes(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    async with kafka.producer() as producer:
        for number in range(3):
            with collected.tracer.start_as_current_span("request"):
                await producer.send(topic, b"%d" % number, partition=0)
    sent = {span_id(each) for each in collected.spans(f"send {topic}")}
    assert len(sent) == 3
    found: set[int] = set()
    async with kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        async for batch in consumer.batches():
            records = list(batch)
            assert not trace.get_current_span().get_span_context().is_valid
            with process_span(records, tracer_provider=collected.tracers):
                assert trace.get_current_span().get_span_context().is_valid
            found |= {record.offset for record in records}
            if found == {0, 1, 2}:
                break
    processed = collected.spans(f"process {topic}")
    assert set().union(*(linked(each) for each in processed)) == sent
    assert sum(attributes(each).get("messaging.batch.message_count", 1) for each in processed) == 3
    assert collected.spans(f"poll {topic}") == []


async def test_what_is_no_record_is_refused() -> None:
    for wrong in (None, 1, "record", b"x", [1]):
        with pytest.raises(UsageError, match="record"), process_span(wrong):
            pass
    with pytest.raises(UsageError, match="record"):
        extract_context(5)


async def test_transform_has_a_span_of_its_transaction(
    kafka: Client, topic: str, new_name: Callable[[], str], collected: Collected
) -> None:
    watch(kafka, collected)
    target, group = new_name(), new_name()
    await kafka.admin.create_topics({target: 1})
    async with kafka.producer() as producer:
        for number in range(3):
            await producer.send(topic, b"%d" % number)
    senders = {span_id(each) for each in collected.spans(f"send {topic}")}
    seen: list[Any] = []

    async def process(records: list[Any]) -> list[OutgoingRecord]:
        seen.append(trace.get_current_span().get_span_context().span_id)
        return [OutgoingRecord(target, record.value) for record in records]

    count = await kafka.transform(topic, process, group_id=group, transactional_id=group, until_end=True)
    assert count == 3
    processed = collected.spans(f"process {topic}")
    assert [span_id(each) for each in processed] == seen
    assert set().union(*map(linked, processed)) == senders
    assert {attributes(each)["messaging.consumer.group.name"] for each in processed} == {group}


async def test_metrics_have_the_conventions_names(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    assert kafka._cluster.observers.request_ended is None  # it would make each request cost some microseconds
    async with (
        kafka.producer() as producer,
        kafka.consumer(topic, group_id=topic, auto_offset_reset="earliest") as consumer,
    ):
        for _ in range(5):
            await producer.send(topic, b"value")
        count = 0
        while count < 5:
            count += len(await consumer.poll())
        await consumer.commit()
        metrics = collected.metrics()
    durations = {
        point.attributes["messaging.operation.name"]: point for point in metrics["messaging.client.operation.duration"]
    }
    assert set(durations) == {"send", "poll", "commit"}
    assert durations["send"].count >= 1  # under load, a sample; a batch that is tried again counts each time
    counts = metrics["aiokafkawire.request.duration.count"]
    (produced,) = (point.value for point in counts if point.attributes["api"] == "Produce")
    assert produced >= 5  # more if the new topic's leader was not ready
    assert durations["send"].attributes["server.port"] > 0
    assert durations["commit"].attributes["messaging.consumer.group.name"] == topic
    assert durations["send"].explicit_bounds[0] == 0.005
    (sent,) = metrics["messaging.client.sent.messages"]
    (consumed,) = metrics["messaging.client.consumed.messages"]
    assert sent.value >= 5
    assert consumed.value == 5
    assert sent.attributes["messaging.destination.name"] == topic
    lag = metrics["aiokafkawire.consumer.lag"]
    assert {point.attributes["messaging.consumer.group.name"] for point in lag} == {topic}
    assert {point.value for point in lag} == {0}
    assert metrics["aiokafkawire.producer.buffer.limit"][0].value == 32 * 1024 * 1024


async def test_without_a_tracer_there_are_metrics_only(kafka: Client, topic: str, collected: Collected) -> None:
    instrument(kafka, trace.NoOpTracerProvider(), collected.meters)
    async with kafka.producer() as producer:
        await producer.send(topic, b"alone")
    (record,) = await read(kafka, topic, 1)
    assert record.headers == ()
    (sent,) = collected.metrics()["messaging.client.sent.messages"]
    assert sent.value >= 1
    # Nor do records cost more: nothing looks at their headers for a span.
    assert kafka._cluster.tracing is not None
    assert kafka.consumer(topic)._iteration.tracing is None
    assert kafka.share_consumer(topic, group_id=topic)._tracing is None


async def test_after_uninstrument_there_is_nothing_more(cluster: Where, topic: str, collected: Collected) -> None:
    made = instrument(None, collected.tracers, collected.meters)
    try:
        async with cluster.client() as first, first.producer() as producer:
            await producer.send(topic, b"traced")
            with pytest.raises(UsageError, match="already"):
                instrument(first)
            made.uninstrument()
            made.uninstrument()
            await producer.send(topic, b"untraced")
            async with cluster.client() as second:
                records = await read(second, topic, 2)
                watch(first, collected)
            assert collected.metrics()["aiokafkawire.connections"]
    finally:
        made.uninstrument()
    assert len(collected.spans()) == 1
    assert sorted(names(record) for record in records) == [[], ["traceparent"]]


async def test_every_client_is_counted_apart_by_its_name(cluster: Where, topic: str, collected: Collected) -> None:
    async with cluster.client() as uncounted, uncounted.producer() as producer:
        await producer.send(topic, b"first")  # until the topic has a leader: each attempt counts
    made = instrument(None, collected.tracers, collected.meters)
    try:
        async with cluster.client(client_id="one") as one, cluster.client(client_id="two") as two:
            for kafka, count in ((one, 1), (two, 2)):
                async with kafka.producer() as producer:
                    for _ in range(count):
                        await producer.send(topic, b"value")
            sent = collected.metrics()["messaging.client.sent.messages"]
    finally:
        made.uninstrument()
    assert {point.attributes["messaging.client.id"]: point.value for point in sent} == {"one": 1, "two": 2}


async def test_counters_outlive_their_clients(cluster: Where, topic: str, collected: Collected) -> None:
    async def send(count: int) -> None:
        async with cluster.client(client_id="job") as kafka, kafka.producer() as producer:
            watch(kafka, collected)
            for _ in range(count):
                await producer.send(topic, b"value")

    before = 0
    for count, total in ((3, 3), (2, 5)):  # a second client of this name goes on where the first has ended
        await send(count)
        gc.collect()
        metrics = collected.metrics()
        (batches,) = metrics["aiokafkawire.producer.batch.duration.count"]
        assert batches.value == total
        (sent,) = metrics["messaging.client.sent.messages"]
        assert sent.value >= before + count  # more if the new topic's leader was not ready
        before = sent.value
        assert "aiokafkawire.connections" not in metrics  # a gauge
    (batches,) = collected.metrics()["aiokafkawire.producer.batch.duration.count"]
    assert batches.value == 5


async def test_wrong_providers_are_refused(kafka: Client) -> None:
    for wrong in ({"tracer_provider": 1}, {"meter_provider": "x"}, {"kafka": object()}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            instrument(**wrong)


async def test_records_leave_room_for_no_span(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    async with kafka.producer(max_request_size=300) as producer:
        await producer.send(topic, b"x" * 100)
    (record,) = await read(kafka, topic, 1)
    assert names(record) == []
    assert collected.spans() == []


async def test_a_position_moves_past_traced_records(kafka: Client, topic: str, collected: Collected) -> None:
    watch(kafka, collected)
    async with kafka.producer() as producer, kafka.consumer() as consumer:
        await producer.send(topic, b"value", partition=0)
        consumer.assign({TopicPartition(topic, 0): 0})
        record = await anext(consumer)
        with collected.tracer.start_as_current_span("work"):
            assert consumer.position(TopicPartition(topic, 0)) == 1
        assert record.offset == 0
    assert parent_id(collected.span("work")) is not None
