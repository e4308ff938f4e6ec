"""Large values in an object store: what is written and read, and what happens when the store fails."""

from __future__ import annotations

import importlib
import json
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from support.patience import SOON
from support.schema_registries import running_registry
from support.serializers import Gated, Marking, Slow, Unmarking
from support.virtual_time import virtual_time

from aiokafkawire import Client, ConfigError, ConfigResource, DeserializationError, TopicPartition, UsageError, blocking
from aiokafkawire.claim_check import ClaimCheckDeserializer, ClaimCheckSerializer, FsspecStore, delete_expired
from aiokafkawire.claim_check.references import HEADER, decode_reference
from aiokafkawire.errors import ClaimCheckError, ClaimCheckObjectDamaged, ClaimCheckObjectGone
from aiokafkawire.json_serialization import JsonDeserializer, JsonSerializer
from aiokafkawire.schema_registry import AvroDeserializer, AvroSerializer
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.broker import Broker

SMALL, LARGE = b"s" * 100, bytes(range(256)) * 40
DAY = 86_400.0


class Objects:
    """A store in memory, whose calls fail or wait as a test says."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.failures: list[Exception] = []
        self.gate = threading.Event()
        self.gate.set()
        self.running = self.most = 0
        self.entered = threading.Semaphore(0)
        self._lock = threading.Lock()

    def _enter(self, call: str) -> None:
        with self._lock:
            self.calls.append(call)
            self.running += 1
            self.most = max(self.most, self.running)
        self.entered.release()
        try:
            assert self.gate.wait(SOON)
            if self.failures:
                raise self.failures.pop(0)
        finally:
            with self._lock:
                self.running -= 1

    def write(self, key: str, data: bytes) -> None:
        self._enter("write")
        self.objects[key] = data

    def read(self, key: str, limit: int) -> bytes:
        self._enter("read")
        if key not in self.objects:
            raise FileNotFoundError(key)
        return self.objects[key][:limit]

    def names(self, folder: str) -> Iterable[str]:
        prefix = f"{folder}/" if folder else ""
        return {key.removeprefix(prefix).split("/")[0] for key in self.objects if key.startswith(prefix)}

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)


class AsyncObjects(Objects):
    """A store whose ``write`` would have to be awaited."""

    async def write(self, key: str, data: bytes) -> None:  # type: ignore[override]
        raise AssertionError


class LazyObjects(Objects):
    """A store that finds each name when it is asked for it."""

    def names(self, folder: str) -> Iterable[str]:
        prefix, seen = f"{folder}/" if folder else "", set[str]()
        for key in self.objects:
            name = key.removeprefix(prefix).split("/")[0]
            if key.startswith(prefix) and name not in seen:
                seen.add(name)
                yield name


class PlainFiles(LocalFileSystem):  # type: ignore[misc]
    """Files whose folders must be there, as of SFTP."""

    protocol = "plain"


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FsspecStore:
    return FsspecStore(f"memory://{uuid4().hex}" if request.param == "memory" else f"file://{tmp_path}/not/yet/there")


@pytest.fixture
async def kafka() -> AsyncIterator[Client]:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as client:
        broker.create_topic("t")
        with anyio.fail_after(4 * SOON):
            yield client


def keys_of(store: Any) -> list[str]:
    return sorted(
        f"{topic}/{folder}/{name}"
        for topic in store.names("")
        for folder in store.names(topic)
        for name in store.names(f"{topic}/{folder}")
    )


def serializer(store: Any, *given: Any, **options: Any) -> ClaimCheckSerializer[Any]:
    return ClaimCheckSerializer(store, *given, **{"threshold": 1000, **options})


async def read(kafka: Client, count: int, deserializer: Any = None, **options: Any) -> list[Any]:
    found: list[Any] = []
    async with kafka.consumer(
        "t", auto_offset_reset="earliest", value_deserializer=deserializer, **options
    ) as consumer:
        async for record in consumer:
            found.append(record)
            if len(found) == count:
                break
    return found


@pytest.mark.anyio
@pytest.mark.every_loop
async def test_large_values_are_objects_and_small_ones_are_not(kafka: Client, store: FsspecStore) -> None:
    async with kafka.producer(value_serializer=serializer(store)) as producer:
        await producer.partitions_for("t")
        producer.send_nowait("t", SMALL, headers={"a": b"1"})
        await producer.send("t", LARGE, headers={"a": b"1"})
        await producer.send("t", bytearray(LARGE))
        await producer.send("t", None)
        with pytest.raises(UsageError, match=r"send_nowait\(\) cannot wait for an asynchronous serializer"):
            producer.send_nowait("t", LARGE)
    keys = keys_of(store)
    assert [key.split("/")[:2] for key in keys] == [["t", "keep"]] * 2
    raw = await read(kafka, 4)
    assert raw[0].value == SMALL
    assert raw[0].headers == (("a", b"1"),)
    assert raw[1].headers == (("a", b"1"), (HEADER, b"1"))
    assert sorted(decode_reference(record.value).key for record in raw[1:3]) == keys
    assert raw[3].value is None
    found = await read(kafka, 4, ClaimCheckDeserializer(store))
    assert [record.value for record in found] == [SMALL, LARGE, LARGE, None]
    assert found[1].raw_value == raw[1].value


@pytest.mark.anyio
async def test_the_threshold_is_a_size_in_bytes(kafka: Client) -> None:
    store = Objects()
    async with kafka.producer(value_serializer=serializer(store, threshold=8)) as producer:
        await producer.send("t", b"8" * 8)
        await producer.send("t", memoryview(b"8" * 8).cast("H"))
        assert store.calls == []
        await producer.send("t", memoryview(b"9" * 10).cast("H"))
        await producer.send("t", b"9" * 9)
        assert store.calls == ["write"] * 2
    found = await read(kafka, 4, ClaimCheckDeserializer(store))
    assert [record.value for record in found] == [b"8" * 8, b"8" * 8, b"9" * 10, b"9" * 9]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("inner", "reader"),
    [
        (str.encode, bytes.decode),
        (JsonSerializer(), JsonDeserializer()),
        (Marking(), Unmarking()),
        (Slow(), Unmarking()),
    ],
)
async def test_it_wraps_other_serializers(kafka: Client, inner: Any, reader: Any) -> None:
    store = Objects()
    if isinstance(reader, Unmarking):
        reader.contexts.clear()
    async with kafka.producer(value_serializer=serializer(store, inner)) as producer:
        await producer.send("t", "small")
        await producer.send("t", "large" * 1000)
    assert len(store.objects) == 1
    found = await read(kafka, 2, ClaimCheckDeserializer(store, reader))
    assert [record.value for record in found] == ["small", "large" * 1000]
    if isinstance(reader, Unmarking):
        assert [context.topic for context in reader.contexts] == ["t", "t"]
    if isinstance(inner, Marking | Slow):  # whose headers stay
        assert [len(record.headers) for record in found] == [1, 2]


@pytest.mark.anyio
async def test_an_asynchronous_deserializer_inside(kafka: Client) -> None:
    store, gated = Objects(), Gated()
    async with kafka.producer(value_serializer=serializer(store)) as producer:
        await producer.send("t", b"y" * 2000)
        await producer.send("t", b"x" * 2000)
    gated.gate.set()
    consumer = ClaimCheckDeserializer(store, gated)
    assert (await read(kafka, 1, consumer))[0].value == "y" * 2000
    with pytest.raises(DeserializationError) as caught:
        await read(kafka, 2, consumer)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.anyio
@pytest.mark.parametrize("location", ["prefix", "header"])
async def test_with_a_schema_registry(kafka: Client, location: Any) -> None:
    store = Objects()
    async with running_registry() as (_, registry):
        avro = AvroSerializer(registry, '"string"', schema_id_location=location)
        async with kafka.producer(value_serializer=serializer(store, avro)) as producer:
            await producer.send("t", "large" * 1000)
            await producer.send("t", "small")
        found = await read(kafka, 2, ClaimCheckDeserializer(store, AvroDeserializer(registry)))
    assert [record.value for record in found] == ["large" * 1000, "small"]
    assert len(store.objects) == 1


@pytest.mark.anyio
async def test_the_page_runs_as_it_stands(kafka: Client) -> None:
    page = (Path(__file__).parents[2] / "docs" / "claim-check.md").read_text()
    names: dict[str, Any] = {"kafka": kafka}
    for snippet in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(snippet.replace("s3://my-bucket/kafka", f"memory://{uuid4().hex}"), names)
    (reference,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    key, digest = "images/2026-12-01/1796126400000-" + "9f" * 16, "ab" * 32
    decoded = decode_reference(reference.replace("9f...", "9f" * 16).replace("ab...", digest).encode())
    assert (decoded.key, decoded.expires_ms) == (key, 1_796_126_400_000)


@pytest.mark.anyio
async def test_the_header_of_a_copied_record_does_not_stay(kafka: Client) -> None:
    store = Objects()
    async with kafka.producer(value_serializer=serializer(store)) as producer:
        await producer.send("t", LARGE)
        (record,) = await read(kafka, 1, ClaimCheckDeserializer(store))
        await producer.send("t", SMALL, headers=record.headers)
        await producer.send("t", LARGE, headers=record.headers)
    found = await read(kafka, 3, ClaimCheckDeserializer(store))
    assert [record.value for record in found] == [LARGE, SMALL, LARGE]
    assert [len(record.headers) for record in found] == [1, 0, 1]


@pytest.mark.anyio
async def test_keys_are_never_objects(kafka: Client) -> None:
    store = Objects()
    check: Any = serializer(store)
    async with kafka.producer(key_serializer=check) as producer:
        with pytest.raises(UsageError, match="use the claim check as value_serializer"):
            await producer.send("t", b"v", key=LARGE)
    async with kafka.producer() as producer:
        await producer.send("t", b"v", key=b"k", headers={HEADER: b"1"})
    reader: Any = ClaimCheckDeserializer(store)
    async with kafka.consumer("t", auto_offset_reset="earliest", key_deserializer=reader) as consumer:
        assert (await anext(aiter(consumer))).key == b"k"
    assert store.calls == []


# --- errors --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_value_that_is_not_stored_is_not_sent(kafka: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiokafkawire.claim_check.object_store._BACKOFF_SECONDS", 0)
    store = Objects()
    async with kafka.producer(value_serializer=serializer(store)) as producer:
        store.failures = [OSError("1"), OSError("2")]
        await producer.send("t", LARGE)  # the third attempt succeeds
        assert store.calls == ["write"] * 3
        store.failures = [OSError("1"), OSError("2"), RuntimeError("the disk is full")]
        with pytest.raises(ClaimCheckError, match=r"could not write the object t/keep/\w+: RuntimeError: the disk is"):
            await producer.send("t", LARGE)
        for error in (PermissionError("no rights"), FileNotFoundError("no such bucket")):  # no retry helps
            store.calls.clear()
            store.failures = [error]
            with pytest.raises(ClaimCheckError, match=str(error)) as caught:
                await producer.send("t", LARGE)
            assert store.calls == ["write"]
            assert caught.value.key is not None
            assert not caught.value.retriable
            assert caught.value.__cause__ is error
        assert (await producer.send("t", SMALL)).offset == 1


@pytest.mark.anyio
async def test_an_object_that_cannot_be_loaded_has_its_record(kafka: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiokafkawire.claim_check.object_store._BACKOFF_SECONDS", 0)
    store = Objects()
    expiring = serializer(store, expires_after=DAY)
    expiring._wall_ms = lambda: 1_796_126_400_000 - int(DAY * 1000)  # a day before 2026-12-01 12:00
    async with kafka.producer(value_serializer=expiring) as producer:
        await producer.send("t", LARGE, key=b"k")
        await producer.send("t", LARGE)
        await producer.send("t", LARGE + b"3")
        await producer.send("t", SMALL)
        await producer.send("t", LARGE)
    first, second, third, _ = store.objects
    del store.objects[first]
    store.objects[second] = LARGE[:-1] + b"!"
    reader: ClaimCheckDeserializer[bytes] = ClaimCheckDeserializer(store, max_size=len(LARGE))
    reader._wall_ms = lambda: 1_796_126_400_000
    errors: list[DeserializationError] = []
    values: list[bytes | None] = []
    async with kafka.consumer("t", auto_offset_reset="earliest", value_deserializer=reader) as consumer:
        while len(values) < 2:
            try:
                async for record in consumer:
                    values.append(record.value)
                    if len(values) == 2:
                        break
            except DeserializationError as error:
                errors.append(error)
    assert values == [SMALL, LARGE]
    assert [(error.offset, error.failed, error.partition) for error in errors] == [
        (offset, "value", TopicPartition("t", 0)) for offset in range(3)
    ]
    gone, damaged, too_large = (error.__cause__ for error in errors)
    assert isinstance(gone, ClaimCheckObjectGone)
    assert (gone.key, gone.expires_ms) == (first, 1_796_126_400_000)
    assert "it expired at 2026-12-01 12:00:00 UTC" in str(gone)
    assert errors[0].raw_key == b"k"
    assert json.loads(errors[0].raw_value or b"")["key"] == first
    assert isinstance(damaged, ClaimCheckObjectDamaged)
    assert damaged.key == second
    assert isinstance(too_large, ClaimCheckError)
    assert str(too_large) == f"the object {third} has 10241 bytes, more than 10240 (max_size)"


@pytest.mark.anyio
async def test_gone_objects_become_dead_letters(kafka: Client) -> None:
    store = Objects()
    await kafka.admin.create_topics({"dead": 1})
    async with kafka.producer(value_serializer=serializer(store)) as producer:
        await producer.send("t", LARGE)
        await producer.send("t", SMALL)
    objects, store.objects = store.objects, {}
    found = await read(
        kafka, 1, ClaimCheckDeserializer(store), group_id="g", on_error="dead_letter", dead_letter_topic="dead"
    )
    assert found[0].value == SMALL
    store.objects = objects  # once it is back, the dead letter can be read
    async with kafka.consumer(
        "dead", auto_offset_reset="earliest", value_deserializer=ClaimCheckDeserializer(store)
    ) as consumer:
        letter = await anext(aiter(consumer))
    assert letter.value == LARGE
    assert dict(letter.headers)["aiokafkawire.failed.error"] == b"aiokafkawire.errors.ClaimCheckObjectGone"


@pytest.mark.anyio
async def test_only_some_calls_run_at_a_time() -> None:
    store = Objects()
    store.gate.clear()
    check = serializer(store, concurrency=3)

    async def write() -> None:
        await check.serialize(LARGE, SerializationContext("t", [], False))  # type: ignore[misc]

    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(write)
            for _ in range(3):
                await anyio.to_thread.run_sync(store.entered.acquire)
            store.gate.set()
    assert (store.most, len(store.objects)) == (3, 10)


@pytest.mark.anyio
@virtual_time
async def test_a_store_that_does_not_answer() -> None:
    store = Objects()
    store.gate.clear()
    check = serializer(store, timeout=10)
    try:
        began = anyio.current_time()
        with pytest.raises(ClaimCheckError, match=r"TimeoutError: it did not answer within 10 s \(timeout\)"):
            await check.serialize(LARGE, SerializationContext("t", [], False))  # type: ignore[misc]
        assert 30 < anyio.current_time() - began < 31
    finally:
        store.gate.set()


@pytest.mark.anyio
async def test_an_attempt_that_goes_on_does_not_damage_the_object_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiokafkawire.claim_check.object_store._BACKOFF_SECONDS", 0)
    store, record = Objects(), SerializationContext("t", [], False)
    written: list[str] = []

    def write(key: str, data: bytes) -> None:
        written.append(key)
        if len(written) == 1:
            raise TimeoutError("no answer")
        store.objects[key] = data

    store.write = write  # type: ignore[method-assign]
    data = await serializer(store).serialize(LARGE, record)  # type: ignore[misc]
    store.objects[written[0]] = b""  # the first attempt has opened its object only now
    assert await ClaimCheckDeserializer(store).deserialize(data, record) == LARGE  # type: ignore[misc]


@pytest.mark.anyio
@pytest.mark.every_loop
async def test_threads_that_do_not_end_are_not_joined_by_more() -> None:
    store = Objects()
    store.gate.clear()
    check = serializer(store, concurrency=2)

    async def write() -> None:
        await check.serialize(LARGE, SerializationContext("t", [], False))  # type: ignore[misc]

    try:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(write)
                await anyio.to_thread.run_sync(store.entered.acquire)
            tasks.cancel_scope.cancel()
        check._calls._timeout = 0.01
        with pytest.raises(ClaimCheckError, match=r"2 earlier calls \(concurrency\) have not ended for 0\.01 s"):
            await write()
        assert (store.running, store.calls) == (2, ["write"] * 2)
    finally:
        store.gate.set()
    check._calls._timeout = SOON
    await write()


@pytest.mark.anyio
@pytest.mark.every_loop
async def test_a_cancelled_call_does_not_wait_for_the_store(kafka: Client) -> None:
    store = Objects()
    store.gate.clear()
    async with kafka.producer(value_serializer=serializer(store, concurrency=1)) as producer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(producer.send, "t", LARGE))
            await anyio.to_thread.run_sync(store.entered.acquire)
            tasks.cancel_scope.cancel()
        store.gate.set()
        assert (await producer.send("t", LARGE)).offset == 0  # the slot was returned
        with anyio.CancelScope() as scope:
            scope.cancel()
            await producer.send("t", LARGE)
        assert (await producer.send("t", LARGE)).offset == 1


@pytest.mark.anyio
async def test_a_thread_that_cannot_start_returns_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiokafkawire.claim_check.object_store._BACKOFF_SECONDS", 0)
    store = Objects()
    check = serializer(store, concurrency=1, timeout=SOON)

    async def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(anyio.to_thread, "run_sync", refuse)
        with pytest.raises(ClaimCheckError, match="RuntimeError: can't start new thread"):
            await check.serialize(LARGE, SerializationContext("t", [], False))  # type: ignore[misc]
    await check.serialize(LARGE, SerializationContext("t", [], False))  # type: ignore[misc]
    assert store.calls == ["write"]


def test_event_loops_share_a_serializer() -> None:
    store = Objects()
    check = serializer(store, concurrency=1)

    async def write() -> None:
        await check.serialize(LARGE, SerializationContext("t", [], False))  # type: ignore[misc]

    for backend in ("asyncio", "asyncio", "trio"):
        anyio.run(write, backend=backend)
    assert len(store.objects) == 3


@pytest.mark.anyio
@pytest.mark.parametrize("share", [False, True])
async def test_processing_handles_large_values_and_writes_dead_letters_of_those_that_are_gone(
    kafka: Client, share: bool
) -> None:
    store, stop = Objects(), anyio.Event()
    await kafka.admin.create_topics({"dead": 1})
    await kafka.admin.incremental_alter_configs({ConfigResource.group("g"): {"share.auto.offset.reset": "earliest"}})
    async with kafka.producer(value_serializer=serializer(store)) as producer:
        for number in range(3):
            await producer.send("t", LARGE + b"%d" % number)
    lost = list(store.objects)[1]
    del store.objects[lost]
    found: list[bytes] = []

    async def handle(record: Any) -> None:
        found.append(record.value)
        if len(found) == 2:
            stop.set()

    summary = await kafka.process(
        "t",
        handle,
        group_id="g",
        share=share,
        ordering="partition",
        value_deserializer=ClaimCheckDeserializer(store),
        dead_letter_topic="dead",
        stop=stop,
    )
    assert sorted(found) == [LARGE + b"0", LARGE + b"2"]
    assert (summary.processed, summary.dead_lettered) == (2, 1)
    (letter,) = [record async for record in kafka.read_records("dead")]
    assert decode_reference(letter.value or b"").key == lost


# --- expiry --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_expired_objects_are_deleted(kafka: Client, store: FsspecStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_796_126_400_000
    checks = [serializer(store, expires_after=after) for after in (None, 3600, DAY, 10 * DAY)]
    for check in checks:
        check._wall_ms = lambda: now
        async with kafka.producer(value_serializer=check) as producer:
            await producer.send("t", LARGE)
    store.write("other/file", b"of another program")
    store.write("t/2026-12-01/other", b"of another program")
    clock: Callable[[], int] = lambda: now  # noqa: E731
    monkeypatch.setattr("aiokafkawire.claim_check.expired_objects.system_wall_ms", lambda: clock())
    delete = partial(anyio.to_thread.run_sync, delete_expired, store)
    assert await delete() == 0
    clock = lambda: now + 3_600_000 - 1  # noqa: E731
    assert await delete() == 0
    clock = lambda: now + 3_600_000  # noqa: E731
    assert await delete() == 1
    clock = lambda: now + 5 * 86_400_000  # noqa: E731
    assert await delete() == 1
    assert await delete() == 0
    clock = lambda: now + 500 * 86_400_000  # noqa: E731
    assert await delete() == 1
    (record,) = await read(kafka, 1, ClaimCheckDeserializer(store))
    assert record.value == LARGE
    assert store.read("other/file", 2) == b"of"
    assert list(store.names("t/keep")) != []
    with pytest.raises(FileNotFoundError):
        store.read("t/keep/unknown", 1)
    store.delete("t/keep/unknown")


def test_a_store_that_looks_for_names_while_objects_are_deleted() -> None:
    store = LazyObjects()
    store.objects = {f"t/1970-01-01/1-{number:032x}": b"" for number in range(3)}
    assert delete_expired(store) == 3
    assert store.objects == {}


def test_an_empty_store(store: FsspecStore) -> None:
    assert delete_expired(store) == 0


def test_folders_are_made_below_the_store_s_own(tmp_path: Path) -> None:
    fsspec.register_implementation("plain", PlainFiles, clobber=True)
    store = FsspecStore(f"plain://{tmp_path}/kafka")
    with pytest.raises(FileNotFoundError):
        store.write("t/keep/a", b"x")
    (tmp_path / "kafka").mkdir()
    for content in (b"x", b"y"):
        store.write("t/keep/a", content)
        assert store.read("t/keep/a", 2) == content


def test_an_object_is_no_folder(store: FsspecStore) -> None:
    store.write("t/keep/a", b"x")
    assert list(store.names("t/keep/a")) == []
    assert list(store.names("t/keep")) == ["a"]


def test_files_where_folders_are_expected_stay(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").touch()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / ".nfs01").touch()
    assert delete_expired(FsspecStore(f"file://{tmp_path}")) == 0
    assert (tmp_path / ".DS_Store").exists()
    assert (tmp_path / "t" / ".nfs01").exists()


def test_an_expiry_beyond_the_calendar() -> None:
    check = serializer(Objects(), expires_after=float("inf"))

    async def write() -> bytes:
        found: bytes = await check.serialize(LARGE, SerializationContext("t", [], False))  # type: ignore[misc]
        return found

    assert "/9999-12-31/" in decode_reference(anyio.run(write)).key


# --- without an event loop, and wrong arguments ---------------------------------------------------------------


def test_the_blocking_client(tmp_path: Path) -> None:
    store = FsspecStore(str(tmp_path))
    with BackgroundBroker() as broker, blocking.Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        with kafka.producer(value_serializer=serializer(store, str.encode)) as producer:
            producer.send("t", "large" * 1000)
            producer.send("t", "small")
        reader = ClaimCheckDeserializer(store, bytes.decode)
        with kafka.consumer("t", auto_offset_reset="earliest", value_deserializer=reader) as consumer:
            records = iter(consumer)
            assert [next(records).value for _ in range(2)] == ["large" * 1000, "small"]
    assert len(keys_of(store)) == 1


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    monkeypatch.delitem(sys.modules, "aiokafkawire.claim_check.fsspec_store")
    with pytest.raises(ImportError, match=r"pip install 'aiokafkawire\[claim-check\]'"):
        importlib.import_module("aiokafkawire.claim_check.fsspec_store")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": None}, r"store must be an object with the methods write, read, names, delete, such as FsspecStore"),
        ({"store": Objects}, "store must be an object"),
        ({"store": AsyncObjects()}, "write of the store .* must be plain functions"),
        ({"threshold": -1}, "threshold must be"),
        ({"threshold": 1.5}, "threshold must be"),
        ({"expires_after": -1}, "expires_after must be"),
        ({"concurrency": 0}, "concurrency must be"),
        ({"timeout": None}, "timeout must be"),
        ({"serializer": 5}, "serializer must be a function"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, ConfigError), match=message):
        ClaimCheckSerializer(**{"store": Objects(), "serializer": str.encode, **options})
    if "threshold" in options or "expires_after" in options:
        return
    if "serializer" in options:
        options = {"deserializer": options["serializer"]}
    with pytest.raises((UsageError, ConfigError), match=message):
        ClaimCheckDeserializer(**{"store": Objects(), "deserializer": bytes.decode, **options})
    with pytest.raises(UsageError, match="max_size must be"):
        ClaimCheckDeserializer(Objects(), max_size=0)


@pytest.mark.parametrize("url", [None, "", 5, "nonsense://x"])
def test_wrong_urls(url: Any) -> None:
    with pytest.raises(UsageError, match=r"url must be|fsspec cannot open 'nonsense://x'"):
        FsspecStore(url)


def test_a_password_in_a_url_is_not_shown() -> None:
    assert repr(FsspecStore("memory://me:Zq7-password@host/orders")) == "<FsspecStore memory://host/orders>"
    with pytest.raises(UsageError, match="fsspec cannot open 'nonsense://host/orders'") as failed:
        FsspecStore("nonsense://me:Zq7-password@host/orders")
    assert "Zq7-password" not in str(failed.value)


def test_an_invalid_result_is_the_producers_error() -> None:
    check = serializer(Objects(), lambda value: value)
    assert check.serialize("x" * 5000, SerializationContext("t", [], False)) == "x" * 5000  # type: ignore[comparison-overlap]
