"""One share group of three clients' members: ours, librdkafka (confluent-kafka) and Java's own."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
import pytest
from support.java_tools import java_command

from aiokafkawire import Client, ConfigResource
from aiokafkawire.errors import GroupIdNotFound

from .patience import PATIENCE

__all__ = ("MixedShareGroup", "mixed_share_group")

_VERIFIABLE_SHARE_CONSUMER: Final = "org.apache.kafka.tools.VerifiableShareConsumer"


class MixedShareGroup:
    """A share group of one topic with one partition; ``read`` counts what each client has accepted."""

    def __init__(self, kafka: Client, bootstrap: str, name: str) -> None:
        self.read: Counter[str] = Counter()
        self.numbers: list[int] = []
        """What ours and confluent-kafka have read."""
        self.written = 0
        self._kafka, self._bootstrap, self._name = kafka, bootstrap, name

    async def write(self, count: int) -> None:
        """Write so many numbers more."""
        async with self._kafka.producer() as producer:
            for number in range(self.written, self.written + count):
                await producer.enqueue(self._name, b"%d" % number)
        self.written += count

    async def until_all_read(self) -> None:
        """Wait until the members have accepted as many records as were written, as they say."""
        with anyio.move_on_after(PATIENCE):
            while True:
                if self.read.total() >= self.written:
                    break
                await anyio.sleep(0.05)
        assert self.read.total() == self.written, self.read

    @asynccontextmanager
    async def ours(self) -> AsyncIterator[None]:
        """Have a member of ours, whose records take a little time."""
        async with (
            self._kafka.share_consumer(self._name, group_id=self._name) as consumer,
            anyio.create_task_group() as tasks,
        ):

            async def work() -> None:
                async for record in consumer:
                    async with record:
                        await anyio.sleep(0.002)
                        self.numbers.append(int(record.value or b""))
                    self.read["ours"] += 1

            tasks.start_soon(work)
            yield
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def confluent(self) -> AsyncIterator[None]:
        """Have a member of confluent-kafka's, in a thread."""
        confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
        settings = {"bootstrap.servers": self._bootstrap, "group.id": self._name, "client.id": "confluent"}
        consumer: Any = confluent_kafka.ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
        leaving = threading.Event()

        def poll() -> None:
            consumer.subscribe([self._name])
            while not leaving.is_set():
                for message in consumer.poll(0.2):
                    assert message.error() is None
                    self.numbers.append(int(message.value()))
                    consumer.acknowledge(message)
                    self.read["confluent"] += 1
                assert not any((consumer.commit_sync() or {}).values())
            consumer.close()

        thread = threading.Thread(target=poll, daemon=True)
        thread.start()
        try:
            yield
        finally:
            leaving.set()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(thread.join, 30)

    @asynccontextmanager
    async def java(self) -> AsyncIterator[None]:
        """Have a VerifiableShareConsumer, which reports by lines of JSON."""
        at = ["--bootstrap-server", self._bootstrap, "--topic", self._name, "--group-id", self._name]
        command = [*java_command(), _VERIFIABLE_SHARE_CONSUMER, *at, "--acknowledgement-mode", "sync"]
        process = await anyio.to_thread.run_sync(partial(subprocess.Popen, command, stdout=subprocess.PIPE, text=True))

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                event = json.loads(line)
                if event["name"] == "offsets_acknowledged" and event["success"]:
                    self.read["java"] += event["count"]

        thread = threading.Thread(target=read, daemon=True)
        thread.start()

        def leave() -> None:
            process.terminate()
            try:
                process.wait(30)
            finally:
                process.kill()
            thread.join(30)
            assert process.stdout is not None
            process.stdout.close()

        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(leave)

    async def until_members(self, count: int) -> None:
        """Wait until the coordinator has so many members, all with the partition."""
        with anyio.fail_after(PATIENCE):
            while True:
                try:
                    found = (await self._kafka.admin.describe_share_groups(self._name))[self._name]
                except GroupIdNotFound:
                    pass
                else:
                    if len(found.members) == count and all(len(member.assignment) == 1 for member in found.members):
                        return
                await anyio.sleep(0.1)


@asynccontextmanager
async def mixed_share_group(bootstrap: str, name: str, *members: str) -> AsyncIterator[MixedShareGroup]:
    """Have a share group with these members, which begins at the log's start."""
    resource = ConfigResource.group(name)
    async with AsyncExitStack() as stack:
        kafka = await stack.enter_async_context(Client(bootstrap, client_id="ours"))
        await kafka.admin.create_topics({name: 1})
        await kafka.admin.incremental_alter_configs({resource: {"share.auto.offset.reset": "earliest"}})
        group = MixedShareGroup(kafka, bootstrap, name)
        for member in members:
            await stack.enter_async_context(getattr(group, member)())
        await group.until_members(len(members))
        yield group
