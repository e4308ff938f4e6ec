"""``aiokafkawire quotas``: lists, describes, changes and deletes the quotas of users, client ids and addresses."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import attrs
import click

from ...errors import ResourceNotFound
from ..quotas.changes import quota_changes
from ..quotas.entities import EntityOptions, entity_fields, quota_rows
from ..quotas.limits import quota_text
from ..quotas.precedence import effective_quotas
from ..shell.command import ShellGroup
from ..shell.outcomes import print_outcomes
from ..shell.output import confirm, note, print_rows
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("command",)

F = TypeVar("F", bound=Callable[..., Any])

_ENTITY: Final = ("user", "client_id", "ip")
_QUOTA: Final = (*_ENTITY, "quota", "value")
_EFFECTIVE: Final = ("quota", "value", "set_for")
_ANONYMOUS: Final = "ANONYMOUS"
_KEYS: Final = (
    "The quotas are producer_byte_rate and consumer_byte_rate (bytes/s), request_percentage (of a thread's time) and "
    "controller_mutation_rate (partitions/s) of users and client ids, and connection_creation_rate (1/s) of addresses."
)


def _entity_options(command: F) -> F:
    """Add the options that name an entity, and pass them on as ``entity``."""

    @wraps(command)
    def with_entity(shared: SharedOptions, **options: Any) -> int:
        names = {name: options.pop(name) for name in attrs.fields_dict(EntityOptions)}
        status: int = command(shared, entity=EntityOptions(**names), **options)
        return status

    for option in reversed(
        (
            click.option("--user", metavar="NAME", help="Quotas of this user."),
            click.option("--user-default", is_flag=True, help="Quotas of all users without one of their own."),
            click.option("--client-id", metavar="ID", help="Quotas of this client id."),
            click.option(
                "--client-id-default", is_flag=True, help="Quotas of all client ids without one of their own."
            ),
            click.option("--ip", metavar="ADDRESS", help="Quotas of this IP address or host name."),
            click.option("--ip-default", is_flag=True, help="Quotas of all addresses without one of their own."),
        )
    ):
        with_entity = option(with_entity)
    return with_entity  # type: ignore[return-value]


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire quotas list",
        "aiokafkawire quotas alter --user alice producer_byte_rate=1000000 consumer_byte_rate=2000000",
        "aiokafkawire quotas resolve --user alice --client-id etl",
        "aiokafkawire quotas delete --user alice --yes",
    ),
    epilog=_KEYS,
)
def command() -> None:
    """List, describe, change and delete client quotas, and resolve which of them hold for a client."""


@command.command(
    "list",
    examples=(
        "aiokafkawire quotas list",
        "aiokafkawire quotas list --user alice              alice's, also those of her client ids",
        "aiokafkawire quotas list --user-default --json",
    ),
)
@_entity_options
def list_quotas(shared: SharedOptions, *, entity: EntityOptions) -> int:
    """List the quotas of all entities, or of those that have the given user, client id or address."""
    quota_filter = entity.filter()

    async def run(session: Session) -> int:
        found = await session.kafka.admin.describe_client_quotas(quota_filter)
        print_rows(shared, _QUOTA, quota_rows(found, json=shared.json))
        return 0

    return run_with_client(shared, run)


@command.command(
    "describe",
    examples=(
        "aiokafkawire quotas describe --user alice",
        "aiokafkawire quotas describe --user alice --client-id-default",
    ),
)
@_entity_options
def describe_quotas(shared: SharedOptions, *, entity: EntityOptions) -> int:
    """Describe the quotas of one entity; it is a failure if it has none.

    The quotas of a user alone, and those of a user's client id, belong to two entities.
    """
    described, quota_filter = entity.entity, entity.filter(exact=True)

    async def run(session: Session) -> int:
        found = await session.kafka.admin.describe_client_quotas(quota_filter)
        if not found:
            note(f"aiokafkawire: {described} has no quotas")
            return 1
        print_rows(shared, _QUOTA, quota_rows(found, json=shared.json))
        return 0

    return run_with_client(shared, run)


@command.command(
    "resolve",
    examples=(
        "aiokafkawire quotas resolve --user alice --client-id etl",
        "aiokafkawire quotas resolve --client-id etl            a client without a login",
        "aiokafkawire quotas resolve --user alice --client-id etl --ip 10.0.0.7",
    ),
)
@click.option("--user", metavar="NAME", help="The user of the client; by default ANONYMOUS, the user without a login.")
@click.option("--client-id", default="", metavar="ID", help="The client id of the client; by default none.")
@click.option("--ip", metavar="ADDRESS", help="The address of the client, for the rate of its connections.")
def resolve_quotas(shared: SharedOptions, *, user: str | None, client_id: str, ip: str | None) -> int:
    """Show which quotas hold for a client: of those that match it, the most specific one.

    A user with a client id comes first, then the user with any client id, the user, the same for the default user,
    the client id, and the default client id. A broker with a client.quota.callback.class may decide otherwise.
    """
    if user is None and (client_id or ip is None):
        user = _ANONYMOUS

    async def run(session: Session) -> int:
        quotas = await session.kafka.admin.describe_client_quotas()
        rows: list[dict[str, Any]] = []
        for quota in effective_quotas(quotas, user=user, client_id=client_id, ip=ip):
            if shared.json:
                of_entity = {"entity": None} if quota.entity is None else entity_fields(quota.entity, json=True)
                rows.append({"quota": quota.key, "value": quota.value, **of_entity})
            else:
                value = "unlimited" if quota.value is None else quota_text(quota.value)
                set_for = None if quota.entity is None else str(quota.entity)
                rows.append({"quota": quota.key, "value": value, "set_for": set_for})
        print_rows(shared, _EFFECTIVE, rows)
        return 0

    return run_with_client(shared, run)


@command.command(
    "alter",
    examples=(
        "aiokafkawire quotas alter --user alice producer_byte_rate=1000000 --delete request_percentage",
        "aiokafkawire quotas alter --user alice --client-id etl consumer_byte_rate=500000 --validate-only",
        "aiokafkawire quotas alter --client-id-default request_percentage=50",
        "aiokafkawire quotas alter --ip 10.0.0.7 connection_creation_rate=20",
    ),
    epilog=_KEYS,
)
@click.argument("quotas", nargs=-1, metavar="[KEY=NUMBER...]")
@_entity_options
@click.option("--delete", "deleted", multiple=True, metavar="KEY", help="Remove this quota.")
@click.option("--validate-only", is_flag=True, help="Let the broker check the changes, and make none.")
def alter_quotas(
    shared: SharedOptions,
    *,
    entity: EntityOptions,
    quotas: tuple[str, ...],
    deleted: tuple[str, ...],
    validate_only: bool,
) -> int:
    """Set and remove quotas of one entity; its other quotas stay. It takes all of the changes or none."""
    altered, changes = entity.entity, quota_changes(quotas, deleted)

    async def run(session: Session) -> int:
        return await print_outcomes(
            session,
            _ENTITY,
            {altered: entity_fields(altered, json=shared.json)},
            session.kafka.admin.alter_client_quotas({altered: changes}, validate_only=validate_only),
            done="would be changed" if validate_only else "changed",
        )

    return run_with_client(shared, run)


@command.command(
    "delete",
    examples=(
        "aiokafkawire quotas delete --user alice --yes",
        "aiokafkawire quotas delete --client-id-default --if-exists -y",
    ),
)
@_entity_options
@click.option("--if-exists", is_flag=True, help="An entity without quotas is no failure.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete_quotas(shared: SharedOptions, *, entity: EntityOptions, if_exists: bool, yes: bool) -> int:
    """Delete all quotas of one entity; asks before on a terminal, and otherwise needs --yes."""
    deleted, quota_filter = entity.entity, entity.filter(exact=True)
    confirm("delete all quotas", [str(deleted)], yes=yes, options=shared)

    async def change(session: Session) -> None:
        quotas = (await session.kafka.admin.describe_client_quotas(quota_filter)).get(deleted)
        if not quotas:
            raise ResourceNotFound(f"{deleted} has no quotas")
        await session.kafka.admin.alter_client_quotas({deleted: dict.fromkeys(quotas)})

    async def run(session: Session) -> int:
        return await print_outcomes(
            session,
            _ENTITY,
            {deleted: entity_fields(deleted, json=shared.json)},
            change(session),
            done="deleted",
            accepted=ResourceNotFound if if_exists else None,
            skipped="absent",
        )

    return run_with_client(shared, run)
