"""How long a large group takes to rebalance when one more consumer comes, and when it goes, on a real Kafka.

Fifty consumers share a topic of 500 partitions without records. The 51st comes; the clock runs until every partition
has one owner again, and all have an equal share, as their own assignments say. Then it leaves in order, and so on. All
consumers are in this process, and on one event loop.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.cluster import create_topic, delete_topic, kafka, records_in
from benchmarks.contenders import CLIENTS
from benchmarks.machine import describe, has_module
from benchmarks.progress import progress, tell
from benchmarks.rebalance_crowds import Crowd, Settings, new_crowd
from benchmarks.report import aligned

EPILOG = """\
examples, each after `python benchmarks/rebalance.py`:
                                        eager (range) and cooperative-sticky, five rounds each
  --consumers 5 --partitions 50 --rounds 1
                                        does everything work?
  --peer confluent                      the same for librdkafka too, a thread for each of its consumers
  --peer aiokafka --assignors range     aiokafka knows no cooperative assignor
  --heartbeat-interval-ms 500           members hear of a rebalance by the answer to a heartbeat, so this is most of it
  --bootstrap localhost:9092            on a cluster that runs
"""
ASSIGNORS = ("range", "cooperative-sticky")
_PATIENCE = 180.0
_LOOK = 0.01
"""Seconds between looks at the assignments, and so how exact the times are."""


class NotStable(Exception):
    """A group did not come to rest in time; the message says how far it was."""


def main() -> int:
    options = _options()
    clients = ["ours", *options.peers]
    runs = [(client, assignor) for client in clients for assignor in options.assignors]
    runs = [run for run in runs if run != ("aiokafka", "cooperative-sticky")]
    about, rows, failures = describe(sys.argv) | _settings(options), [], []
    with kafka(options.bootstrap) as (bootstrap, description):
        about["kafka"] = description
        with progress(len(runs) * (options.rounds + 1)) as advance:
            for client, assignor in runs:
                try:
                    rows.append(_run(client, assignor, bootstrap, options, advance))
                except NotStable as failed:
                    tell(f"FAILED {client} {assignor}: {failed}")
                    failures.append(f"{client} {assignor}: {failed}")
    print(render(about, rows, failures))
    if options.json is not None:
        with options.json.open("a") as file:
            file.writelines(json.dumps({"about": about, **row}) + "\n" for row in rows)
    return 1 if failures else 0


def render(about: dict[str, str], rows: list[dict[str, Any]], failures: list[str]) -> str:
    """The run as text."""
    width = max(map(len, about))
    table = [["", "all join s", "one more s", "moved", "one leaves s", "moved"]]
    for row in rows:
        joins, leaves = row["joins"], row["leaves"]
        table.append(
            [
                f"{row['client']} {row['assignor']}",
                f"{row['assembled_s']:.2f}",
                _spread([one["seconds"] for one in joins]),
                _spread([one["moved"] for one in joins], 0),
                _spread([one["seconds"] for one in leaves]),
                _spread([one["moved"] for one in leaves], 0),
            ]
        )
    lines = [*(f"{name:<{width}}  {text}" for name, text in about.items()), ""]
    lines += ["The median, and the range of the rounds; moved: partitions that got another owner", *aligned(table)]
    return "\n".join([*lines, *(f"  FAILED {text}" for text in failures)])


def _spread(values: list[float], digits: int = 2) -> str:
    median, least, most = (f"{one:.{digits}f}" for one in (statistics.median(values), min(values), max(values)))
    return median if least == most else f"{median} [{least}-{most}]"


def _run(
    client: str, assignor: str, bootstrap: str, options: argparse.Namespace, advance: Callable[[str], None]
) -> dict[str, Any]:
    """One group of one client, on a topic of its own; its row of the report.

    :raises NotStable: the group did not come to rest.
    """
    name = f"rebalance-{client}-{assignor}-{datetime.now(UTC).strftime('%Y%m%d%H%M%S')}"
    create_topic(bootstrap, name, options.partitions)
    # A broker that is still busy with making so many logs does little else; it can say where they end when it is done.
    records_in(bootstrap, name, options.partitions)
    settings = Settings(
        bootstrap=bootstrap,
        topic=name,
        assignor=assignor,
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
    )
    backend = "trio" if client == "ours" and options.loop == "trio" else "asyncio"
    loop = {"use_uvloop": options.loop == "uvloop"} if backend == "asyncio" else {}

    async def measure() -> dict[str, Any]:
        async with new_crowd(client, settings) as crowd:
            return await _measure(crowd, f"{client} {assignor}", options, advance)

    try:
        figures = anyio.run(measure, backend=backend, backend_options=loop)
    finally:
        delete_topic(bootstrap, name)
    return {"client": client, "assignor": assignor, **figures}


async def _measure(
    crowd: Crowd, label: str, options: argparse.Namespace, advance: Callable[[str], None]
) -> dict[str, Any]:
    advance(f"{label}: {options.consumers} consumers join")
    # The first group of all makes the brokers create the topic of offsets, which is no part of a rebalance.
    crowd.join()
    await _stable(crowd, 1, options.partitions)
    began = time.monotonic()
    for _ in range(options.consumers - 1):
        crowd.join()
    assembled = await _stable(crowd, options.consumers, options.partitions) - began
    joins, leaves = [], []
    for number in range(1, options.rounds + 1):
        advance(f"{label}: round {number} of {options.rounds}")
        joins.append(await _timed(crowd, crowd.join, options.consumers + 1, options.partitions))
        leaves.append(await _timed(crowd, crowd.leave, options.consumers, options.partitions))
    return {"assembled_s": assembled, "joins": joins, "leaves": leaves}


async def _timed(crowd: Crowd, act: Callable[[], None], consumers: int, partitions: int) -> dict[str, Any]:
    before = _owners(crowd)
    began = time.monotonic()
    act()
    seconds = await _stable(crowd, consumers, partitions) - began
    after = _owners(crowd)
    return {"seconds": seconds, "moved": sum(after[one] != owner for one, owner in before.items())}


async def _stable(crowd: Crowd, consumers: int, partitions: int) -> float:
    """Wait until each partition has one owner and the shares are equal; when that was seen."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        now = time.monotonic()
        shares = list(crowd.shares().values())
        if is_stable(shares, consumers, partitions):
            return now
        if now > deadline or crowd.failures:
            sizes = f"{len(shares)} consumers have {sum(map(len, shares))} partitions"
            raise NotStable("; ".join([f"after {now - deadline + _PATIENCE:.0f} s {sizes}", *crowd.failures]))
        await anyio.sleep(_LOOK)


def is_stable(shares: list[frozenset[int]], consumers: int, partitions: int) -> bool:
    """Whether so many consumers have so many partitions, each one owner, and nobody two more than another."""
    sizes = [len(share) for share in shares]
    if len(sizes) != consumers or sum(sizes) != partitions or max(sizes) - min(sizes) > 1:
        return False
    return len(set(chain.from_iterable(shares))) == partitions


def _owners(crowd: Crowd) -> dict[int, int]:
    return {partition: member for member, share in crowd.shares().items() for partition in share}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    peers = sorted(set(CLIENTS) - {"ours"})
    parser.add_argument("--consumers", type=_positive, default=50, help="of the group, without the one more (50)")
    parser.add_argument("--partitions", type=_positive, default=500, help="of the topic (500)")
    parser.add_argument("--rounds", type=_positive, default=5, help="how often one more comes and goes (5)")
    parser.add_argument("--assignors", type=_assignors, default=ASSIGNORS, help=f"some of {','.join(ASSIGNORS)}")
    parser.add_argument("--peer", dest="peers", action="append", choices=peers, default=[], help="also a peer's group")
    parser.add_argument("--session-timeout-ms", type=_positive, default=45_000, help="session.timeout.ms (45000)")
    parser.add_argument("--heartbeat-interval-ms", type=_positive, default=3_000, help="heartbeat.interval.ms (3000)")
    parser.add_argument("--loop", choices=("asyncio", "uvloop", "trio"), default="asyncio", help="trio: ours only")
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="a cluster that runs; else Apache Kafka is booted here"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one line of JSON for each group")
    options = parser.parse_args()
    if options.consumers >= options.partitions:
        parser.error("--partitions: there must be one for each consumer, and one more")
    absent = [one for one in options.peers if not has_module(CLIENTS[one])]
    if absent:
        parser.error(f"not installed: {', '.join(absent)}")
    return options


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {
        "group": f"{options.consumers} consumers and one more, {options.partitions} partitions, session.timeout.ms "
        f"{options.session_timeout_ms}, heartbeat.interval.ms {options.heartbeat_interval_ms}, {options.loop}",
        "rounds": str(options.rounds),
    }


def _assignors(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in ASSIGNORS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(ASSIGNORS)}")
    return names


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is needed, got {text}")
    return number


if __name__ == "__main__":
    sys.exit(main())
