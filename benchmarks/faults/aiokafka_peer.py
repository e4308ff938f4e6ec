"""aiokafka in a run under fault: records that are acknowledged one by one, or transactions."""

import asyncio
import logging
from functools import partial
from typing import Any

import aiokafka
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from benchmarks.faults.journal import LINGER_MS, TICK, Job, Journal, read_job

_LOG = logging.getLogger(aiokafka.__name__.partition(".")[0])
_FAILURES = (KafkaError, AssertionError)
"""What its calls raise; asserted is that a transaction may begin or end in the state that errors have left."""


class _OnPurpose(Exception):
    """Leaves a transaction that is to be aborted."""


async def plain(job: Job, journal: Journal) -> None:
    """Run a writer for each partition: ``send`` waits while the partition's last batch is full."""
    settings = {"bootstrap_servers": job.bootstrap, "linger_ms": LINGER_MS}
    async with AIOKafkaProducer(acks="all", enable_idempotence=True, **settings) as producer:
        await producer.partitions_for(job.topic)
        with journal:
            writers = [asyncio.create_task(_write(job, journal, producer, one)) for one in range(job.partitions)]
            while not (all(one.done() for one in writers) and journal.settled):
                await asyncio.sleep(0.1)
                journal.tell()
            await asyncio.gather(*writers)


async def _write(job: Job, journal: Journal, producer: Any, partition: int) -> None:
    for number in range(partition, job.records, job.partitions):
        ahead = job.due(number) - journal.now()
        if ahead > 0:
            await asyncio.sleep(max(ahead, TICK))
        journal.handed += 1
        try:
            future = await producer.send(job.topic, job.value(number), partition=partition)
        except _FAILURES as error:
            journal.lost(number, partition, error)
        else:
            future.add_done_callback(partial(_outcome, journal, number, partition))


def _outcome(journal: Journal, number: int, partition: int, future: Any) -> None:
    if future.cancelled():
        journal.lost(number, partition, "cancelled")
    elif future.exception() is not None:
        journal.lost(number, partition, future.exception())
    else:
        journal.written(number, partition, future.result().offset)


async def transactions(job: Job, journal: Journal) -> None:
    """Run one transaction after the other; replace a producer that cannot begin another by one of the same name."""
    firsts = iter(range(0, 1 << 62, job.transactions))
    settings = {"bootstrap_servers": job.bootstrap, "linger_ms": LINGER_MS}
    with journal:
        journal.more["producers"] = 0
        while journal.now() < job.seconds:
            journal.more["producers"] += 1
            try:
                async with AIOKafkaProducer(transactional_id=job.topic, **settings) as producer:
                    while journal.now() < job.seconds and await _transaction(job, journal, producer, next(firsts)):
                        journal.tell()
            except _FAILURES as error:
                _LOG.warning("the producer is replaced: %s", error)
                await asyncio.sleep(0.1)


async def _transaction(job: Job, journal: Journal, producer: Any, first: int) -> bool:
    """Run one transaction when it is due; return False if none can begin. A failed record does not fail the commit,
    so all of them are awaited before."""
    await asyncio.sleep(max(job.due(first) - journal.now(), 0))
    began, entered, left = journal.now(), False, False
    outcome, cause = "committed", None
    try:
        async with producer.transaction():
            entered = True
            sent = [
                await producer.send(job.topic, job.value(number), partition=number % job.partitions)
                for number in range(first, first + job.transactions)
            ]
            if job.is_to_abort(first) and not job.is_to_flush(first):
                raise _OnPurpose
            await asyncio.gather(*sent)
            if job.is_to_abort(first):
                raise _OnPurpose
            left = True
    except _OnPurpose:
        outcome = "aborted"
    except _FAILURES as error:
        if not entered:
            return False
        outcome, cause = "unsure" if left else "failed", error
    journal.transaction(first, job.transactions, began, outcome, cause)
    return True


def main() -> None:
    job = read_job(__doc__ or "")
    journal = Journal(job, _LOG)
    journal.more["version"] = f"{aiokafka.__name__} {aiokafka.__version__}, {job.loop}"
    loop: Any = None
    if job.loop == "uvloop":
        import uvloop

        loop = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(transactions(job, journal) if job.transactions else plain(job, journal))


if __name__ == "__main__":
    main()
