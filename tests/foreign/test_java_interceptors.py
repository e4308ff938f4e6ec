"""Interceptors are called as those of Java's client: the same calls, in the same order, with the same results."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from support.apache_kafka import NEWEST, ApacheKafka, missing, resolve
from support.needing import require

from aiokafkawire import Client, KafkaError
from aiokafkawire.interceptors import ConsumerInterceptor, ProducerInterceptor, ProducerRecord
from aiokafkawire.types import RecordMetadata

pytestmark = [pytest.mark.anyio, pytest.mark.kafka]


_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


def run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(headers: Any) -> str:
    return "".join(name for name, _ in headers)


class Sees(ProducerInterceptor):
    def __init__(self, name: str, lines: list[str]) -> None:
        self.name, self.lines = name, lines

    def on_send(self, record: ProducerRecord[str, str]) -> ProducerRecord[str, str]:
        assert record.value is not None
        self.lines.append(f"{self.name} send {record.value[0]} {names(record.headers)}")
        return record.with_header(self.name, b"")

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None, headers: Any) -> None:
        offset = "-1 failed" if error is not None else str(metadata.offset)
        self.lines.append(f"{self.name} acknowledged {metadata.partition} {offset} {names(headers)}")

    def close(self) -> None:
        self.lines.append(f"{self.name} closed")


class Broken(Sees):
    def on_send(self, record: ProducerRecord[str, str]) -> ProducerRecord[str, str]:
        self.lines.append("b send")
        raise LookupError

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None, headers: Any) -> None:
        self.lines.append("b acknowledged")
        raise LookupError


class Reads(ConsumerInterceptor):
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def on_consume(self, records: Any) -> Any:
        self.lines.append("consume " + "".join(record.value for record in records))
        return [record for record in records if record.value != "2"]

    def on_commit(self, offsets: Any) -> None:
        self.lines += [f"commit {at.offset}" for at in offsets.values()]

    def close(self) -> None:
        self.lines.append("closed")


async def produce(kafka: Client, topic: str, lines: list[str]) -> None:
    chain = [Sees("x", lines), Broken("b", lines), Sees("y", lines)]
    options: Any = {"linger_ms": 200, "max_request_size": 1000, "value_serializer": str.encode}
    async with kafka.producer(interceptors=chain, **options) as producer:
        for value in "123":
            await producer.enqueue(topic, value)
        await producer.flush()
        with pytest.raises(KafkaError):
            await producer.enqueue(topic, "L" * 2000, partition=0)
        with pytest.raises(KafkaError):
            await producer.enqueue("not a topic", "N")
    with pytest.raises(KafkaError):
        await producer.enqueue(topic, "C", partition=0)
    lines.append("refused")


async def consume(kafka: Client, topic: str, group: str, lines: list[str], *, auto: bool) -> None:
    options: Any = {"group_id": group, "auto_offset_reset": "earliest", "value_deserializer": bytes.decode}
    options |= {"enable_auto_commit": auto, "auto_commit_interval_ms": 60_000}
    async with kafka.consumer(topic, interceptors=[Reads(lines), Reads(lines)], **options) as consumer:
        lines += [f"user {record.value}" for record in await consumer.poll(timeout=60)]
        if not auto:
            await consumer.commit()
        await consumer.poll(timeout=0.01)


async def test_the_calls_are_those_of_java(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    require(missing() or (None if shutil.which("javac") else "Java's interceptors need `javac` on PATH"))
    async with Client(apache_kafka.bootstrap) as kafka:
        theirs, ours = f"java-{token_hex(4)}", f"ours-{token_hex(4)}"
        await kafka.admin.create_topics({theirs: 1, ours: 1})
        jars, source = f"{resolve(NEWEST)}/*", Path(__file__).with_name("Interceptors.java")
        run(["javac", "-cp", jars, "-d", str(tmp_path), str(source)])
        said = run(["java", *_JVM, "-cp", f"{tmp_path}:{jars}", source.stem, apache_kafka.bootstrap, theirs, theirs])
        lines: list[str] = []
        await produce(kafka, ours, lines)
        await consume(kafka, ours, f"{ours}-1", lines, auto=False)
        await consume(kafka, ours, f"{ours}-2", lines, auto=True)
    assert lines == said.splitlines()
