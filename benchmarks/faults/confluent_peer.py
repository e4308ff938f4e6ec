"""confluent-kafka, which is librdkafka, in a run under fault: records acknowledged one by one, or transactions."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, Message, Producer

from benchmarks.faults.journal import LINGER_MS, TICK, Job, Journal, read_job

_SERVE_EVERY = 100
"""Records between calls of ``poll(0)`` where the producer is behind its time."""


def plain(job: Job, journal: Journal) -> None:
    """Produce due records in one loop, and serve delivery reports in between."""
    producer = _producer(job, {"enable.idempotence": True})
    producer.list_topics(job.topic, 10)
    with journal:
        for number in range(job.records):
            while job.due(number) > journal.now():
                producer.poll(TICK)
                journal.tell()
            if number % _SERVE_EVERY == 0:
                producer.poll(0)
            journal.handed += 1
            report = partial(_report, journal, number, number % job.partitions)
            _produce(producer, job.topic, job.value(number), partition=number % job.partitions, on_delivery=report)
        while len(producer):
            producer.poll(0.1)
            journal.tell()


def _report(journal: Journal, number: int, partition: int, error: Any, message: Message) -> None:
    if error is not None:
        journal.lost(number, partition, f"{error.name()}: {error.str()}")
    else:
        journal.written(number, partition, message.offset())


def transactions(job: Job, journal: Journal) -> None:
    """Run one transaction after the other; replace a producer with a fatal error by one of the same name."""
    firsts = iter(range(0, 1 << 62, job.transactions))
    with journal:
        journal.more["producers"] = 0
        while journal.now() < job.seconds:
            journal.more["producers"] += 1
            producer = _producer(job, {"transactional.id": job.topic})
            try:
                _persist(producer.init_transactions)
                while journal.now() < job.seconds and _transaction(job, journal, producer, next(firsts)):
                    producer.poll(0)
                    journal.tell()
            except KafkaException as error:
                logging.getLogger("confluent_kafka").warning("the producer is replaced: %s", error)
                producer.poll(0.1)


def _transaction(job: Job, journal: Journal, producer: Producer, first: int) -> bool:
    """Run one transaction when it is due; return False if none can begin."""
    while (ahead := job.due(first) - journal.now()) > 0:
        producer.poll(ahead)
    began = journal.now()
    try:
        producer.begin_transaction()
    except KafkaException:
        return False
    outcome = "aborted" if job.is_to_abort(first) else "committed"
    cause: KafkaException | None = None
    try:
        for number in range(first, first + job.transactions):
            _produce(producer, job.topic, job.value(number), partition=number % job.partitions)
        if job.is_to_abort(first) and job.is_to_flush(first):
            producer.flush()
        _persist(producer.abort_transaction if outcome == "aborted" else producer.commit_transaction)
    except KafkaException as error:
        # Only where librdkafka says that an abort is due, the commit has certainly not happened.
        failed = outcome == "aborted" or error.args[0].txn_requires_abort()
        outcome, cause = "failed" if failed else "unsure", error
    journal.transaction(first, job.transactions, began, outcome, cause)
    if cause is not None and cause.args[0].txn_requires_abort():
        _persist(producer.abort_transaction)
    return True


def _persist(end: Callable[[], Any]) -> None:
    """Call it until it has worked, or failed for good: librdkafka asks for that where an error is retriable."""
    while True:
        try:
            end()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def _produce(producer: Producer, topic: str, value: bytes, **more: Any) -> None:
    while True:
        try:
            producer.produce(topic, value, **more)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _producer(job: Job, settings: dict[str, Any]) -> Producer:
    common = {"bootstrap.servers": job.bootstrap, "acks": "all", "linger.ms": LINGER_MS}
    return Producer({**common, **settings}, logger=logging.getLogger("confluent_kafka"))


def main() -> None:
    job = read_job(__doc__ or "")
    journal = Journal(job, logging.getLogger("confluent_kafka"))
    journal.more["version"] = f"librdkafka {confluent_kafka.libversion()[0]}"
    (transactions if job.transactions else plain)(job, journal)


if __name__ == "__main__":
    main()
