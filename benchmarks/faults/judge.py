"""The result of a run under fault: librdkafka reads the topic, and `check` compares it with the client's journal.

`check` and `figures` are plain functions of the records read and written.
"""

import logging
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from benchmarks.faults.journal import Job

Logs: TypeAlias = Mapping[int, Sequence[tuple[int, int]]]
"""Offset and number of each record that a reader sees, by partition, in the order of the offsets."""
Line: TypeAlias = dict[str, Any]

WRONGS = ("lost", "doubled", "out_of_order", "elsewhere", "unknown", "silent", "torn", "undead", "open")
"""The figures of `check` of which each must be 0."""

QUIET = logging.getLogger("benchmarks.faults")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

_OPEN_FOR = 90.0  # seconds; longer than transaction.timeout.ms, after which brokers abort by themselves


def check(job: Job, lines: Iterable[Line], handed: int, logs: Logs) -> dict[str, int]:
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
    seen: dict[int, set[int]] = {}
    found: Counter[str] = Counter()
    for partition, log in logs.items():
        last = -1
        for offset, number in log:
            if number in seen:
                found["doubled"] += 1
                seen[number].add(offset)
                continue
            seen[number] = {offset}
            found["out_of_order"] += number < last
            found["elsewhere"] += number % job.partitions != partition
            last = max(last, number)
    if job.transactions:
        _check_transactions(lines, seen, found)
    else:
        _check_records(lines, seen, found, handed)
    return {name: found[name] for name in WRONGS}


def _check_records(lines: Iterable[Line], seen: Mapping[int, set[int]], found: Counter[str], handed: int) -> None:
    outcomes: set[int] = set()
    for line in lines:
        number = line["record"]
        outcomes.add(number)
        if "error" in line:
            continue
        found["lost"] += number not in seen
        found["elsewhere"] += line["offset"] is not None and number in seen and line["offset"] not in seen[number]
    found["silent"] = handed - len(outcomes)
    found["unknown"] = sum(number >= handed for number in seen)


def _check_transactions(lines: Iterable[Line], seen: Mapping[int, set[int]], found: Counter[str]) -> None:
    known: set[int] = set()
    for line in lines:
        numbers = range(line["transaction"], line["transaction"] + line["records"])
        known.update(numbers)
        there = sum(number in seen for number in numbers)
        match line["outcome"]:
            case "committed":
                found["lost"] += len(numbers) - there
            case "unsure":
                found["torn"] += 0 < there < len(numbers)
            case _:
                found["undead"] += there
    found["unknown"] = len(seen.keys() - known)


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
