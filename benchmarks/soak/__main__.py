"""A group that rebalances every few seconds on a real Kafka, for minutes or hours: does anything grow?

Three members stay, each with a client of its own, and one comes and goes, on a client that stays; every fourth time it
goes without a word, so that the coordinator has to notice. A producer writes numbered records with acks=all. All are in
this process. Twenty times, while the one is away, the program looks at its resident memory, its tasks and its open
files; at the end each has to be as in the beginning, and every record must have been read.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import anyio

from benchmarks.arguments import LOOPS, positive
from benchmarks.cluster import create_topics, kafka
from benchmarks.machine import describe
from benchmarks.progress import progress
from benchmarks.soak.churn import SAMPLES, TOPIC, Work, soak
from benchmarks.soak.judge import table, verdicts

EPILOG = """\
examples, each after `python -m benchmarks.soak`:
                                 ten minutes, the consumer protocol
  --minutes 120                  a night's rest: slow leaks show
  --protocol classic --loop trio the same with JoinGroup, on trio
  --minutes 2 --every 3          does everything work? (memory may still settle)

Growth is the median of the last fifth of the samples minus that of the second fifth, when all buffers have been full.
The exit status is 1 if anything has grown, or a record was lost.
"""


def main() -> int:
    options = _options()
    about = describe(sys.argv)
    backend = "trio" if options.loop == "trio" else "asyncio"
    loop = {"use_uvloop": options.loop == "uvloop"} if backend == "asyncio" else {}
    with kafka(properties=_broker_properties(options.heartbeat_interval_ms)) as cluster:
        create_topics(cluster.bootstrap, [TOPIC], options.partitions)
        work = Work(
            bootstrap=cluster.bootstrap,
            protocol=options.protocol,
            members=options.members,
            seconds=options.minutes * 60,
            every=options.every,
            rate=options.rate,
        )
        with progress(SAMPLES) as advance:
            samples, lost = anyio.run(soak, work, advance, backend=backend, backend_options=loop)
        about |= {"kafka": cluster.description, **_settings(options)}
    found = verdicts(samples, lost)
    width = max(map(len, about))
    print("\n".join([*(f"{name:<{width}}  {text}" for name, text in about.items()), "", *table(samples), ""]))
    print("\n".join(f"  {name:<8} {text}" for name, (_, text) in found.items()))
    if options.json is not None:
        with options.json.open("a") as file:
            file.write(json.dumps({"about": about, "lost": lost, "samples": [asdict(one) for one in samples]}) + "\n")
    return 0 if all(good for good, _ in found.values()) else 1


def _broker_properties(heartbeat_interval_ms: int) -> dict[str, str]:
    session = str(max(6_000, 3 * heartbeat_interval_ms))
    return {
        "group.consumer.min.session.timeout.ms": session,
        "group.consumer.session.timeout.ms": session,
        "group.consumer.min.heartbeat.interval.ms": str(heartbeat_interval_ms),
        "group.consumer.heartbeat.interval.ms": str(heartbeat_interval_ms),
        "group.initial.rebalance.delay.ms": "0",
    }


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {
        "group": f"{options.members} members stay, one comes and goes every {options.every:g} s; {options.protocol} "
        f"protocol, {options.partitions} partitions, {options.loop}",
        "records": f"{options.rate} a second for {options.minutes:g} minutes",
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="(10)")
    parser.add_argument("--protocol", choices=("consumer", "classic"), default="consumer", help="(consumer)")
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS", help="a member comes and goes (5)")
    parser.add_argument("--members", type=positive, default=3, help="that stay (3)")
    parser.add_argument("--partitions", type=positive, default=6, help="of the topic (6)")
    parser.add_argument("--rate", type=positive, default=200, help="records per second (200)")
    parser.add_argument("--heartbeat-interval-ms", type=positive, default=500, help="the brokers' setting (500)")
    parser.add_argument("--loop", choices=LOOPS, default="asyncio", help="(asyncio)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one line of JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
