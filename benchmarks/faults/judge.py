"""The result of a run under fault: librdkafka reads the topic, and the client's journal says what must be there.

Both are a history, in which the checker of `tests/histories` finds what is wrong. All but the reading are plain
functions of the records read and written.
"""

import logging
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from histories.anomalies import Anomaly, Kind
from histories.checking import check
from histories.events import (
    Event,
    LogFound,
    RecordSent,
    SendAcknowledged,
    TransactionBegan,
    TransactionCommitRequested,
    TransactionCommitted,
)

from benchmarks.faults.journal import Job

Logs: TypeAlias = Mapping[int, Sequence[tuple[int, int]]]
"""Offset and number of each record that a reader sees, by partition, in the order of the offsets."""
Line: TypeAlias = dict[str, Any]

WRONGS = ("lost", "doubled", "out_of_order", "elsewhere", "unknown", "silent", "torn", "undead", "open")
"""The figures of `count_wrongs` of which each must be 0."""

QUIET = logging.getLogger("benchmarks.faults")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

_OPEN_FOR = 90.0  # seconds; longer than transaction.timeout.ms, after which brokers abort by themselves


_FIGURES: Mapping[Kind, str] = {
    Kind.LOST_WRITE: "lost",
    Kind.DUPLICATE: "doubled",
    Kind.REORDER: "out_of_order",
    Kind.MISPLACED: "elsewhere",
    Kind.PHANTOM: "unknown",
    Kind.TORN_TRANSACTION: "torn",
    Kind.ABORTED_READ: "undead",
}
_WRITER = "the client"


def find_anomalies(job: Job, lines: Iterable[Line], handed: int, logs: Logs) -> list[Anomaly]:
    """Return what is wrong with the logs that a reader sees, the reader of committed records with transactions."""
    writes = _transactions(job, lines) if job.transactions else _records(job, lines, handed)
    committed = (True, False) if job.transactions else (False,)
    found = (
        LogFound(partition, tuple(log), is_committed=is_committed)
        for partition, log in logs.items()
        for is_committed in committed
    )
    return check([*writes, *found])


def _records(job: Job, lines: Iterable[Line], handed: int) -> Iterator[Event]:
    for number in range(handed):
        yield RecordSent(_WRITER, number, partition=number % job.partitions)
    for line in lines:
        if "error" not in line:
            offset = -1 if line["offset"] is None else line["offset"]
            yield SendAcknowledged(line["record"], line["partition"], offset)


def _transactions(job: Job, lines: Iterable[Line]) -> Iterator[Event]:
    for line in lines:
        name, first = str(line["transaction"]), line["transaction"]
        yield TransactionBegan(name, _WRITER)
        for number in range(first, first + line["records"]):
            yield RecordSent(_WRITER, number, name, number % job.partitions)
        if line["outcome"] in ("committed", "unsure"):
            yield TransactionCommitRequested(name)
        if line["outcome"] == "committed":
            yield TransactionCommitted(name)


def count_wrongs(job: Job, lines: Sequence[Line], handed: int, anomalies: Iterable[Anomaly]) -> dict[str, int]:
    """Return the number of violations of each kind.

    - lost: acknowledged, or committed, and not to be seen
    - doubled: seen again
    - out_of_order: seen after a record of its partition that was sent later
    - elsewhere: not in the partition it was sent to, or at another offset than its acknowledgement says
    - unknown: seen, but never sent
    - silent: sent, and neither acknowledged nor failed
    - torn: transactions whose commit failed of which some is seen, and some not
    - undead: records seen whose transaction was aborted, on purpose or by an error
    """
    found = Counter(_FIGURES[anomaly.kind] for anomaly in anomalies)
    found["silent"] = 0 if job.transactions else handed - len({line["record"] for line in lines})
    return {name: found[name] for name in WRONGS}


def figures(job: Job, lines: Sequence[Line], logs: Logs) -> dict[str, float | int | None]:
    """Return the journal's counts and times; the latter are in seconds, and None without data."""
    seen = {number for log in logs.values() for _, number in log}
    return _of_transactions(lines, seen) if job.transactions else _of_records(job, lines, seen)


def _of_records(job: Job, lines: Sequence[Line], seen: set[int]) -> dict[str, float | int | None]:
    acknowledged = [line for line in lines if "error" not in line]
    failed = [line for line in lines if "error" in line]
    by_partition = [[line["at"] for line in acknowledged if line["partition"] == one] for one in range(job.partitions)]
    late = [line["at"] - job.due(line["record"]) for line in acknowledged]
    return {
        "acknowledged": len(acknowledged),
        "failed": len(failed),
        "failed_but_written": sum(line["record"] in seen for line in failed),
        "gap_s": _gap(line["at"] for line in acknowledged),
        "partition_gap_s": max((gap for gap in map(_gap, by_partition) if gap is not None), default=None),
        **_spread(late),
    }


def _of_transactions(lines: Sequence[Line], seen: set[int]) -> dict[str, float | int | None]:
    counts = Counter(line["outcome"] for line in lines)
    committed = [line for line in lines if line["outcome"] == "committed"]
    return {
        "transactions": len(lines),
        **{outcome: counts[outcome] for outcome in ("committed", "aborted", "failed", "unsure")},
        "unsure_but_committed": sum(line["outcome"] == "unsure" and line["transaction"] in seen for line in lines),
        "gap_s": _gap(line["at"] for line in committed),
        **_spread([line["at"] - line["began"] for line in committed]),
    }


def _gap(times: Iterable[float]) -> float | None:
    ordered = sorted(times)
    return max((later - one for one, later in pairwise(ordered)), default=None)


def _spread(seconds: Sequence[float]) -> dict[str, float | int | None]:
    if not seconds:
        return dict.fromkeys(("p50_s", "p99_s", "max_s"))
    ordered = sorted(seconds)
    return {"p50_s": statistics.median(ordered), "p99_s": ordered[int(len(ordered) * 0.99)], "max_s": ordered[-1]}


# --- reading back ------------------------------------------------------------------------------------------------


def read_back(job: Job) -> tuple[Logs, int]:
    """Return all records of the topic, the committed ones with transactions, and how many partitions still have an
    open transaction in the way, after as long as the brokers may let one be open."""
    ends, still_open = _wait_for_ends(job)
    logs: dict[int, list[tuple[int, int]]] = {partition: [] for partition in ends}
    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": "judge",  # required, though nothing joins or commits
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if job.transactions else "read_uncommitted",
            "check.crcs": True,
        },
        logger=QUIET,
    )
    consumer.assign([TopicPartition(job.topic, partition, 0) for partition in ends])
    unread = set(ends)
    while unread:
        for message in consumer.consume(10_000, 1.0):
            error, partition = message.error(), message.partition()
            if error is None:
                offset, value = message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                assert value is not None
                logs[partition].append((offset, int(value.split()[0])))
            elif error.code() == KafkaError._PARTITION_EOF and partition is not None:
                unread.discard(partition)
            elif not error.retriable():
                raise KafkaException(error)
    consumer.close()
    return logs, still_open


def _wait_for_ends(job: Job) -> tuple[dict[int, int], int]:
    """Return the end of each partition once no transaction is open there, and in how many one still is."""
    admin = AdminClient({"bootstrap.servers": job.bootstrap}, logger=QUIET)
    deadline = time.monotonic() + _OPEN_FOR
    while True:
        high = _ends(admin, job, IsolationLevel.READ_UNCOMMITTED)
        stable = _ends(admin, job, IsolationLevel.READ_COMMITTED)
        still_open = sum(stable[partition] < end for partition, end in high.items())
        if not still_open or time.monotonic() > deadline:
            return stable, still_open
        time.sleep(1)


def _ends(admin: AdminClient, job: Job, isolation: IsolationLevel) -> dict[int, int]:
    latest: Any = OffsetSpec.latest  # it publishes no types
    where = {TopicPartition(job.topic, partition): latest() for partition in range(job.partitions)}
    asked = admin.list_offsets(where, isolation_level=isolation, request_timeout=30)
    return {one.partition: future.result().offset for one, future in asked.items()}
