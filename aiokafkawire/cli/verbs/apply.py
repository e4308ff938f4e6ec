"""``aiokafkawire apply``: makes a cluster what a file declares."""

import os
import sys
from pathlib import Path
from typing import Final

import click

from ...errors import KafkaError
from ..apply.applying import Secrets, changes_not_shown, make_changes, refused_changes
from ..apply.changes import Change
from ..apply.cluster_settings import ClusterSettings
from ..apply.live_settings import read_counterpart
from ..apply.plan_output import OutcomePrinter, note_not_shown, note_refused, note_unmentioned, print_plan, safe_line
from ..apply.planning import DELETABLE, Plan, is_deletion, plan_changes
from ..apply.secret_places import present_secrets, read_secrets
from ..apply.state_file import parse_state
from ..exit_status import FAILED, MISSING, CommandFailed
from ..shell.command import ShellCommand
from ..shell.output import confirm, note
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("CHANGES_NEEDED", "command")

CHANGES_NEEDED: Final = 3
"""The exit status of ``--check`` if the cluster is not as declared."""

_WAITING: Final = "interrupted: waiting for the answer to the last request; Ctrl-C again leaves at once"
_STDIN: Final = "-"
_ALL: Final = "all"


@click.command(
    cls=ShellCommand,
    examples=(
        "aiokafkawire apply kafka.toml --dry-run          what would change",
        "aiokafkawire apply kafka.toml                    show the changes, ask, and make them",
        "aiokafkawire apply kafka.toml --yes              do not ask, as in a deployment",
        "aiokafkawire apply kafka.toml --check            status 3 if the cluster is not as declared",
        "aiokafkawire apply kafka.toml --delete acls      also remove the ACLs that the file does not mention",
        "aiokafkawire export | aiokafkawire apply - -b other:9092 --dry-run",
        "                                                 how another cluster differs",
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Print the changes, let the brokers check them, and make none.")
@click.option("--check", is_flag=True, help="As --dry-run, with exit status 3 if changes are needed.")
@click.option(
    "--delete",
    "deletes",
    multiple=True,
    type=click.Choice((*DELETABLE, _ALL)),
    help="Also delete what the file does not mention, of a kind that it declares; may be repeated.",
)
@click.option(
    "--set-secrets",
    is_flag=True,
    help="Set passwords and other secrets again; brokers do not show whether they differ.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(
    shared: SharedOptions,
    *,
    file: str,
    dry_run: bool,
    check: bool,
    deletes: tuple[str, ...],
    set_secrets: bool,
    yes: bool,
) -> int:
    """Make a cluster what a file of TOML declares: topics, configs of brokers, ACLs, quotas and SCRAM users.

    Shows the changes, asks on a terminal (otherwise --yes is needed), and makes them. Settings that are as declared
    stay. Nothing is deleted without --delete, and no topic loses partitions. FILE may be - for standard input.
    """
    declared = parse_state(_read_text(file, shared), "standard input" if file == _STDIN else file)
    chosen = _checked_deletes(deletes, declared)
    folder = Path() if file == _STDIN else Path(file).parent
    plan = Plan()
    refused: list[tuple[Change, KafkaError]] = []
    missing: list[str] = []

    async def read(session: Session) -> int:
        nonlocal plan, refused, missing
        current = await read_counterpart(session.kafka.admin, declared)
        plan = plan_changes(declared, current, deletes=chosen, sets_secrets=set_secrets)
        if dry_run or check:
            present, missing = present_secrets(plan.changes, folder, os.environ)
            refused = await refused_changes(session.kafka.admin, plan.changes, present)
        return 0

    status = run_with_client(shared, read)
    if status:
        return status
    if dry_run or check or plan.conflicts or not yes:
        print_plan(shared, plan)
    note_unmentioned(plan)
    for line in missing:
        note(line)
    note_refused(refused)
    if plan.conflicts:
        note("aiokafkawire: some differences cannot be removed, so nothing is done")
        return CHANGES_NEEDED if check else FAILED
    if not plan.changes:
        note("no changes: the cluster is as declared")
        return 0
    if dry_run or check:
        return CHANGES_NEEDED if check else FAILED if refused else 0
    secrets = read_secrets(plan.changes, folder, os.environ)
    count = len(plan.changes)
    lost = [safe_line(change).removeprefix("- ") for change in plan.changes if is_deletion(change)]
    also = f", {len(lost)} of them deletions" if lost else ""
    confirm(f"make {count} {'change' if count == 1 else 'changes'}{also}", lost, yes=yes, options=shared)
    return _make(shared, plan, secrets, declared, chosen)


def _make(
    shared: SharedOptions, plan: Plan, secrets: Secrets, declared: ClusterSettings, deletes: tuple[str, ...]
) -> int:
    """Make the changes of a plan, and return the exit status."""
    printer = OutcomePrinter(shared)

    async def apply(session: Session) -> int:
        try:
            await make_changes(session.kafka.admin, plan.changes, secrets, printer, interrupted=lambda: note(_WAITING))
        finally:
            note(printer.summary())
        if printer.done and printer.is_answered:
            note_not_shown(await changes_not_shown(session.kafka.admin, declared, deletes, printer.done))
        return 0 if len(printer.done) == len(plan.changes) and printer.is_read else FAILED

    return run_with_client(shared, apply)


def _read_text(file: str, shared: SharedOptions) -> str:
    if file == _STDIN and "stdin" in shared.closed:
        raise CommandFailed("standard input is closed: name a file", MISSING)
    try:
        content = sys.stdin.buffer.read() if file == _STDIN else Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise CommandFailed(f"cannot read {file}: {error.strerror}", MISSING) from None
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}", MISSING) from None


def _checked_deletes(deletes: tuple[str, ...], declared: ClusterSettings) -> tuple[str, ...]:
    """Return the kinds of which what the file does not mention is deleted.

    Raises:
        CommandFailed: the file does not declare a kind (exit status 2); otherwise all of it would have to go.
    """
    sections = {kind: getattr(declared, kind, None) is not None for kind in DELETABLE}
    sections["configs"] = declared.topics is not None or declared.brokers is not None
    if _ALL in deletes:
        return tuple(kind for kind in DELETABLE if sections[kind])
    for kind in deletes:
        if not sections[kind]:
            empty = f"{kind} = []" if kind in ("acls", "quotas") else "[topics]" if kind == "configs" else f"[{kind}]"
            why = f"the file declares no {kind}; to delete all of them, it needs a line '{empty}'"
            raise CommandFailed(f"--delete {kind}: {why}", MISSING)
    return tuple(dict.fromkeys(deletes))
