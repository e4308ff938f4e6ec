"""OpenTelemetry's spans of share consumers, whichever broker they talk to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from contract.conftest import Where
from opentelemetry import trace
from opentelemetry.trace import StatusCode
from support.collected import Collected, attributes, linked, parent_id, span_id
from support.committed import raw
from support.share_members import configure

from aiokafkawire import Client, Reject
from aiokafkawire.opentelemetry import instrument

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster(quick_cluster: Where) -> Where:
    return quick_cluster


@pytest.fixture
async def topic(kafka: Client, new_name: Callable[[], str]) -> str:
    name = new_name()
    await kafka.admin.create_topics({name: 1})
    return name


@pytest.fixture
async def share_group(cluster: Where, group: str) -> str:
    async with raw(cluster) as client:
        await configure(client, group, share_auto_offset_reset="earliest")
    return group


@pytest.fixture
def collected(kafka: Client) -> Iterator[Collected]:
    made = Collected()
    instrumentation = instrument(kafka, made.tracers, made.meters)
    yield made
    instrumentation.uninstrument()
    made.close()


async def test_each_record_has_a_span_and_failures_have_their_errors(
    kafka: Client, topic: str, share_group: str, collected: Collected
) -> None:
    bodies: list[Exception | None] = [None, KeyError("x"), Reject("bad"), None]
    async with kafka.producer() as producer:
        for number in range(4):
            with collected.tracer.start_as_current_span("request"):
                await producer.send(topic, b"%d" % number)
    async with kafka.share_consumer(topic, group_id=share_group) as consumer:
        taken = 0
        async for record in consumer:
            assert trace.get_current_span().get_span_context().is_valid
            failure = bodies[taken]
            try:
                async with record:
                    if failure is not None:
                        raise failure
            except KeyError:
                pass  # the record is released, and comes again
            taken += 1
            if taken == 4:
                break
        assert not trace.get_current_span().get_span_context().is_valid
    sent = {attributes(each)["messaging.kafka.offset"]: each for each in collected.spans(f"send {topic}")}
    processed = collected.spans(f"process {topic}")
    assert len(processed) == 4
    for each in processed:
        sender = span_id(sent[attributes(each)["messaging.kafka.offset"]])
        assert (parent_id(each), linked(each)) == (sender, {sender})
        assert attributes(each)["messaging.consumer.group.name"] == share_group
    assert [attributes(each).get("error.type") for each in processed] == [None, "KeyError", "Reject", None]
    is_error = [each.status.status_code is StatusCode.ERROR for each in processed]
    assert is_error == [False, True, True, False]
    assert [[event.name for event in each.events] for each in processed] == [[], ["exception"], ["exception"], []]


async def test_polled_records_have_one_span_for_the_call(
    kafka: Client, topic: str, share_group: str, collected: Collected
) -> None:
    async with kafka.producer() as producer:
        await producer.send(topic, b"value")
    async with kafka.share_consumer(topic, group_id=share_group) as consumer:
        (record,) = await consumer.poll()
        with pytest.raises(KeyError):
            async with record:
                raise KeyError("x")  # there is no span of the record that could get this error
    (sent,) = collected.spans(f"send {topic}")
    (received,) = collected.spans(f"poll {topic}")
    assert linked(received) == {span_id(sent)}
    assert attributes(received)["messaging.consumer.group.name"] == share_group
    assert received.status.status_code is StatusCode.UNSET
    assert collected.spans(f"process {topic}") == []
