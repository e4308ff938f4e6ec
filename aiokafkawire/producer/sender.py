"""Takes ready batches to their leaders, and every answer back to the batches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.retry import Backoff, remedy
from ..config import ProducerConfig
from ..errors import (
    ConnectionLost,
    DeliveryFailed,
    ErrorCode,
    KafkaError,
    Refresh,
    RequestTimeout,
    TopicNotReady,
    WireError,
    as_kafka_error,
    broker_error,
)
from ..protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..runtime import Worker
from ..types import TopicPartition
from .accumulator import Accumulator, Batch
from .result import BatchResult

__all__ = ("Sender",)

# Record batches v2 need v3; topics have no names from v13 on (KIP-516), so without their ids v12 is the last.
_BY_ID_OR_NAME = Versions.parse("3+")
_BY_NAME = Versions.parse("3-12")
_HEAVY = 64 * 1024
"""Batches above this are compressed on a thread."""
_KEPT_FAILURES = 100


class Sender:
    """One producer's way to the brokers. ``on_room`` is called whenever memory became free."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, lane: str, on_room: Callable[[], None]) -> None:
        self.accumulator: Accumulator = Accumulator(config, anyio.Event)
        self._cluster, self._config, self._lane, self._on_room = cluster, config, lane, on_room
        self._clock = cluster.runtime.now
        self._flushing = 0
        self._backoffs: dict[TopicPartition, Backoff] = {}
        # Failed batches that flush has to report; beyond the kept ones only how many records, and the last error.
        self._failures: list[BatchResult] = []
        self._more_failures = 0
        self._last_failure: KafkaError | None = None
        self._worker = Worker(self._send_what_is_due, self._give_up)

    @property
    def has_ended(self) -> bool:
        """Whether nothing is sent any more."""
        return self._worker.ended.is_set()

    def wake(self) -> None:
        """There is something to send."""
        self._worker.wake()

    async def run(self) -> None:
        """Send until closed."""
        await self._worker.run()

    def _give_up(self) -> None:
        """Whatever ended the sending, no batch is left without an outcome."""
        for batch in self.accumulator.take_all():
            why = "the producer was closed before the record was acknowledged; it may have been written"
            self._fail(batch, ConnectionLost(f"{batch.where}: {why}"))
        self._on_room()

    def _send_what_is_due(self, tasks: TaskGroup) -> float | None:
        """Start the requests that are due. How long nothing else will be, in seconds; None until something happens."""
        accumulator, now = self.accumulator, self._clock()
        for batch in [*accumulator.overdue(now), *accumulator.expired(now)]:
            self._fail(batch, self._too_late(batch))
        snapshot = self._cluster.snapshot
        requests, unled = accumulator.drain(lambda where: _leader_of(snapshot, where), now, flushing=self._flushing > 0)
        for node_id, batches in requests.items():
            self._cluster.use(dict.fromkeys(batch.where.topic for batch in batches))
            tasks.start_soon(self._produce, snapshot, node_id, batches)
        waits = []
        moment = accumulator.deadline(now)
        if moment is not None:
            waits.append(moment - now)
        if unled:
            self._cluster.use(dict.fromkeys(batch.where.topic for batch in accumulator.unfinished))
            self._cluster.outdated(snapshot)
            waits.append(self._cluster.config.retry_backoff_ms / 1000)
        return min(waits, default=None)

    async def _produce(self, snapshot: Snapshot, node_id: int, batches: list[Batch]) -> None:
        try:
            response = await self._request(snapshot, node_id, batches)
            self._answered(snapshot, batches, response)
        except Exception as error:
            for batch in batches:
                self._failed(batch, as_kafka_error(error, f"producing to {batch.where}"), snapshot)
        finally:
            self.accumulator.request_done(node_id)
            self.wake()

    async def _request(self, snapshot: Snapshot, node_id: int, batches: list[Batch]) -> ProduceResponse | None:
        """Send one request; None where ``acks=0`` asks for no answer, or all of it is too late."""
        for batch in batches:
            if batch.sealed is None:
                heavy = batch.builder.codec and batch.builder.size > _HEAVY
                build = batch.builder.build
                batch.sealed = await self._cluster.runtime.offload(build) if heavy else build()
        connection = await self._cluster.connection(snapshot.nodes[node_id], self._lane)
        in_time = [batch for batch in batches if not batch.result.done]
        if not in_time:
            return None
        request = self._message(snapshot, in_time)
        named_only = any(topic.topic_id == ZERO_UUID for topic in request.topic_data)
        wanted = _BY_NAME if named_only else _BY_ID_OR_NAME
        if request.acks == 0:
            await connection.post(request, wanted=wanted)
            return None
        return await connection.request(request, wanted=wanted)

    def _message(self, snapshot: Snapshot, batches: list[Batch]) -> ProduceRequest:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, partition = batch.where
            topic = topics.get(name)
            if topic is None:
                topic_id = snapshot.topic_id(name)
                topic = topics[name] = TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
            topic.partition_data.append(PartitionProduceData(index=partition, records=batch.sealed))
        return ProduceRequest(
            acks=self._config.required_acks,
            timeout_ms=self._cluster.config.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    # --- outcomes --------------------------------------------------------------------------------------

    def _answered(self, snapshot: Snapshot, batches: list[Batch], response: ProduceResponse | None) -> None:
        answers = None if response is None else _by_partition(snapshot, response)
        for batch in batches:
            if batch.result.done:
                continue
            if answers is None:
                self._finish(batch, -1, -1)
                continue
            answer = answers.get(batch.where)
            if answer is None:
                self._failed(batch, WireError(f"the answer to Produce lacks {batch.where}, which was sent"), snapshot)
            elif answer.error_code == ErrorCode.NONE:
                self._finish(batch, answer.base_offset, answer.log_append_time_ms)
            else:
                said = f"Produce to {batch.where}" + (f": {answer.error_message}" if answer.error_message else "")
                self._failed(batch, broker_error(answer.error_code, said), snapshot)

    def _failed(self, batch: Batch, error: KafkaError, snapshot: Snapshot) -> None:
        """Try the batch again if the error allows it and time is left; else it has failed."""
        retry, refresh = remedy(error)
        if refresh is Refresh.METADATA:
            self._cluster.use((batch.where.topic,))
            self._cluster.outdated(snapshot)
        if batch.result.done:  # it became too late meanwhile
            return
        if not retry:
            self._fail(batch, error)
            return
        backoff = self._backoffs.get(batch.where)
        if backoff is None:
            backoff = self._backoffs[batch.where] = self._cluster.backoff()
        self.accumulator.put_back(batch, error, self._clock() + backoff.next())

    def _finish(self, batch: Batch, base_offset: int, log_append_time: int) -> None:
        self._backoffs.pop(batch.where, None)
        self.accumulator.finish(batch)
        batch.result.resolve(base_offset, log_append_time)
        self._on_room()

    def _fail(self, batch: Batch, error: KafkaError) -> None:
        self._backoffs.pop(batch.where, None)
        self.accumulator.finish(batch)
        batch.result.fail(error)
        if len(self._failures) >= _KEPT_FAILURES:
            self._failures = [failed for failed in self._failures if failed.unawaited]
        if len(self._failures) < _KEPT_FAILURES:
            self._failures.append(batch.result)
        elif batch.result.unawaited:
            self._more_failures += batch.result.unawaited
            self._last_failure = error
        self._on_room()

    def _too_late(self, batch: Batch) -> KafkaError:
        seconds = self._config.delivery_timeout_ms / 1000
        last = batch.last_error
        if last is None and _leader_of(self._cluster.snapshot, batch.where) is None:
            return TopicNotReady(f"{batch.where} had no leader for {seconds:g} s (delivery_timeout_ms)")
        told = "; it was sent, and not answered" if batch.tries else ""
        if last is not None:
            tried = f"tried {batch.tries} times" if batch.tries else "those before it were tried"
            told = f"; {tried}, at last {type(last).__name__}: {last}"
        error = RequestTimeout(f"{batch.where} took no records for {seconds:g} s (delivery_timeout_ms){told}")
        error.__cause__ = last
        return error

    # --- flushing and closing --------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until everything handed over so far has an outcome.

        Raises:
            DeliveryFailed: records failed since the last flush that nobody awaited.
        """
        with self.hurry():
            for batch in self.accumulator.unfinished:
                await batch.result.settled()
        failures, self._failures = self._failures, []
        count, self._more_failures = self._more_failures, 0
        last, self._last_failure = self._last_failure, None
        errors = [] if last is None else [last]
        for result in reversed(failures):
            if result.error is not None and result.unawaited:
                errors.insert(0, result.error)
                count += result.unawaited
        if errors:
            raise DeliveryFailed(errors, count)

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Someone waits for what is here to be gone: meanwhile nothing lingers."""
        self._flushing += 1
        self.wake()
        try:
            yield
        finally:
            self._flushing -= 1

    async def close(self) -> None:
        """Stop sending. What has no outcome fails; the broker may have written what was in flight."""
        await self._worker.stop()
        await self._cluster.brokers.close_lanes(self._lane)


def _leader_of(snapshot: Snapshot, where: TopicPartition) -> int | None:
    node = snapshot.leader(where)
    return None if node is None else node.node_id


def _by_partition(snapshot: Snapshot, response: ProduceResponse) -> dict[TopicPartition, PartitionProduceResponse]:
    answers = {}
    for topic in response.responses:
        name = topic.name or snapshot.topic_names.get(topic.topic_id, "")
        for answer in topic.partition_responses:
            answers[TopicPartition(name, answer.index)] = answer
    return answers
