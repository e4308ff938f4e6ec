"""``aiokafkawire configs``: lists, describes and changes the settings of topics, brokers, groups and client metrics."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

import click

from ...admin.config_resources import ConfigEntry, ConfigResource, ConfigResourceType
from ...client import Client
from ...errors import UnsupportedVersion
from ..configs.changes import config_changes, names_and_settings
from ..configs.resources import RESOURCE_TYPES, is_own, named_resources, resource_row
from ..configs.settings_table import SettingsView, missing_keys
from ..error_text import one_line
from ..exit_status import MISSING, CommandFailed
from ..shell.command import ShellGroup
from ..shell.outcomes import note_errors, partial_results, print_outcomes
from ..shell.output import note, print_rows
from ..shell.session import Session, run_with_client
from ..shell.settings import read_properties
from ..shell.shared_options import SharedOptions
from ..shell.visibility import note_none_visible

__all__ = ("command",)

_AT_ONCE: Final = 200
"""The resources that are described at once; of the others only the rows are kept."""
_LISTED: Final = ("resource_type", "resource_name", "own_settings")
_NAMED: Final = ("resource_type", "resource_name")

_type_argument: Final = click.argument("type_name", type=click.Choice(tuple(RESOURCE_TYPES)), metavar="TYPE")
_types_epilog: Final = f"TYPE is {', '.join(RESOURCE_TYPES)}; a broker is named by its id."


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire configs list",
        "aiokafkawire configs describe topic orders",
        "aiokafkawire configs describe broker 1 --all",
        "aiokafkawire configs alter topic orders payments retention.ms=3600000 --delete cleanup.policy",
        "aiokafkawire configs alter broker --default log.cleaner.threads=2",
    ),
)
def command() -> None:
    """List, describe and change the settings of topics, brokers, broker loggers, groups and client metrics."""


@command.command(
    "list",
    examples=("aiokafkawire configs list", "aiokafkawire configs list topic broker --json"),
    epilog=_types_epilog,
)
@click.argument("type_names", nargs=-1, type=click.Choice(tuple(RESOURCE_TYPES)), metavar="[TYPE...]")
@click.option("--all", "everything", is_flag=True, help="Resources without settings of their own, too.")
def list_resources(shared: SharedOptions, *, type_names: tuple[str, ...], everything: bool) -> int:
    """List the resources that have settings of their own, and how many; by default of all types but broker-logger.

    All settings of a broker logger are its own. Brokers before 4.1 cannot list groups, which are left out by default.
    """
    names = type_names or tuple(name for name in RESOURCE_TYPES if name != "broker-logger")

    async def run(session: Session) -> int:
        rows, status = [], 0
        for name in dict.fromkeys(names):
            try:
                resources = await _resources_of_type(session.kafka, RESOURCE_TYPES[name])
            except UnsupportedVersion as error:
                if type_names:
                    raise
                hint = "; 'configs describe group NAME' describes one that you name" if name == "group" else ""
                note(f"left out: {name} settings, since {one_line(error)}{hint}")
                continue
            async for described, failed in _described(session.kafka, resources, SettingsView()):
                status = max(status, failed)
                for resource, entries in described.items():
                    count = sum(is_own(resource, entry) for entry in entries.values())
                    if count or everything:
                        rows.append({**resource_row(resource, json=shared.json), "own_settings": count})
        print_rows(shared, _LISTED, rows)
        return status

    return run_with_client(shared, run)


@command.command(
    "describe",
    examples=(
        "aiokafkawire configs describe topic orders payments",
        "aiokafkawire configs describe topic                          all topics with settings of their own",
        "aiokafkawire configs describe broker 1 --all --synonyms",
        "aiokafkawire configs describe broker --default",
        "aiokafkawire configs describe group billing --key consumer.session.timeout.ms --documentation",
    ),
    epilog=_types_epilog,
)
@_type_argument
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--default", is_flag=True, help="The defaults of all brokers; only with broker.")
@click.option("--all", "everything", is_flag=True, help="Settings from other sources, too, such as the defaults.")
@click.option("-k", "--key", "keys", multiple=True, metavar="KEY", help="Only this setting, from any source.")
@click.option("--synonyms", is_flag=True, help="All sources of each value, the one in effect first.")
@click.option("--documentation", is_flag=True, help="The brokers' text about each setting.")
def describe_configs(
    shared: SharedOptions,
    *,
    type_name: str,
    names: tuple[str, ...],
    default: bool,
    everything: bool,
    keys: tuple[str, ...],
    synonyms: bool,
    documentation: bool,
) -> int:
    """Describe the settings that are set for resources themselves; without names, for all resources of the type.

    Brokers do not return the values of sensitive settings, such as passwords.
    """
    requested = named_resources(type_name, names, default=default)
    view = SettingsView(all=everything, keys=keys, synonyms=synonyms, documentation=documentation, json=shared.json)

    async def run(session: Session) -> int:
        resources = requested or await _resources_of_type(session.kafka, RESOURCE_TYPES[type_name])
        rows: list[dict[str, Any]] = []
        status = 0
        async for described, failed in _described(session.kafka, resources, view):
            status = max(status, failed)
            for resource, entries in described.items():
                rows += view.rows(resource, entries)
                for key in missing_keys(keys, entries):
                    note(f"aiokafkawire: {resource} has no setting {key}")
                    status = 1
        if rows or not status:
            print_rows(shared, view.columns, rows)
        if resources and not rows and not status:
            note("no settings of their own; --all shows those from other sources, too")
        if not resources:
            await note_none_visible(session, f"{type_name}s")
        return status

    return run_with_client(shared, run)


@command.command(
    "alter",
    examples=(
        "aiokafkawire configs alter topic orders payments retention.ms=3600000 --delete cleanup.policy",
        "aiokafkawire configs alter topic orders --append cleanup.policy=compact --validate-only",
        "aiokafkawire configs alter broker 1 2 log.cleaner.threads=2",
        "aiokafkawire configs alter broker --default --from-file broker.properties",
        "aiokafkawire configs alter broker-logger 1 kafka.server.ReplicaManager=DEBUG",
        "aiokafkawire configs alter client-metrics basic metrics=org.apache.kafka.producer. interval.ms=60000",
    ),
    epilog=_types_epilog,
)
@_type_argument
@click.argument("arguments", nargs=-1, metavar="NAME... [KEY=VALUE...]")
@click.option("--default", is_flag=True, help="The defaults of all brokers; only with broker.")
@click.option("--delete", "deleted", multiple=True, metavar="KEY", help="Set this setting back to its default.")
@click.option("--append", "appended", multiple=True, metavar="KEY=ITEM[,...]", help="Add items to a list.")
@click.option("--subtract", "subtracted", multiple=True, metavar="KEY=ITEM[,...]", help="Remove items from a list.")
@click.option(
    "--from-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Set the settings of a .properties file, for example passwords, which do not belong on a command line.",
)
@click.option("--validate-only", is_flag=True, help="Let the brokers check the changes, and make none.")
def alter_configs(
    shared: SharedOptions,
    *,
    type_name: str,
    arguments: tuple[str, ...],
    default: bool,
    deleted: tuple[str, ...],
    appended: tuple[str, ...],
    subtracted: tuple[str, ...],
    from_file: str | None,
    validate_only: bool,
) -> int:
    """Change settings of resources; other settings stay. Each resource takes all of its changes or none.

    The first argument is a name; after it, arguments with an equals sign are settings.
    """
    names, settings = names_and_settings(arguments, default=default)
    resources = named_resources(type_name, names, default=default)
    if not resources:
        raise CommandFailed(f"which {type_name}? Give a name before the settings", MISSING)
    changes = config_changes(
        settings,
        of_file=None if from_file is None else read_properties(from_file),
        deleted=deleted,
        appended=appended,
        subtracted=subtracted,
    )

    async def run(session: Session) -> int:
        return await print_outcomes(
            session,
            _NAMED,
            {resource: resource_row(resource, json=shared.json) for resource in resources},
            session.kafka.admin.incremental_alter_configs(
                dict.fromkeys(resources, changes), validate_only=validate_only
            ),
            done="would be changed" if validate_only else "changed",
        )

    return run_with_client(shared, run)


async def _resources_of_type(kafka: Client, kind: ConfigResourceType) -> list[ConfigResource]:
    """Return all resources of a type; of groups and of subscriptions to metrics those with settings (KIP-1142)."""
    if kind is ConfigResourceType.TOPIC:
        return [ConfigResource.topic(name) for name in await kafka.admin.list_topics(internal=True)]
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        nodes = sorted((await kafka.admin.describe_cluster()).nodes)
        if kind is ConfigResourceType.BROKER_LOGGER:
            return [ConfigResource.broker_logger(node) for node in nodes]
        return [*map(ConfigResource.broker, nodes), ConfigResource.all_brokers()]
    return sorted(await kafka.admin.list_config_resources([kind]), key=lambda resource: resource.name)


async def _described(
    kafka: Client, resources: Iterable[ConfigResource], view: SettingsView
) -> AsyncIterator[tuple[Mapping[ConfigResource, Mapping[str, ConfigEntry]], int]]:
    """Yield the settings of some of the resources at a time, with the exit status; print a line for each error."""
    remaining = list(resources)
    while remaining:
        some, remaining = remaining[:_AT_ONCE], remaining[_AT_ONCE:]
        found, errors = await partial_results(
            some,
            kafka.admin.describe_configs(
                some, include_synonyms=view.synonyms, include_documentation=view.documentation
            ),
        )
        yield found, note_errors(errors.values())
