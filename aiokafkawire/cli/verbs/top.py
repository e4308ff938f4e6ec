"""``aiokafkawire top``: a live view of brokers, topics and groups, or one view as tables or JSON."""

import click

from ..shell.command import ShellCommand
from ..shell.parameter_types import Seconds
from ..shell.shared_options import SharedOptions
from ..top.options import TopOptions, pattern

__all__ = ("command",)

_TIMEOUT = 5.0
"""The limit for each response without ``--timeout``: another sample soon follows."""


@click.command(
    cls=ShellCommand,
    examples=(
        "aiokafkawire top                              the live view; q quits, ? explains keys and columns",
        "aiokafkawire top --topics 'orders.*' --groups billing",
        "                                              only these topics and groups",
        "aiokafkawire top --once                       print the tables, and stop",
        "aiokafkawire top --once --json | jq '.groups[] | select(.lag > 1000)'",
        "                                              the same for programs: one JSON object",
        "aiokafkawire top --json --interval 10         one JSON object in a line, every 10 s, until Ctrl-C",
    ),
)
@click.option(
    "--interval",
    type=Seconds(0.1, 3600.0),
    metavar="SECONDS",
    default=2.0,
    help="The time between two samples; by default 2.",
)
@click.option("--topics", metavar="REGEX", help="Only topics whose whole name matches.")
@click.option("--groups", metavar="REGEX", help="Only groups whose whole id matches.")
@click.option("--once", is_flag=True, help="Print the tables once, instead of the live view.")
def command(shared: SharedOptions, *, interval: float, topics: str | None, groups: str | None, once: bool) -> int:
    """Watch brokers, topics by their rate of new records, and groups with their lag and its trend.

    Enter opens a topic's newest records, or a group's partitions and members. Rates come from the end offsets of two
    samples, so --once takes --interval seconds. The live view needs pip install "aiokafkawire[top]"; --once and --json
    do without it. --timeout bounds connecting and each response, which by default may take 5 s.
    """
    from ..top.command import run  # so that --help does not import the client

    options = TopOptions(
        topics=pattern("--topics", topics),
        groups=pattern("--groups", groups),
        interval=interval,
        timeout=_TIMEOUT if shared.timeout is None else shared.timeout,
        once=once,
        json=shared.json,
    )
    return run(shared, options)
