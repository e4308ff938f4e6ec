"""Any sequence of what users, brokers and networks may do, against leaders that keep their own books.

The accumulator, the numbers and the outcomes are the real ones; around them are a clock, routes, and partitions' logs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import cycle
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.examples import examples, seeds
from support.partition_log import Log, values_in
from support.producer_states import ProducerStates

from aiokafkawire.cluster.metadata import EMPTY
from aiokafkawire.cluster.retry import Backoff
from aiokafkawire.config import ProducerConfig
from aiokafkawire.errors import ConnectionLost, ErrorCode, KafkaError
from aiokafkawire.observe import Observers
from aiokafkawire.producer.accumulator import NO_LEADER, NOT_READY, RecordAccumulator
from aiokafkawire.producer.batch import BatchResult, ProducerBatch
from aiokafkawire.producer.batch_completion import BatchCompletion
from aiokafkawire.producer.idempotence import SequenceNumbers
from aiokafkawire.producer.in_flight_requests import InFlightRequest
from aiokafkawire.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from aiokafkawire.records.batch import RecordBatch, record_size_bound
from aiokafkawire.records.layout import HEADER_SIZE
from aiokafkawire.types import TopicPartition

PARTITIONS = [TopicPartition("a", number) for number in range(2)]
NODES = (1, 2)
BATCH_SIZE = 120
MEMORY = 1_500
IN_FLIGHT = 5

wheres = st.sampled_from(PARTITIONS)
nodes = st.sampled_from(NODES)
# What a leader says of a batch without writing it, and once it has written it.
refusals = st.sampled_from(
    [
        *[ErrorCode.NONE] * 6,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ]
)
second_thoughts = st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT])
Said = tuple[ErrorCode, ErrorCode]
answers = st.lists(st.tuples(refusals, second_thoughts), min_size=3, max_size=IN_FLIGHT)
FINE: Said = (ErrorCode.NONE, ErrorCode.NONE)


class Counted(BatchCompletion):
    """Notes how each batch ended."""

    ended: list[ProducerBatch]

    def _acknowledge(self, batch: ProducerBatch, base_offset: int, log_append_time: int) -> None:
        if not batch.result.completed:
            self.ended.append(batch)
        super()._acknowledge(batch, base_offset, log_append_time)

    def fail(
        self, batch: ProducerBatch, error: KafkaError, *, is_abort: bool = False, is_reported: bool = True
    ) -> None:
        self.ended.append(batch)
        super().fail(batch, error)


class AnySequence(RuleBasedStateMachine):
    """What holds whatever happens is asserted where it may break, and after every step."""

    idempotent = True
    in_flight = IN_FLIGHT

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.records: list[tuple[TopicPartition, BatchResult, int]] = []
        self.wires: dict[int, deque[InFlightRequest]] = {node: deque() for node in NODES}
        self.down: set[int] = set()
        self.identities = 0

    @initialize(retries=st.sampled_from([0, 2, 1_000]), linger_ms=st.sampled_from([0, 5]))
    def start(self, retries: int, linger_ms: int) -> None:
        config = ProducerConfig(
            batch_size=BATCH_SIZE,
            buffer_memory=MEMORY,
            max_in_flight_requests_per_connection=self.in_flight,
            enable_idempotence=self.idempotent,
            delivery_timeout_ms=1_000,
            retries=retries,
            linger_ms=linger_ms,
        )
        self.logs = {where: Log(leader=1) for where in PARTITIONS}
        self.sequences = SequenceNumbers() if self.idempotent else None
        self.gathered = RecordAccumulator(config, asyncio.Event, self.sequences)
        cluster: Any = SimpleNamespace(
            runtime=SimpleNamespace(now=lambda: self.now),
            backoff=lambda: Backoff(0.01, 0.1, Random(1)),
            observers=Observers(),
            metadata=SimpleNamespace(snapshot=EMPTY, mark_stale=lambda snapshot: None),
        )
        self.outcomes = Counted(cluster, config, "produce-1", self.gathered, None)
        self.outcomes.ended = []
        if self.sequences is not None:
            self.identify(last=False)

    # --- the user and time -----------------------------------------------------------------------------

    @rule(where=wheres, size=st.sampled_from([1, 10, 90]), count=st.integers(1, 8))
    def append(self, where: TopicPartition, size: int, count: int) -> None:
        for _ in range(count):
            value = b"%0*d" % (size, len(self.records))
            if self.gathered.space.used + record_size_bound(None, value) <= self.gathered.space.limit:
                batch, index = self.gathered.append(where, 0, None, value, (), self.now)
                self.records.append((where, batch.result, index))
        self.go()

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.3]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.outcomes.fail_expired(self.now)
        self.go()

    # --- the sender ------------------------------------------------------------------------------------

    def route(self, where: TopicPartition) -> int:
        leader = self.logs[where].leader
        if self.needs_identity():
            return NOT_READY
        return NOT_READY if leader in self.down else leader

    def go(self, flushing: bool = False) -> None:
        drained = self.gathered.drain(self.route, self.now, flushing=flushing)
        for request in drained.requests:
            request.snapshot = EMPTY
            for batch in request.batches:
                batch.encode()
            self.wires[request.broker].append(request)

    @rule()
    def flush(self) -> None:
        self.go(flushing=True)

    def needs_identity(self) -> bool:
        return self.sequences is not None and self.sequences.needs_producer_id

    @precondition(lambda self: self.needs_identity())
    @rule(last=st.booleans())
    def identify(self, last: bool) -> None:
        assert self.sequences is not None
        self.identities += 1
        self.sequences.set_producer_id(self.identities, 2**15 - 1 if last else 0)
        self.go()

    # --- brokers ---------------------------------------------------------------------------------------

    def write(
        self, node: int, batch: ProducerBatch, refusal: ErrorCode, second_thought: ErrorCode
    ) -> tuple[ErrorCode, int]:
        """What the broker does with the batch, and says."""
        log = self.logs[batch.partition]
        if log.leader != node:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        if refusal and self.may_refuse(log, batch, refusal):
            return refusal, -1
        error, offset = log.append(RecordBatch.parse(memoryview(batch.encode())))
        if error:
            return error, -1
        if second_thought:
            return second_thought, -1
        log.replicate(offset)
        return ErrorCode.NONE, offset

    def may_refuse(self, log: Log, batch: ProducerBatch, refusal: ErrorCode) -> bool:
        """Whether a leader could say so: what it has written already, it does not find wrong later."""
        if refusal == ErrorCode.NOT_ENOUGH_REPLICAS:
            return True
        if refusal == ErrorCode.INVALID_PRODUCER_EPOCH and not self.idempotent:
            return False
        return not set(values_in(batch)) & set(log.values)

    @rule(node=nodes, said=answers)
    def answer(self, node: int, said: list[Said]) -> None:
        """Answer what is on its way here, one request after the other, until there is nothing left to say."""
        for number in range(len(said)):
            if self.wires[node]:
                self.answer_next(node, said[number:] + said[:number])

    def answer_next(self, node: int, said: list[Said]) -> None:
        flight = self.wires[node].popleft()
        topics = []
        for batch, (refusal, second_thought) in zip(flight.batches, cycle(said)):
            error, offset = self.write(node, batch, refusal, second_thought)
            one = PartitionProduceResponse(index=batch.partition.partition, error_code=error, base_offset=offset)
            topics.append(TopicProduceResponse(name=batch.partition.topic, partition_responses=[one]))
        self.gathered.in_flight.remove(flight)
        self.outcomes.response_received(flight, ProduceResponse(responses=topics))
        self.go()

    @rule(node=nodes)
    def answer_all(self, node: int) -> None:
        for _ in range(len(self.wires[node])):
            self.answer_next(node, [FINE])

    @rule(node=nodes, written=st.integers(0, 5), stops=st.booleans())
    def break_connection(self, node: int, written: int, stops: bool) -> None:
        """The broker has written some of what is on its way, and none of it is answered. It may stop, or start."""
        flights, self.wires[node] = self.wires[node], deque()
        for number, flight in enumerate(flights):
            for batch in flight.batches:
                if number < written:
                    self.write(node, batch, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
        for flight in flights:
            self.gathered.in_flight.remove(flight)
            self.outcomes.request_failed(flight, ConnectionLost(f"n{node} is gone"))
        self.down ^= {node} if stops else set()
        self.go()

    @rule(where=wheres, to=st.sampled_from([1, 1, 2, NO_LEADER]), loses=st.booleans())
    def move(self, where: TopicPartition, to: int, loses: bool) -> None:
        self.logs[where].leader = to
        if loses and to != NO_LEADER:
            self.logs[where].truncate()

    @precondition(lambda self: max(len(log.values) for log in self.logs.values()) > 12)
    @rule(where=wheres)
    def forget_producers(self, where: TopicPartition) -> None:
        """All that was written is old, and its answers are known; brokers before 2.5 then know the producer no more."""
        log = self.logs[where]
        batches = [batch for flights in self.wires.values() for flight in flights for batch in flight.batches]
        open_ones = {
            value
            for batch in (*batches, *self.gathered.unfinished)
            if batch.partition == where
            for value in values_in(batch)
        }
        if not open_ones & set(log.values):
            log.states = ProducerStates(refuses_unknown=True)

    # --- what holds ------------------------------------------------------------------------------------

    @invariant()
    def check(self) -> None:
        self.memory_is_what_is_open()
        self.no_more_is_on_its_way_than_may_be()
        self.logs_are_right()
        self.what_is_acknowledged_is_there()
        assert len(set(map(id, self.outcomes.ended))) == len(self.outcomes.ended)

    def memory_is_what_is_open(self) -> None:
        open_ones = [batch for batch in self.gathered.unfinished if not batch.result.completed]
        assert self.gathered.space.used == sum(batch.builder.size for batch in open_ones)
        assert self.gathered.space.used <= MEMORY + HEADER_SIZE * len(open_ones)

    def no_more_is_on_its_way_than_may_be(self) -> None:
        for flights in self.wires.values():
            assert len(flights) <= self.in_flight
        for where in PARTITIONS:
            found = [
                node
                for node, flights in self.wires.items()
                for flight in flights
                if where in {batch.partition for batch in flight.batches}
            ]
            assert len(found) <= IN_FLIGHT
            assert len(set(found)) <= 1

    def logs_are_right(self) -> None:
        for log in self.logs.values():
            values = log.values
            if self.idempotent:
                assert values == sorted(set(values)), values
            elif self.in_flight == 1:
                assert list(dict.fromkeys(values)) == sorted(set(values)), values

    def what_is_acknowledged_is_there(self) -> None:
        for number, (where, result, index) in enumerate(self.records):
            if result.is_done(index):
                place = outcome(result, index)
                if not isinstance(place, KafkaError):
                    values = self.logs[where].values
                    assert number in values
                    assert place in (-1, values.index(number)) or not self.idempotent

    def teardown(self) -> None:
        """When all is well again, everything has an outcome in time, and what comes next is delivered."""
        self.down.clear()
        for log in self.logs.values():
            log.leader = 1
        self.settle()
        before = len(self.records)
        for _ in range(2):  # without retries one may have to find out that its number is of no use
            for where in PARTITIONS:
                self.append(where, 1, 1)
            self.settle()
        assert self.gathered.space.used == 0
        assert not self.gathered.in_flight
        assert all(result.is_done(index) for _, result, index in self.records)
        assert len(self.records) == before + 2 * len(PARTITIONS)
        for _, result, index in self.records[-len(PARTITIONS) :]:
            place = outcome(result, index)
            assert not isinstance(place, KafkaError), place
        self.check()

    def settle(self) -> None:
        until = self.now + 0.9  # before what was just appended expires
        while self.gathered.unfinished and self.now < until:
            if self.needs_identity():
                self.identify(last=False)
            self.flush()
            for node in NODES:
                self.answer_all(node)
            self.wait(0.01)
        assert self.gathered.unfinished == []


class OneByOne(AnySequence):
    """Without numbers a lost answer doubles records; one request at a time, their order is kept."""

    idempotent, in_flight = False, 1


class Plain(AnySequence):
    """Without numbers, and many on their way: nothing is lost, whatever the order."""

    idempotent = False


def outcome(result: BatchResult, index: int) -> int | KafkaError:
    """The offset, or the error, that is known."""
    waiting = result.wait(index)
    try:
        waiting.send(None)
    except StopIteration as stop:
        offset: int = stop.value.offset
        return offset
    except KafkaError as error:
        return error
    raise AssertionError("there is none")


MACHINES = [AnySequence, OneByOne, Plain]

for one in MACHINES:
    one.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=50, deadline=None, derandomize=True)

test_with_numbers = pytest.mark.timeout(120)(AnySequence.TestCase)
test_one_by_one = pytest.mark.timeout(120)(OneByOne.TestCase)
test_without_numbers = pytest.mark.timeout(120)(Plain.TestCase)


# --- long walks ----------------------------------------------------------------------------------------------
# Hypothesis finds what few steps can do, and tells it shortly; these get to where five are on their way in trouble.


def step(machine: AnySequence, chance: Random) -> None:
    """Any of the rules, the ones that move batches on more often than the others."""
    node, where = chance.choice(NODES), chance.choice(PARTITIONS)
    troubles = chance.random() < 0.5
    codes = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD]
    codes += [ErrorCode.INVALID_PRODUCER_EPOCH, *[ErrorCode.NONE] * (10 if troubles else 100)]
    second = [ErrorCode.REQUEST_TIMED_OUT, *[ErrorCode.NONE] * (2 if troubles else 50)]
    said = [(chance.choice(codes), chance.choice(second)) for _ in range(chance.randint(1, IN_FLIGHT))]
    rules: list[tuple[int, Callable[[], None]]] = [
        (30, lambda: machine.append(where, chance.choice([1, 10, 90]), chance.randint(1, 8))),
        (30, lambda: machine.answer(node, said)),
        (10, lambda: machine.wait(chance.choice([0.001, 0.01, 0.05]))),
        (1, lambda: machine.wait(0.3)),
        (3, machine.flush),
        (3, lambda: machine.break_connection(node, chance.randint(0, 5), chance.random() < 0.2)),
        (3, lambda: machine.move(where, chance.choice([1, 1, 2, 2, NO_LEADER]), chance.random() < 0.5)),
        (1, lambda: machine.forget_producers(where)),
        (10, lambda: machine.identify(chance.random() < 0.2) if machine.needs_identity() else None),
        (2, machine.down.clear),
    ]
    weights, calls = zip(*rules, strict=True)
    chance.choices(calls, weights)[0]()


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", seeds(range(15), 5))
def test_a_long_walk(machine: type[AnySequence], seed: int) -> None:
    chance = Random(seed)
    walked = machine()
    walked.start(retries=chance.choice([0, 2, 1_000, 1_000]), linger_ms=chance.choice([0, 5]))
    for _ in range(400):
        step(walked, chance)
        walked.check()
    walked.teardown()


# --- what once went wrong ------------------------------------------------------------------------------------


def many_on_their_way() -> tuple[AnySequence, Log]:
    machine = AnySequence()
    machine.start(retries=1_000, linger_ms=0)
    machine.append(PARTITIONS[0], 90, 6)
    machine.answer(1, [FINE])
    assert len(machine.wires[1]) == IN_FLIGHT
    return machine, machine.logs[PARTITIONS[0]]


def test_no_new_batch_pushes_an_old_one_out_of_what_the_leader_remembers() -> None:
    machine, log = many_on_their_way()
    slow: Said = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
    for _ in range(4):
        machine.append(PARTITIONS[0], 90, 5)
        machine.answer_next(1, [slow])
        machine.answer_all(1)
        machine.wait(0.3)
    machine.answer_all(1)
    machine.check()
    assert log.values == sorted(set(log.values))


def test_an_epoch_that_is_refused_behind_what_was_written_doubles_nothing() -> None:
    machine, log = many_on_their_way()
    machine.answer_next(1, [(ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)])
    machine.answer_next(1, [(ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.NONE)])
    machine.teardown()
    assert log.values == list(range(6)) + log.values[6:]
