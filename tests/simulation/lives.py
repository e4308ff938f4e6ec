"""Producers that make transactions, each from its beginning to its end: some abort, and some are cancelled."""

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from random import Random

import anyio
import attrs
from histories.checking import History
from histories.events import (
    OffsetsAdded,
    RecordSent,
    TransactionAborted,
    TransactionBegan,
    TransactionCommitRequested,
    TransactionCommitted,
)

from aiokafkawire import Delivery, KafkaError, Producer, RecordMetadata, TopicPartition
from aiokafkawire.config import ProducerOptions
from aiokafkawire.errors import OutOfOrderSequenceNumber, UsageError
from aiokafkawire.producer.transaction import Transaction
from aiokafkawire.testing.simulation import Simulation

from .taking_part import client_of, pace_of

__all__ = ("LONGEST", "Life", "group_of")

LONGEST = 30_000
"""The longest that a transaction may be open, in ms."""
_FOR_EVER = 1_000
"""Virtual seconds after which whoever waits will wait for ever."""


class _OnPurpose(Exception):
    """A transaction is to be aborted."""


@attrs.define
class Life:
    """One producer of a writer, from its beginning to its end."""

    sim: Simulation
    writer: str
    number: int
    partitions: list[TopicPartition]
    history: History
    numbers: Iterator[int]
    """The numbers of all transactions of a run."""
    refused: int | None = None
    """Its transaction that it wanted to commit, and that it was told it could not."""
    chance: Random = attrs.field(init=False)
    _requested: int | None = None
    """The last transaction whose commit was requested."""
    _failure: KafkaError | None = None
    """The first error of a record in the last transaction."""

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)

    @property
    def name(self) -> str:
        """What the network calls its client."""
        return f"{self.writer}.{self.number}"

    def _options(self) -> ProducerOptions:
        chance = self.chance
        options = ProducerOptions(
            transactional_id=self.writer,
            transaction_timeout_ms=chance.choice((2_000, 10_000, LONGEST)),
            max_block_ms=chance.choice((3_000, 60_000)),
        )
        options.update(pace_of(chance))
        return options

    async def live(self) -> None:
        """Make transactions until it has made enough, or can make no more."""
        try:
            async with client_of(self.sim, self.name) as client, client.producer(**self._options()) as producer:
                for _ in range(self.chance.randint(1, 10)):
                    await self._transact_or_not(producer)
                    await anyio.sleep(self.chance.choice((0.0, 0.01, 0.5)))
        except UsageError:
            raise
        except KafkaError as error:
            self.sim.note(f"{self.name} is over: {type(error).__name__}: {error}")

    async def live_well(self) -> None:
        """All is calm, and so nothing may fail."""
        client = client_of(self.sim, self.name)
        async with client, client.producer(transactional_id=self.writer) as producer:
            for _ in range(2):
                number = next(self.numbers)
                async with producer.transaction() as transaction:
                    self._begun(producer, number)
                    await self._fill(transaction, number, largest=200)
                    await self._commit_offsets(transaction, number)
                    self.history.add(TransactionCommitRequested(str(number)))
                self.history.add(TransactionCommitted(str(number)))

    def _begun(self, producer: Producer[bytes, bytes], number: int) -> None:
        self.history.add(TransactionBegan(str(number), self.writer, _epoch(producer)))

    async def _transact_or_not(self, producer: Producer[bytes, bytes]) -> None:
        """One transaction. What makes its producer useless comes out."""
        number = next(self.numbers)
        told = f"{self.name} makes transaction {number}"
        try:
            with anyio.move_on_after(self.chance.choice((0.05, 1.0, _FOR_EVER, _FOR_EVER, _FOR_EVER))) as scope:
                await self._transact(producer, number)
        except _OnPurpose:
            self.sim.note(f"{told}: aborted on purpose")
        except UsageError:
            raise
        except KafkaError as error:
            self.sim.note(f"{told}: {type(error).__name__}: {error}")
            if self._requested == number:
                self.refused = number
            # After another error a batch may be missing, but none of an earlier transaction.
            missing = isinstance(self._failure, OutOfOrderSequenceNumber)
            assert not missing, f"{told}, and brokers miss a batch of an earlier one: {self._failure}"
        else:
            self.sim.note(f"{told}: {'cancelled' if scope.cancelled_caught else 'committed'}")
            assert not scope.cancelled_caught or self.sim.now() < _FOR_EVER, f"{told} for ever"

    async def _transact(self, producer: Producer[bytes, bytes], number: int) -> None:
        chance = self.chance
        async with producer.transaction() as transaction:
            if self.refused is not None:  # whoever can go on knows that the one before was aborted
                self.history.add(TransactionAborted(str(self.refused)))
                self.refused = None
            self._begun(producer, number)
            self._failure = None
            self.sim.note(f"{self.name} begins transaction {number}")
            with suppress(KafkaError) if chance.random() < 0.2 else nullcontext():
                await self._fill(transaction, number)
                if chance.random() < 0.5:
                    await self._commit_offsets(transaction, number)
            if chance.random() < 0.2:
                raise _OnPurpose
            self.history.add(TransactionCommitRequested(str(number)))
            self._requested = number
        self.history.add(TransactionCommitted(str(number)))

    async def _fill(self, transaction: Transaction[bytes, bytes], number: int, *, largest: int = 2_000) -> None:
        """Hand over a few records, and wait for some of them."""
        chance = self.chance
        for index in range(chance.choice((0, 1, 5, 20))):
            value = f"{self.name}/{number}/{index}/".encode() + bytes(chance.choice((0, 0, 200, largest)))
            where = chance.choice(self.partitions)
            partition = where.partition if chance.random() < 0.5 else None
            delivery: Delivery = await transaction.enqueue(where.topic, value, partition=partition)
            delivery.add_callback(self._sent)
            self.history.add(RecordSent(self.name, value, str(number)))
            if chance.random() < 0.2:
                await delivery
            if chance.random() < 0.2:
                await anyio.sleep(chance.choice((0.001, 0.05, 1.0, 3.0)))

    def _sent(self, _: RecordMetadata | None, error: KafkaError | None) -> None:
        self._failure = self._failure or error

    async def _commit_offsets(self, transaction: Transaction[bytes, bytes], number: int) -> None:
        group = group_of(self.writer)
        offsets = {where: number for where in self.partitions if self.chance.random() < 0.5}
        self.history.add(OffsetsAdded(str(number), group, offsets))
        with anyio.move_on_after(self.chance.choice((0.01, _FOR_EVER, _FOR_EVER))):  # they are committed all the same
            await transaction.commit_offsets(offsets, group=group)


def group_of(writer: str) -> str:
    """The group whose offsets a writer commits."""
    return f"group of {writer}"


def _epoch(producer: Producer[bytes, bytes]) -> int:
    """The epoch of the open transaction; to ask for ``identity`` would mean to share it."""
    transactions = producer._transactions
    assert transactions is not None
    return transactions.state.producer_epoch
