"""``aiokafkawire acls``: lists, creates and deletes ACLs."""

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ...admin.acl_bindings import AclBinding
from ...protocol.acl_codes import AclPermissionType, PatternType, ResourceType
from ..acls.selection import OPERATIONS, AclEntries, AclSelection, Resources, acl_row, bindings, filters
from ..exit_status import MISSING, CommandFailed
from ..shell.command import ShellGroup
from ..shell.outcomes import print_outcomes
from ..shell.output import confirm, note, print_rows
from ..shell.safe_text import safe_text
from ..shell.session import Session, ask_with_client, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("command",)

F = TypeVar("F", bound=Callable[..., Any])

_COLUMNS: Final = (
    *("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"),
)
_NAMED: Final = {
    ResourceType.TOPIC: ("--topic", "topics", "NAME", "A topic; * is all topics."),
    ResourceType.GROUP: ("--group", "groups", "ID", "A group; * is all groups."),
    ResourceType.TRANSACTIONAL_ID: ("--transactional-id", "transactional_ids", "ID", "A transactional id."),
    ResourceType.DELEGATION_TOKEN: ("--delegation-token", "delegation_tokens", "ID", "A delegation token."),
    ResourceType.USER: ("--user-principal", "user_principals", "PRINCIPAL", "A user for whom tokens are made."),
}


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _resource_options(patterns: tuple[str, ...]) -> Callable[[F], F]:
    return _options(
        *(
            click.option(option, name, multiple=True, metavar=metavar, help=f"{text} May be repeated.")
            for option, name, metavar, text in _NAMED.values()
        ),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option(
            "--pattern",
            "--resource-pattern-type",
            type=click.Choice(patterns),
            default="literal",
            help="How the names above are meant; by default literal.",
        ),
    )


_ROLE_OPTIONS: Final = (
    click.option(
        "--operation", "operations", multiple=True, metavar="NAME", type=click.Choice(OPERATIONS, case_sensitive=False),
        help="An operation, such as read; all is every one. May be repeated.",
    ),
    click.option("--producer", is_flag=True, help="To write, describe and create topics, and for transactional ids."),
    click.option("--consumer", is_flag=True, help="To read and describe topics, and to read as the groups."),
    click.option("--idempotent", is_flag=True, help="With --producer: idempotent writes, for brokers before 2.8."),
)  # fmt: skip
_FILTER_OPTIONS: Final = (
    click.option("--principal", "principals", multiple=True, metavar="TYPE:NAME", help="Of whom; may be repeated."),
    click.option("--host", "hosts", multiple=True, metavar="ADDRESS", help="The host in the ACL; may be repeated."),
    click.option("--permission", type=click.Choice(("allow", "deny")), help="By default both."),
)


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire acls list",
        "aiokafkawire acls list --topic orders --pattern match      all that apply to the topic orders",
        "aiokafkawire acls create --allow-principal User:alice --producer --topic orders",
        "aiokafkawire acls create --allow-principal User:bob --consumer --topic o. --group a- --pattern prefixed",
        "aiokafkawire acls delete --principal User:alice --topic orders",
    ),
)
def command() -> None:
    """List, create and delete ACLs: who may, or may not, do what to which resources."""


def _selection(named: dict[str, Any]) -> AclSelection:
    """Return the resources and operations of the options, and take these out of ``named``."""
    names = {kind: named.pop(name) for kind, (_, name, _, _) in _NAMED.items()}
    pattern = PatternType[named.pop("pattern").upper()]
    return AclSelection(
        resources=Resources(names=names, cluster=named.pop("cluster"), pattern=pattern),
        operations=named.pop("operations"),
        producer=named.pop("producer", False),
        consumer=named.pop("consumer", False),
        idempotent=named.pop("idempotent", False),
    )


@command.command(
    "list",
    examples=(
        "aiokafkawire acls list --principal User:alice --principal 'User:*'",
        "aiokafkawire acls list --group app --pattern match --operation read",
        "aiokafkawire acls list --permission deny --json",
    ),
)
@_resource_options(("literal", "prefixed", "any", "match"))
@_options(_ROLE_OPTIONS[0], *_FILTER_OPTIONS)
def list_acls(shared: SharedOptions, **named: Any) -> int:
    """List the ACLs that have one of the values of each option, or all ACLs.

    --pattern any finds literal and prefixed patterns with exactly this name, and match all that apply to this name.
    """
    selection = _selection(named)

    async def run(session: Session) -> int:
        print_rows(shared, _COLUMNS, map(acl_row, await _found(session, selection, **named)))
        return 0

    return run_with_client(shared, run)


async def _found(
    session: Session,
    selection: AclSelection,
    *,
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    permission: str | None,
) -> list[AclBinding]:
    kind = AclPermissionType.ANY if permission is None else AclPermissionType[permission.upper()]
    found: dict[AclBinding, None] = {}
    for wanted in filters(selection, principals=principals, hosts=hosts, permission=kind):
        found |= dict.fromkeys(await session.kafka.admin.describe_acls(wanted))
    return list(found)


@command.command(
    "create",
    examples=(
        "aiokafkawire acls create --allow-principal User:alice --operation read --topic orders",
        "aiokafkawire acls create --allow-principal User:a --allow-principal User:b --producer --topic orders",
        "aiokafkawire acls create --deny-principal User:eve --deny-host 203.0.113.7 --operation all --topic '*'",
    ),
)
@_resource_options(("literal", "prefixed"))
@_options(
    *_ROLE_OPTIONS,
    click.option("--allow-principal", "allowed", multiple=True, metavar="TYPE:NAME", help="Who may; may be repeated."),
    click.option("--deny-principal", "denied", multiple=True, metavar="TYPE:NAME", help="Who may not."),
    click.option("--allow-host", "allowed_hosts", multiple=True, metavar="ADDRESS", help="From where; by default *."),
    click.option("--deny-host", "denied_hosts", multiple=True, metavar="ADDRESS", help="From where not; by default *."),
    click.option("--dry-run", is_flag=True, help="Print the ACLs, and create none."),
)
def create_acls(shared: SharedOptions, *, dry_run: bool, **named: Any) -> int:
    """Create the ACLs of each principal, operation, resource and host; one that exists already stays.

    The options are those of kafka-acls --add, but an operation must be given.
    """
    selection = _selection(named)
    new = dict.fromkeys(bindings(selection, AclEntries(**named)))
    rows = {binding: acl_row(binding) for binding in new}
    if dry_run:
        would = [{**row, "outcome": "would be created"} for row in rows.values()]
        print_rows(shared, (*_COLUMNS, "outcome"), would)
        return 0

    async def run(session: Session) -> int:
        return await print_outcomes(session, _COLUMNS, rows, session.kafka.admin.create_acls(list(new)), done="created")

    return run_with_client(shared, run)


@command.command(
    "delete",
    examples=(
        "aiokafkawire acls delete --principal User:alice --topic orders --dry-run",
        "aiokafkawire acls delete --principal User:bob --consumer --topic orders --group app --yes",
    ),
)
@_resource_options(("literal", "prefixed", "any", "match"))
@_options(
    *_ROLE_OPTIONS,
    *_FILTER_OPTIONS,
    click.option("--all", "all_acls", is_flag=True, help="All ACLs of the cluster."),
    click.option("--dry-run", is_flag=True, help="Print the ACLs, and delete none."),
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
)
def delete_acls(shared: SharedOptions, *, all_acls: bool, dry_run: bool, yes: bool, **named: Any) -> int:
    """Delete the ACLs that 'list' finds with the same options; shows them, and asks before.

    Without a terminal it needs --yes. It deletes exactly the ACLs that it shows.
    """
    selection = _selection(named)
    filtered = selection.resources.patterns() or selection.operations or any(named.values())
    if bool(filtered) is all_acls:
        raise CommandFailed("say which ACLs, such as --topic orders, or --all", MISSING)

    async def look(session: Session) -> list[AclBinding]:
        return await _found(session, selection, **named)

    rows = {binding: acl_row(binding) for binding in ask_with_client(shared, look)}
    if dry_run:
        would = [{**row, "outcome": "would be deleted"} for row in rows.values()]
        print_rows(shared, (*_COLUMNS, "outcome"), would)
        return 0
    if not rows:
        note("no ACL matches")
        return 0
    if not yes:
        note("\n".join(safe_text(str(binding), sys.maxsize) for binding in rows))
    what = f"delete {len(rows)} {'ACL' if len(rows) == 1 else 'ACLs'}"
    confirm(what, ["shown above"], yes=yes, options=shared)

    async def run(session: Session) -> int:
        by_filter = {binding.to_filter(): row for binding, row in rows.items()}
        change = session.kafka.admin.delete_acls(list(by_filter))
        return await print_outcomes(session, _COLUMNS, by_filter, change, done="deleted")

    return run_with_client(shared, run)
