"""OpenTelemetry's spans of the blocking client, whose user runs on another thread than the client."""

from __future__ import annotations

from secrets import token_hex

from opentelemetry import trace
from support.collected import Collected, attributes, parent_id, span_id

from aiokafkawire import ConfigResource, Reject
from aiokafkawire.blocking import Client
from aiokafkawire.opentelemetry import instrument


def test_a_record_is_followed_through_the_calling_thread(kafka: Client) -> None:
    topic = f"orders-{token_hex(4)}"
    kafka.admin.create_topics({topic: 1})
    collected = Collected()
    made = instrument(kafka, collected.tracers, collected.meters)
    with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        with collected.tracer.start_as_current_span("request"):
            for number in range(3):
                producer.send(topic, b"%d" % number, partition=0)
        handled = []
        for record in consumer:
            with collected.tracer.start_as_current_span("work"):
                handled.append(record.value)
            if len(handled) == 2:
                break
        assert not trace.get_current_span().get_span_context().is_valid
        assert len(consumer.poll()) == 1
    made.uninstrument()
    sent = collected.spans(f"send {topic}")
    assert {parent_id(each) for each in sent} == {span_id(collected.span("request"))}
    processed = collected.spans(f"process {topic}")
    assert [parent_id(each) for each in processed] == [span_id(each) for each in sent[:2]]
    assert [parent_id(each) for each in collected.spans("work")] == [span_id(each) for each in processed]
    assert attributes(collected.span(f"poll {topic}"))["messaging.batch.message_count"] == 1
    assert collected.metrics()["messaging.process.duration"][0].count == 2
    collected.close()


def test_the_error_of_a_shared_record_is_in_its_span(kafka: Client) -> None:
    topic, group = f"orders-{token_hex(4)}", f"workers-{token_hex(4)}"
    kafka.admin.create_topics({topic: 1})
    kafka.admin.incremental_alter_configs({ConfigResource.group(group): {"share.auto.offset.reset": "earliest"}})
    collected = Collected()
    made = instrument(kafka, collected.tracers, collected.meters)
    with kafka.producer() as producer:
        producer.send(topic, b"value")
    with kafka.share_consumer(topic, group_id=group) as consumer:
        for record in consumer:
            with record:
                raise Reject("bad")
            break
    made.uninstrument()
    processed = collected.span(f"process {topic}")
    assert parent_id(processed) == span_id(collected.span(f"send {topic}"))
    assert attributes(processed)["error.type"] == "Reject"
    collected.close()
