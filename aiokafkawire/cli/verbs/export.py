"""``aiokafkawire export``: writes the settings of a cluster as a file for ``apply``."""

import json

import click

from ..apply.cluster_settings import SECTIONS
from ..apply.live_settings import read_cluster
from ..apply.plan_output import safe_line, setting_rows
from ..apply.state_writer import format_state
from ..shell.command import ShellCommand
from ..shell.output import note, write_output
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("command",)


@click.command(
    cls=ShellCommand,
    examples=(
        "aiokafkawire export > kafka.toml",
        "aiokafkawire export topics acls                  only these",
        "aiokafkawire export topics --topic 'orders-*'",
        "aiokafkawire export topics --json | jq -r .topic",
    ),
)
@click.argument("sections", nargs=-1, type=click.Choice(SECTIONS), metavar=f"[{'|'.join(SECTIONS)}]...")
@click.option("--topic", "patterns", multiple=True, metavar="PATTERN", help="Only such topics; may be repeated.")
def command(shared: SharedOptions, *, sections: tuple[str, ...], patterns: tuple[str, ...]) -> int:
    """Write the settings of a cluster to standard output, as a file that apply reads.

    The same settings are always the same text. Passwords, which brokers do not return, become names of environment
    variables. With --json, each topic, broker, ACL, quota and user is an object.
    """
    wanted = sections or SECTIONS

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        settings, comments = await read_cluster(admin, wanted, patterns, explicit=bool(sections))
        if shared.json:
            for comment in comments:
                note(safe_line(comment))
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in setting_rows(settings))
        else:
            cluster_id = (await admin.describe_cluster()).cluster_id
            head = [f"The settings of cluster {cluster_id}, as 'aiokafkawire export' wrote them; see 'apply --help'."]
            if patterns:
                head.append(f"Only topics that match {' or '.join(patterns)}.")
            text = format_state(settings, [*head, *comments])
        write_output(text.encode("utf-8", "surrogateescape"))
        return 0

    return run_with_client(shared, run)
