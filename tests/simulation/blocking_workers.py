"""Workers whose loop is a thread with the blocking client, which is interrupted by Ctrl-C at any moment."""

from collections.abc import Sequence

import anyio
import attrs

from aiokafkawire import Client, KafkaError, TopicPartition, UsageError
from aiokafkawire.blocking.consumer import Consumer
from aiokafkawire.blocking.producer import Producer
from aiokafkawire.types import BytesLike

from .stepped_loop import SteppedLoop
from .workers import OUTCOMES, OnPurpose, Over, Record, Worker, outcome_of

__all__ = ("BlockingWorker",)


@attrs.define(eq=False)
class BlockingWorker(Worker):
    """One worker on a thread."""

    loop: SteppedLoop = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.loop = SteppedLoop(self.chance)
        if self.ending != "raises":
            self.ending = "returns"  # a thread cannot be cancelled, and Ctrl-C is in the middle of its life

    async def _work(self, client: Client) -> None:
        consumer = Consumer(self.loop, client.consumer(*self.plan.topics, **self._of_group()))
        producer = Producer(self.loop, client.producer(**self._transactions()))
        await self.loop.serve(lambda: self._run(consumer, producer))

    def _run(self, consumer: Consumer[bytes, bytes], producer: Producer[BytesLike, BytesLike]) -> None:
        with producer, consumer:
            face = self.chance.choice(("iterates", "polls", "takes batches"))
            while not self.stop.is_set():
                records = self._take(consumer, face)
                if records:
                    self._process_in_transaction(consumer, producer, records)
            if self.ending == "raises":
                raise OnPurpose

    def _take(self, consumer: Consumer[bytes, bytes], face: str) -> Sequence[Record]:
        self.loop.interrupted = 1.0 if face == "iterates" else 0.3  # an iteration would wait for ever
        self.loop.interrupts_within = self.chance.choice((0.01, 1.0))
        try:
            if face == "iterates":
                for record in consumer:
                    return [record]
            elif face == "polls":
                return consumer.poll(max_records=self.chance.choice((1, 5, 100)), timeout=self.chance.choice((0, 0.5)))
            else:
                for batch in consumer.batches(timeout=0.5):
                    return list(batch)
        except KeyboardInterrupt:
            self.sim.note(f"{self.name} is interrupted")
        except UsageError:
            raise
        except KafkaError as error:
            self.sim.note(f"{self.name} cannot read: {type(error).__name__}: {error}")
        finally:
            self.loop.interrupted = 0.0
        self.loop.call(anyio.sleep, 0.01)
        return []

    def _process_in_transaction(
        self, consumer: Consumer[bytes, bytes], producer: Producer[BytesLike, BytesLike], records: Sequence[Record]
    ) -> None:
        told = f"{self.name} processes {outcome_of(records[0]).decode()} to {outcome_of(records[-1]).decode()}"
        self.sim.note(told)
        state = "begins"
        try:
            with producer.transaction() as transaction:
                state = "is open"
                for record in records:
                    transaction.enqueue(OUTCOMES, outcome_of(record))
                    self.loop.call(self._dawdle)
                self.loop.interrupted = 0.1
                try:
                    if self.chance.random() < 0.5:
                        transaction.commit_offsets(consumer)
                    else:
                        transaction.commit_offsets(consumer.positions(), group=consumer.group_metadata())
                finally:
                    self.loop.interrupted = 0.0
                state = "commits"
            state = "counts"
        except KeyboardInterrupt:
            self.sim.note(f"{told}: interrupted")
        except KafkaError as error:
            self.sim.note(f"{told}: {state}: {type(error).__name__}: {error}")
            if state == "begins":
                raise Over from error
        if state != "counts":
            self._seek_back(consumer, records)

    def _seek_back(self, consumer: Consumer[bytes, bytes], records: Sequence[Record]) -> None:
        first: dict[TopicPartition, Record] = {}
        for record in records:
            first.setdefault(TopicPartition(record.topic, record.partition), record)
        for partition, record in first.items():
            if consumer.owns(record):
                self.sim.note(f"{self.name} goes back to {record.offset} of {partition}")
                consumer.seek(partition, record.offset)
