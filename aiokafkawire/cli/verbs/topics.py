"""``aiokafkawire topics``: lists, describes, creates and deletes topics."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from ...admin.new_topics import NewTopic
from ...errors import KafkaError, TopicAlreadyExists, UnknownTopicOrPartition, UsageError
from ..exit_status import MISSING, CommandFailed
from ..shell.command import ShellGroup
from ..shell.output import confirm, note, print_rows
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("command",)

_LISTED: Final = {"topic": "TOPIC"}
_DESCRIBED: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "leader": "LEADER",
    "epoch": "EPOCH",
    "replicas": "REPLICAS",
    "isr": "IN SYNC",
}


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire topics list",
        "aiokafkawire topics describe orders",
        "aiokafkawire topics create orders --partitions 6 --topic-config cleanup.policy=compact",
        "aiokafkawire topics delete orders --yes",
        "aiokafkawire topics list --json | jq -r .topic",
    ),
)
def command() -> None:
    """List, describe, create and delete topics."""


@command.command("list", examples=("aiokafkawire topics list", "aiokafkawire topics list --internal --json"))
@click.option("--internal", is_flag=True, help="Internal topics, too, such as __consumer_offsets.")
def list_topics(shared: SharedOptions, *, internal: bool) -> int:
    """List the names of all topics that you may see."""

    async def run(session: Session) -> int:
        names = await session.kafka.admin.list_topics(internal=internal)
        print_rows(shared, _LISTED, [{"topic": name} for name in names])
        return 0

    return run_with_client(shared, run)


@command.command("describe", examples=("aiokafkawire topics describe orders payments",))
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
def describe_topics(shared: SharedOptions, *, topics: tuple[str, ...]) -> int:
    """Describe the partitions of topics: leaders, replicas, and the replicas that are in sync."""

    async def run(session: Session) -> int:
        rows = []
        for name in dict.fromkeys(topics):
            topic = await session.kafka.admin.describe_topic(name)
            rows += [
                {
                    "topic": name,
                    "partition": partition.index,
                    "leader": partition.leader,
                    "epoch": partition.leader_epoch,
                    "replicas": partition.replicas,
                    "isr": partition.in_sync,
                }
                for partition in topic.partitions
            ]
        print_rows(shared, _DESCRIBED, rows)
        return 0

    return run_with_client(shared, run)


@command.command(
    "create",
    examples=(
        "aiokafkawire topics create orders payments --partitions 6 --replication-factor 3",
        "aiokafkawire topics create prices --topic-config cleanup.policy=compact --if-not-exists",
    ),
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--partitions", type=click.IntRange(1, 2**31 - 1), metavar="N", help="By default as the brokers say.")
@click.option(
    "--replication-factor", type=click.IntRange(1, 2**15 - 1), metavar="N", help="By default as the brokers say."
)
@click.option("--topic-config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting of the topics.")
@click.option("--if-not-exists", is_flag=True, help="A topic that exists is no failure.")
@click.option("--validate-only", is_flag=True, help="Let the broker check the request, and create nothing.")
def create_topics(
    shared: SharedOptions,
    *,
    topics: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
) -> int:
    """Create topics."""
    new = NewTopic(partitions or -1, replication_factor or -1, _configs(configs))

    async def create(session: Session, name: str) -> None:
        await session.kafka.admin.create_topics({name: new}, validate_only=validate_only)

    done = "would be created" if validate_only else "created"
    accepted = TopicAlreadyExists if if_not_exists else None
    return run_with_client(
        shared, partial(_for_each, topics=topics, act=create, done=done, accepted=accepted, skipped="exists")
    )


@command.command("delete", examples=("aiokafkawire topics delete orders payments --yes",))
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no failure.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete_topics(shared: SharedOptions, *, topics: tuple[str, ...], if_exists: bool, yes: bool) -> int:
    """Delete topics, with all their records; asks before on a terminal, and otherwise needs --yes."""
    what = f"delete {len(topics)} {'topic' if len(topics) == 1 else 'topics'} with all records"
    confirm(what, topics, yes=yes, options=shared)

    async def delete(session: Session, name: str) -> None:
        await session.kafka.admin.delete_topics(name)

    accepted = UnknownTopicOrPartition if if_exists else None
    return run_with_client(
        shared, partial(_for_each, topics=topics, act=delete, done="deleted", accepted=accepted, skipped="absent")
    )


async def _for_each(
    session: Session,
    *,
    topics: Sequence[str],
    act: Callable[[Session, str], Awaitable[None]],
    done: str,
    accepted: type[KafkaError] | None,
    skipped: str,
) -> int:
    """Change each topic, print the outcomes and the errors, and return the exit status.

    Args:
        session: the client.
        topics: the topics.
        act: changes one topic.
        done: the outcome to print for a topic that was changed.
        accepted: the error that is no failure.
        skipped: the outcome to print for a topic with this error.
    """
    rows: list[Mapping[str, Any]] = []
    failed = 0
    for name in dict.fromkeys(topics):
        try:
            await act(session, name)
            rows.append({"topic": name, "outcome": done})
        except UsageError:
            raise
        except KafkaError as error:
            if accepted is not None and isinstance(error, accepted):
                rows.append({"topic": name, "outcome": skipped})
                continue
            failed += 1
            note(f"aiokafkawire: {type(error).__name__}: {' '.join(str(error).split())}")
    if rows:
        print_rows(session.options, {"topic": "TOPIC", "outcome": "OUTCOME"}, rows)
    return 1 if failed else 0


def _configs(texts: Sequence[str]) -> dict[str, str]:
    configs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise CommandFailed(f"--topic-config takes KEY=VALUE, got {text!r}", MISSING)
        configs[key] = value
    return configs
