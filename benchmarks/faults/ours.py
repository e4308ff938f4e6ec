"""aiokafkawire in a run under fault: records that are acknowledged one by one, or transactions."""

import logging

import anyio

from aiokafkawire import Client, Delivery, KafkaError, Producer
from aiokafkawire.config import ProducerOptions
from benchmarks.faults.journal import LINGER_MS, TICK, Job, Journal, read_job
from benchmarks.machine import version_of


class _OnPurpose(Exception):
    """Leaves a transaction that is to be aborted."""


async def plain(job: Job, journal: Journal) -> None:
    """Run a writer for each partition, so that a waiting one delays no other."""
    settings: ProducerOptions = {"acks": "all", "linger_ms": LINGER_MS, "enable_idempotence": True}
    async with Client(job.bootstrap) as kafka, kafka.producer(**settings) as producer:
        await producer.partitions_for(job.topic)
        with journal:
            async with anyio.create_task_group() as telling:
                telling.start_soon(_tell, journal)
                async with anyio.create_task_group() as writers:
                    for partition in range(job.partitions):
                        writers.start_soon(_write, job, journal, producer, partition)
                telling.cancel_scope.cancel()


async def _tell(journal: Journal) -> None:
    while True:
        journal.tell()
        await anyio.sleep(0.5)


async def _write(job: Job, journal: Journal, producer: Producer[bytes, bytes], partition: int) -> None:
    async with anyio.create_task_group() as waiting:
        for number in range(partition, job.records, job.partitions):
            ahead = job.due(number) - journal.now()
            if ahead > 0:
                await anyio.sleep(max(ahead, TICK))
            journal.handed += 1
            try:
                delivery = await producer.enqueue(job.topic, job.value(number), partition=partition)
            except KafkaError as error:
                journal.lost(number, partition, error)
            else:
                waiting.start_soon(_outcome, journal, number, partition, delivery)


async def _outcome(journal: Journal, number: int, partition: int, delivery: Delivery) -> None:
    try:
        written = await delivery
    except KafkaError as error:
        journal.lost(number, partition, error)
    else:
        journal.written(number, partition, written.offset)


async def transactions(job: Job, journal: Journal) -> None:
    """Run one transaction after the other; replace a producer that cannot begin another by one of the same name."""
    firsts = iter(range(0, 1 << 62, job.transactions))
    async with Client(job.bootstrap) as kafka:
        with journal:
            producers = 0
            while journal.now() < job.seconds:
                producers += 1
                journal.more["producers"] = producers
                try:
                    async with kafka.producer(transactional_id=job.topic, linger_ms=LINGER_MS) as producer:
                        while journal.now() < job.seconds and await _transaction(job, journal, producer, next(firsts)):
                            journal.tell()
                except KafkaError as error:
                    logging.getLogger("aiokafkawire").warning("the producer is replaced: %s", error)
                    await anyio.sleep(0.1)


async def _transaction(job: Job, journal: Journal, producer: Producer[bytes, bytes], first: int) -> bool:
    """Run one transaction when it is due; return False if none can begin."""
    await anyio.sleep(max(job.due(first) - journal.now(), 0))
    began, entered, left = journal.now(), False, False
    outcome = "committed"
    cause: KafkaError | None = None
    try:
        async with producer.transaction() as tx:
            entered = True
            for number in range(first, first + job.transactions):
                await tx.enqueue(job.topic, job.value(number), partition=number % job.partitions)
            if job.is_to_abort(first):
                if job.is_to_flush(first):
                    await producer.flush()
                raise _OnPurpose
            left = True
    except _OnPurpose:
        outcome = "aborted"
    except KafkaError as error:
        if not entered:
            return False
        outcome, cause = "unsure" if left else "failed", error
    journal.transaction(first, job.transactions, began, outcome, cause)
    return True


def main() -> None:
    job = read_job(__doc__ or "")
    journal = Journal(job, logging.getLogger("aiokafkawire"))
    journal.more["version"] = f"aiokafkawire {version_of('aiokafkawire')}, {job.loop}"
    backend = "trio" if job.loop == "trio" else "asyncio"
    options = {"use_uvloop": job.loop == "uvloop"} if backend == "asyncio" else {}
    anyio.run(transactions if job.transactions else plain, job, journal, backend=backend, backend_options=options)


if __name__ == "__main__":
    main()
