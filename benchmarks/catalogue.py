"""The benchmarks: the subject, the duration and the cases of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from benchmarks.cases import Case
from benchmarks.codec.messages import MESSAGES

GROUPS: Final = ("none", "classic", "consumer")
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Wishes:
    """The command line's settings of the cases; None means the benchmark's default."""

    sizes: Sequence[int] | None = None
    compressions: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    """Of `consume`: "none" for assigned partitions, or the protocol of a group."""


@dataclass(frozen=True)
class Benchmark:
    """One name on the command line."""

    line: str
    minutes: int
    """The approximate duration, with all installed clients and the default options, on two cores."""
    cases: Callable[[Wishes], list[Case]]
    needs_kafka: bool = True


def size_text(size: int) -> str:
    """Format a size, such as ``10 KB``."""
    for unit, name in ((1_000_000, "MB"), (1_000, "KB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def _plain(name: str, task: str, wishes: Wishes, sizes: Sequence[int], **more: Any) -> list[Case]:
    """Return one case for each size and codec."""
    return [
        Case(
            name,
            f"values of {size_text(size)}" + ("" if codec == "none" else f", {codec}"),
            task,
            {"value_size": size, "compression": codec, "content": "same" if codec == "none" else "text"},
            **more,
        )
        for size in wishes.sizes or sizes
        for codec in wishes.compressions or ("none",)
    ]


def _produce(wishes: Wishes) -> list[Case]:
    return _plain("produce", "produce", wishes, (100, 1_000, 10_000))


def _consume(wishes: Wishes) -> list[Case]:
    return [
        case if group == "none" else _in_group(case, group)
        for case in _plain("consume", "consume", wishes, (100, 1_000, 10_000))
        for group in wishes.groups or ("none",)
    ]


def _in_group(case: Case, group: str) -> Case:
    settings = {**case.settings, "group": group}
    return replace(case, name=f"{case.name}, {group} protocol", settings=settings, alike=True)


def _share(wishes: Wishes) -> list[Case]:
    return [
        replace(case, name=f"{case.name}, {label}", settings={**case.settings, "partitions": partitions})
        for case in _plain("share", "share", wishes, (100,))
        for partitions, label in ((1, "one partition"), (3, "three partitions"))
    ]


def _latency(wishes: Wishes) -> list[Case]:
    acknowledged = _plain("latency", "latency", wishes, (100,), share=1 / 400)
    return acknowledged + [
        replace(case, name=f"until read, {case.name}", task="end_to_end", settings={**case.settings, "partitions": 1})
        for case in acknowledged
    ]


def _concurrent(wishes: Wishes) -> list[Case]:
    return _plain("concurrent", "concurrent", wishes, (100,), share=1 / 10)


def _codecs(wishes: Wishes) -> list[Case]:
    return [
        Case(
            "codecs",
            f"{task}, values of {size_text(size)}, by codec: {codec}",
            task,
            {"value_size": size, "compression": codec, "content": "text"},
            group=f"{task}, values of {size_text(size)}, by codec",
            place=codec,
            alike=True,
        )
        for task in ("produce", "consume")
        for size in wishes.sizes or (1_000,)
        for codec in wishes.compressions or ("none", "lz4", "zstd")
    ]


def _tls(wishes: Wishes) -> list[Case]:
    """Return the comparable ways, or all if codecs are asked for."""
    return [
        replace(case, name=f"{task}, {case.name}", settings={**case.settings, "tls": True})
        for task in ("produce", "consume")
        for case in _plain("tls", task, wishes, (1_000,), alike=wishes.compressions is None)
    ]


def _memory(wishes: Wishes) -> list[Case]:
    return [
        Case(
            "memory",
            f"{task}, values of {size_text(size)}",
            task,
            {"value_size": size, "samples": True},
            share=10,
            alike=True,
            only_figures=("peak_mb", "growth_mb"),
        )
        for task in ("produce", "consume")
        for size in wishes.sizes or (100,)
    ]


def _rebalance(_: Wishes) -> list[Case]:
    return [
        Case("rebalance", assignor, "rebalance", {"assignor": assignor, "partitions": 500, "consumers": 50}, alike=True)
        for assignor in ("range", "cooperative-sticky")
    ]


def _messages(_: Wishes) -> list[Case]:
    return [
        Case(
            "messages",
            f"{direction} {name}",
            "messages",
            {"message": name, "direction": direction},
            group=f"{direction}, by message",
            place=name,
        )
        for direction in ("encode", "decode")
        for name in MESSAGES
    ]


def _scale(wishes: Wishes) -> list[Case]:
    # A controller refuses to create 10,000 partitions at once, so two topics have them.
    shapes = ((1, 10), (1, 100), (1, 1_000), (2, 5_000))
    curves = [
        ("partitions", [(topics * count, {"topics": topics, "partitions": count}) for topics, count in shapes]),
        ("topics of one partition", [(n, {"topics": n, "partitions": 1}) for n in (1, 10, 100, 1_000)]),
        (
            "bytes of a value",
            [(n, {"value_size": n}) for n in wishes.sizes or (10, 100, 1_000, 10_000, 100_000, 1_000_000)],
        ),
    ]
    both = [
        _on_curve(task, curve, at, settings)
        for curve, places in curves
        for task in ("produce", "consume")
        for at, settings in places
    ]
    in_flight = [
        _on_curve("produce", "requests in flight", n, {"in_flight": n, "value_size": 1_000}) for n in (1, 2, 5)
    ]
    consumers = [
        _on_curve("consume", "consumers in one process", n, {"consumers": n, "partitions": 50}) for n in (1, 5, 10, 50)
    ]
    return [*both, *in_flight, *consumers]


def _on_curve(task: str, curve: str, at: int, settings: dict[str, int]) -> Case:
    many = settings.get("topics", 1) * settings.get("partitions", 1) >= 100
    return Case(
        "scale",
        f"{task}, by {curve}: {at:,}",
        task,
        settings,
        group=f"{task}, by {curve}",
        place=f"{at:,}",
        at=at,
        alike=True,
        keeps_topic=many,
    )


BENCHMARKS: Final = {
    "produce": Benchmark("many records, then flush; values of 100 B, 1 KB and 10 KB", 20, _produce),
    "consume": Benchmark("a filled topic, read without a group, or with --groups; the same sizes", 10, _consume),
    "share": Benchmark("a filled topic, read by the only member of a share group, every record accepted", 8, _share),
    "latency": Benchmark(
        "single sends, until acknowledged (beside a floor, a replayed frame) and until read", 5, _latency
    ),
    "concurrent": Benchmark("100 senders at once, each awaiting its sends", 8, _concurrent),
    "tls": Benchmark("produce and consume over TLS", 4, _tls),
    "rebalance": Benchmark("50 consumers, one more comes, one leaves; eager and cooperative", 15, _rebalance),
    "codecs": Benchmark("produce and consume with none, lz4 and zstd, by each client", 12, _codecs),
    "messages": Benchmark(
        "encode and decode what large clusters exchange; needs no Kafka", 4, _messages, needs_kafka=False
    ),
    "memory": Benchmark("resident memory over a run of ten times the records: is it flat?", 25, _memory),
    "scale": Benchmark(
        "curves: partitions, topics, sizes of values, requests in flight, consumers in a process", 80, _scale
    ),
}
ALONE: Final = {
    "benchmarks.faults": "producers while brokers are killed (docs/faults.md)",
    "benchmarks.group_faults": "consumer groups while brokers and members are killed",
    "benchmarks.aiokafka_api": "one program with aiokafka's API, on aiokafka and on aiokafkawire.aiokafka",
    "benchmarks.group_growth": "what one more member costs the others of a large group (KIP-848)",
    "benchmarks.soak": "a group that rebalances every few seconds for minutes or hours: memory, tasks, lost records",
    "benchmarks.soak.chaos": "an hour of every protocol on a real cluster whose brokers are killed in turn",
    "benchmarks.closing": "how long a consumer takes to stop when its broker has just been killed",
    "benchmarks.shell_rates": "the shell's produce and consume beside kcat and Kafka's console tools; its help",
    "benchmarks.observability": "the CPU time that metrics add to each record, and the memory that they take",
    "benchmarks.micro": "the cost of single parts of aiokafkawire, of a waiting record and of the import",
    "benchmarks.many_brokers": "what each broker costs in simulated clusters of up to 1,000 of them",
    "benchmarks.large_metadata": "how long 100,000 partitions hold the event loop",
    "benchmarks spark": "our data source beside Spark's own, in one Spark session; needs pyspark, Java 17 and Maven",
}
"""Separate programs, each with a ``--help``."""
