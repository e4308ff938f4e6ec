"""The shell on a large cluster beside Kafka's own tools: lists of topics, and of groups with their lag.

Apache Kafka gets many topics of one partition, and groups with committed offsets in some of them. Then each command
runs as a user starts it, its output to ``/dev/null``: the wall time, the user's CPU time, and the largest resident
memory.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Final

import anyio
from support.apache_kafka import missing

from aiokafkawire import Client, TopicPartition
from benchmarks.arguments import positive
from benchmarks.cluster import create_topics, kafka
from benchmarks.machine import describe
from benchmarks.progress import progress
from benchmarks.shell_rates import Measured, java_tool, measure

_BATCH: Final = 500
_OFFSETS: Final = 5
"""The number of topics in which each group has committed an offset."""
_OURS: Final = (sys.executable, "-m", "aiokafkawire")
_NAMES: Final = ("aiokafkawire", "Kafka's tool")


async def commit(bootstrap: str, topics: int, groups: int, advance: Callable[[str], None]) -> None:
    """Commit the offsets of the groups."""
    async with Client(bootstrap) as client:
        for at in range(groups):
            if at % _BATCH == 0:
                advance(f"commits offsets of groups from {at:,}")
            spread = {TopicPartition(name_of((at * _OFFSETS + step) % topics), 0): 0 for step in range(_OFFSETS)}
            await client.admin.alter_consumer_group_offsets(f"group-{at:05}", spread)


def name_of(topic: int) -> str:
    """Return the name of a topic."""
    return f"topic-{topic:05}"


def commands(bootstrap: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return our command and that of Kafka's tool, by what they do."""
    theirs = ("--bootstrap-server", bootstrap)
    groups = "consumer.group.ConsumerGroupCommand"
    return {
        "list topics": ([*_OURS, "topics", "list", "-b", bootstrap], java_tool("TopicCommand", *theirs, "--list")),
        "describe topics": (
            [*_OURS, "topics", "describe", "-b", bootstrap, "topic-00007"],
            java_tool("TopicCommand", *theirs, "--describe", "--topic", "topic-00007"),
        ),
        "list groups": ([*_OURS, "groups", "list", "-b", bootstrap], java_tool(groups, *theirs, "--list")),
        "list groups with lag": (
            [*_OURS, "groups", "list", "--lag", "-b", bootstrap],
            java_tool(groups, *theirs, "--describe", "--all-groups", "--timeout", "120000"),
        ),
    }


def report(what: str, runs: tuple[list[Measured], list[Measured]]) -> None:
    """Print the times and the memory of both, and our time divided by theirs."""
    for name, each in zip(_NAMES, runs, strict=True):
        walls = [one.wall for one in each]
        cpu, memory = statistics.median(one.cpu for one in each), max(one.memory for one in each) / 1e6
        text = f"  {what:22} {name:14} {statistics.median(walls):6.2f} s [{min(walls):.2f}-{max(walls):.2f}]"
        print(f"{text}  {cpu:6.2f} s of CPU  {memory:6.0f} MB", flush=True)
    ratios = [mine.wall / theirs.wall for mine, theirs in zip(*runs, strict=True)]
    print(f"  {'':22} ours takes {statistics.median(ratios):.2f} of its time [{min(ratios):.2f}-{max(ratios):.2f}]\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shell_scale", description=__doc__)
    parser.add_argument("--topics", type=positive, default=10_000, help="of one partition each (10,000)")
    parser.add_argument("--groups", type=positive, default=2_000, help="with offsets in five topics each (2,000)")
    parser.add_argument("--rounds", type=positive, default=5, help="of each command (5)")
    options = parser.parse_args()
    if lacks := missing():
        parser.error(lacks)
    for name, value in describe(sys.argv).items():
        print(f"{name}: {value}")
    with kafka() as cluster, progress(1 + -(-options.groups // _BATCH) + 4 * options.rounds) as advance:
        advance("creates topics")
        create_topics(cluster.bootstrap, [name_of(at) for at in range(options.topics)], 1)
        anyio.run(commit, cluster.bootstrap, options.topics, options.groups, advance)
        check(cluster.bootstrap, options.topics, options.groups)
        for what, pair in commands(cluster.bootstrap).items():
            runs: tuple[list[Measured], list[Measured]] = ([], [])
            for number in range(options.rounds):
                advance(f"{what}, round {number + 1}")
                for which in (0, 1) if number % 2 == 0 else (1, 0):
                    runs[which].append(measure(pair[which], quiet=True))
            report(what, runs)
    return 0


def check(bootstrap: str, topics: int, groups: int) -> None:
    """Compare the number of lines of both programs' lists.

    :raises SystemExit: a topic or a group is missing.
    """
    for what, expected, title in (("list topics", topics, "topic-"), ("list groups", groups, "group-")):
        for command in commands(bootstrap)[what]:
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = sum(line.lstrip().startswith(title) for line in printed.splitlines())
            if found != expected:
                raise SystemExit(f"{what}: {found:,} of {expected:,} by {' '.join(command[:4])}")


if __name__ == "__main__":
    sys.exit(main())
