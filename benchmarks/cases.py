"""Cases to measure: the figures of a measurement, and a case, the task of each contender."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from aiokafkawire.records.batch import IMPLEMENTATION

Row: TypeAlias = dict[str, Any]
"""The output of a measured program, with its contender."""

_MOST_BYTES: Final = 400_000_000
"""Of values, in one measurement."""
_FASTER: Final = {"confluent": 5, "ours": 5 if IMPLEMENTATION == "cython" else 1}
"""The factor by which a client needs more records for a run of similar length."""


@dataclass(frozen=True)
class Figure:
    """One number that a table shows."""

    heading: str
    of: Callable[[Row], float]
    less_is_better: bool = True
    compared: bool = True
    """Whether its ratios are meaningful: not if it may be zero."""

    @property
    def title(self) -> str:
        """The heading, with the better direction."""
        return f"{self.heading} ({'less' if self.less_is_better else 'more'} is better)"


def _printed(name: str) -> Callable[[Row], float]:
    return lambda row: float(row[name])


def _growth(row: Row) -> float:
    """Return the growth in MB from the second fifth of a run, when all buffers have been full, to its last."""
    samples: Sequence[float] = row["memory_mb"]
    fifth = max(1, len(samples) // 5)
    return statistics.median(samples[-fifth:]) - statistics.median(samples[fifth : 2 * fifth] or samples[:1])


FIGURES: Final[Mapping[str, Figure]] = {
    "records_per_second": Figure("records/s", lambda row: row["records"] / row["seconds"], less_is_better=False),
    "cpu_us_per_record": Figure("client CPU us per record", lambda row: row["cpu_seconds"] * 1e6 / row["records"]),
    "sends_per_second": Figure("sends/s", lambda row: row["records"] / row["seconds"], less_is_better=False),
    "cpu_us_per_send": Figure("client CPU us per send", lambda row: row["cpu_seconds"] * 1e6 / row["records"]),
    "p50_us": Figure("p50 us", _printed("p50_us")),
    "p99_us": Figure("p99 us", _printed("p99_us")),
    "us_per_message": Figure("us per message", lambda row: row["seconds"] * 1e6 / row["records"]),
    "peak_mb": Figure("largest memory MB", lambda row: max(row["memory_mb"])),
    "growth_mb": Figure("growth MB", _growth, compared=False),
    "assembled_s": Figure("all join s", _printed("assembled_s")),
    "joins_s": Figure("one more s", _printed("joins_s")),
    "leaves_s": Figure("one leaves s", _printed("leaves_s")),
    "moved": Figure("moved", _printed("moved"), compared=False),
}
_FIGURES_OF: Final = {
    "produce": ("records_per_second", "cpu_us_per_record"),
    "consume": ("records_per_second", "cpu_us_per_record"),
    "share": ("records_per_second", "cpu_us_per_record"),
    "latency": ("p50_us", "p99_us", "cpu_us_per_send"),
    "end_to_end": ("p50_us", "p99_us", "cpu_us_per_send"),
    "concurrent": ("sends_per_second", "p50_us", "p99_us", "cpu_us_per_send"),
    "rebalance": ("assembled_s", "joins_s", "leaves_s", "moved"),
    "messages": ("us_per_message",),
}


@dataclass(frozen=True)
class Case:
    """A task and its settings: one table, or one place in a group of cases that are shown together."""

    benchmark: str
    name: str
    task: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    """The common name of a group of cases, such as ``produce, by partitions``."""
    place: str = ""
    """The name of this case in the group."""
    at: float | None = None
    """The position on a curve; None in a group without a curve."""
    share: float = 1.0
    """The number of records, as a fraction of ``--records``."""
    alike: bool = False
    """Whether to measure only one way of each client: the comparable one."""
    keeps_topic: bool = False
    """Whether all measurements share their topics, since creating others would take longer than measuring."""
    only_figures: tuple[str, ...] = ()

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures to report."""
        return self.only_figures or _FIGURES_OF[self.task]

    @property
    def full_name(self) -> str:
        """The name with its benchmark, such as ``produce: values of 100 B``."""
        return f"{self.benchmark}: {self.name}"

    def records(self, client: str, wished: int) -> int:
        """Return the number of records, or sends, of a client's measurement, if ``--records`` is ``wished``."""
        size = int(self.settings.get("value_size", 100))
        alike = self.keeps_topic or self.settings.get("samples") or self.task not in ("produce", "consume")
        times = 1 if alike else _FASTER.get(client, 1)
        least = 10 * int(self.settings.get("consumers", 1))
        return max(least, min(int(wished * self.share * times), _MOST_BYTES // size))

    def refusal(self, client: str, way: str) -> str:
        """Return why a client cannot be measured; empty if it can."""
        if self.settings.get("in_flight", 1) > 1 and client == "aiokafka":
            return "aiokafka has one request on its way to a broker"
        if self.settings.get("assignor") == "cooperative-sticky" and client == "aiokafka":
            return "aiokafka knows no cooperative assignor"
        if self.settings.get("group") == "consumer" and client in ("aiokafka", "kafka-python"):
            return f"{client} does not know the consumer protocol"
        if self.settings.get("topics", 1) > 1 and way == "send_batch":
            return "send_batch would go to one topic"
        return ""
