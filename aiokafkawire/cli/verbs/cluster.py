"""``aiokafkawire cluster``: describes nodes, features, the quorum and versions, and forgets dead brokers."""

from collections.abc import Mapping
from typing import Any, Final

import click

from ...admin.admin import Admin
from ...admin.cluster_descriptions import FeatureUpdate, QuorumInfo, UpgradeType
from ...errors import BrokerError, UnsupportedVersion
from ..cluster.endpoints import parse_endpoint
from ..cluster.rows import broker_rows, controller_rows, feature_rows, quorum_rows, release_of
from ..exit_status import MISSING, CommandFailed
from ..shell.arguments import key_values, parse_uuid
from ..shell.command import ShellGroup
from ..shell.outcomes import partial_results, print_found, print_outcomes
from ..shell.output import confirm, print_gap, print_rows
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions
from ..wire.apis import name_of_key

__all__ = ("command",)

_NODES: Final = ("cluster_id", "role", "node_id", "host", "port", "rack", "release", "state")
_FEATURES: Final = ("feature", "min_version", "max_version", "level", "finalized_features_epoch")
_CHANGED: Final = ("feature", "level")
_QUORUM: Final = (
    *("node_id", "role", "log_end_offset", "lag", "last_fetch_timestamp", "last_caught_up_timestamp"),
    *("directory_id", "endpoints"),
)
_QUORUM_HEAD: Final = ("leader_id", "leader_epoch", "high_watermark", "max_lag")
_VERSIONS: Final = ("node_id", "api_key", "api_name", "min_version", "max_version")
_NODE: Final = ("node_id",)
_LEVEL: Final = 2**15 - 1


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire cluster describe",
        "aiokafkawire cluster quorum",
        "aiokafkawire cluster features",
        "aiokafkawire cluster upgrade-features metadata.version=30 --dry-run",
        "aiokafkawire cluster add-controller 4 --directory-id PT8P6GwdTu2Kq9jdEFpIkg --endpoint CONTROLLER://c4:9093",
        "aiokafkawire cluster unregister 4",
    ),
)
def command() -> None:
    """Describe brokers, controllers, features and versions of APIs; change features and the voters of the quorum."""


@command.command(
    "describe",
    examples=(
        "aiokafkawire cluster describe --controllers --fenced",
        "aiokafkawire cluster describe --json | jq -r .rack",
    ),
)
@click.option("--controllers", is_flag=True, help="The voters of the controllers' quorum, too (Kafka 3.3 and later).")
@click.option("--fenced", is_flag=True, help="Brokers that are registered, but not in service (Kafka 4.0 and later).")
def describe_cluster(shared: SharedOptions, *, controllers: bool, fenced: bool) -> int:
    """Describe the brokers: addresses, racks and releases, and which node is the active controller.

    The release is the newest one whose versions of APIs the broker supports.
    """

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        found = await admin.describe_cluster(include_fenced_brokers=fenced)
        quorum = await _quorum(admin, must=controllers)
        active = quorum.leader_id if quorum is not None else found.controller.node_id if found.controller else None
        running = [node.node_id for node in found.nodes.values() if not node.is_fenced]
        rows = broker_rows(found, await _releases(admin, running), active)
        if controllers and quorum is not None:
            rows += controller_rows(found.cluster_id, quorum)
        print_rows(shared, _NODES, rows)
        return 0

    return run_with_client(shared, run)


async def _quorum(admin: Admin, *, must: bool) -> QuorumInfo | None:
    """Return the quorum; None if the brokers have none or refuse, unless the user asks for it."""
    try:
        return await admin.describe_metadata_quorum()
    except (UnsupportedVersion, BrokerError):
        if must:
            raise
        return None


async def _releases(admin: Admin, brokers: list[int]) -> dict[int, str | None]:
    """Return the release of each broker that answers."""
    from ...testing.cluster.releases import RELEASES

    found, _ = await partial_results(brokers, admin.api_versions(brokers))
    return {broker: release_of(versions, RELEASES) for broker, versions in found.items()}


@command.command("features", examples=("aiokafkawire cluster features", "aiokafkawire cluster features --broker 2"))
@click.option("--broker", type=click.IntRange(0, 2**31 - 1), metavar="ID", help="The broker to ask; by default any.")
def describe_features(shared: SharedOptions, *, broker: int | None) -> int:
    """Describe the features: the versions that a broker supports, and the level in effect; 0 is disabled."""

    async def run(session: Session) -> int:
        print_rows(shared, _FEATURES, feature_rows(await session.kafka.admin.describe_features(broker=broker)))
        return 0

    return run_with_client(shared, run)


@command.command("upgrade-features", examples=("aiokafkawire cluster upgrade-features metadata.version=30 --dry-run",))
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL...")
@click.option("--dry-run", is_flag=True, help="Let the controller check it, and change nothing.")
def upgrade_features(shared: SharedOptions, *, levels: tuple[str, ...], dry_run: bool) -> int:
    """Raise the levels of features; brokers since 4.0 change all or none."""
    return _update(shared, _levels(levels), UpgradeType.UPGRADE, dry_run=dry_run)


@command.command(
    "downgrade-features",
    examples=(
        "aiokafkawire cluster downgrade-features transaction.version=1 --dry-run",
        "aiokafkawire cluster downgrade-features group.version=0     disable it",
    ),
)
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL...")
@click.option("--unsafe", is_flag=True, help="Also if metadata is lost.")
@click.option("--dry-run", is_flag=True, help="Let the controller check it, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def downgrade_features(
    shared: SharedOptions, *, levels: tuple[str, ...], unsafe: bool, dry_run: bool, yes: bool
) -> int:
    """Lower the levels of features, or disable them with level 0; asks before, and otherwise needs --yes."""
    wanted = _levels(levels)
    if not dry_run:
        what = f"downgrade {len(wanted)} {'feature' if len(wanted) == 1 else 'features'}"
        confirm(f"{what}, perhaps with loss of metadata" if unsafe else what, levels, yes=yes, options=shared)
    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    return _update(shared, wanted, kind, dry_run=dry_run)


def _levels(texts: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for name, level in key_values("a feature", texts, form="FEATURE=LEVEL").items():
        if not (level.isascii() and level.isdigit() and int(level) <= _LEVEL):
            raise CommandFailed(f"the level of {name} must be a number from 0 to {_LEVEL}, got {level!r}", MISSING)
        found[name] = int(level)
    return found


def _update(shared: SharedOptions, levels: Mapping[str, int], kind: UpgradeType, *, dry_run: bool) -> int:
    async def run(session: Session) -> int:
        updates = {name: FeatureUpdate(level, kind) for name, level in levels.items()}
        rows: dict[str, dict[str, Any]] = {name: {"feature": name, "level": level} for name, level in levels.items()}
        change = session.kafka.admin.update_features(updates, validate_only=dry_run)
        done = "would be changed" if dry_run else "changed"
        return await print_outcomes(session, _CHANGED, rows, change, done=done)

    return run_with_client(shared, run)


@command.command("quorum", examples=("aiokafkawire cluster quorum", "aiokafkawire cluster quorum --json | jq .lag"))
def describe_quorum(shared: SharedOptions) -> int:
    """Describe the controllers' quorum: voters, observers, and how many records each lags behind the leader.

    Times are by the leader's clock.
    """

    async def run(session: Session) -> int:
        quorum = await session.kafka.admin.describe_metadata_quorum()
        rows = quorum_rows(quorum)
        if not shared.json:
            behind = max(
                (row["lag"] for row in rows if row["role"] == "follower" and row["lag"] is not None), default=0
            )
            head = {
                "leader_id": quorum.leader_id,
                "leader_epoch": quorum.leader_epoch,
                "high_watermark": quorum.high_watermark,
                "max_lag": behind,
            }
            print_rows(shared, _QUORUM_HEAD, [head])
            print_gap(shared)
        print_rows(shared, _QUORUM, rows)
        return 0

    return run_with_client(shared, run)


_CONTROLLER: Final = click.argument("controller", type=click.IntRange(0, 2**31 - 1), metavar="ID")
_DIRECTORY: Final = click.option(
    "--directory-id", "directory", required=True, metavar="ID", help="The directory.id of its meta.properties file."
)


@command.command(
    "add-controller",
    examples=(
        "aiokafkawire cluster quorum         the ids of controllers that run and are no voters yet",
        "aiokafkawire cluster add-controller 4 --directory-id PT8P6GwdTu2Kq9jdEFpIkg --endpoint CONTROLLER://c4:9093",
    ),
)
@_CONTROLLER
@_DIRECTORY
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    required=True,
    metavar="LISTENER://HOST:PORT",
    help="Where it listens; may be repeated.",
)
def add_controller(shared: SharedOptions, *, controller: int, directory: str, endpoints: tuple[str, ...]) -> int:
    """Add a controller that runs as an observer to the voters of the quorum (Kafka 3.9 and later)."""
    directory_id = parse_uuid("--directory-id", directory)
    listeners = [parse_endpoint(text) for text in endpoints]

    async def run(session: Session) -> int:
        change = session.kafka.admin.add_raft_voter(controller, directory_id, listeners)
        return await print_outcomes(session, _NODE, {controller: {"node_id": controller}}, change, done="added")

    return run_with_client(shared, run)


@command.command(
    "remove-controller",
    examples=("aiokafkawire cluster remove-controller 4 --directory-id PT8P6GwdTu2Kq9jdEFpIkg --yes",),
)
@_CONTROLLER
@_DIRECTORY
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def remove_controller(shared: SharedOptions, *, controller: int, directory: str, yes: bool) -> int:
    """Remove a controller from the voters of the quorum (Kafka 3.9 and later); it stays an observer while it runs.

    Asks before on a terminal, and otherwise needs --yes. The quorum works while most of its voters do.
    """
    directory_id = parse_uuid("--directory-id", directory)
    confirm("remove this voter of the quorum", [f"controller {controller}"], yes=yes, options=shared)

    async def run(session: Session) -> int:
        change = session.kafka.admin.remove_raft_voter(controller, directory_id)
        return await print_outcomes(session, _NODE, {controller: {"node_id": controller}}, change, done="removed")

    return run_with_client(shared, run)


@command.command(
    "api-versions", examples=("aiokafkawire cluster api-versions", "aiokafkawire cluster api-versions 1 2")
)
@click.argument("brokers", nargs=-1, type=click.IntRange(0, 2**31 - 1), metavar="[BROKER...]")
def list_api_versions(shared: SharedOptions, *, brokers: tuple[int, ...]) -> int:
    """List the versions of each API that brokers support; by default of all brokers."""

    async def run(session: Session) -> int:
        found, errors = await partial_results(brokers, session.kafka.admin.api_versions(brokers or None))
        rows = [
            {
                "node_id": broker,
                "api_key": int(key),
                "api_name": name_of_key(int(key)) or None,
                "min_version": one.min_version,
                "max_version": one.max_version,
            }
            for broker, versions in found.items()
            for key, one in versions.items()
        ]
        return print_found(session, _VERSIONS, rows, errors.values())

    return run_with_client(shared, run)


@command.command("unregister", examples=("aiokafkawire cluster unregister 4 --yes",))
@click.argument("broker", type=click.IntRange(0, 2**31 - 1), metavar="BROKER")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def unregister_broker(shared: SharedOptions, *, broker: int, yes: bool) -> int:
    """Make the cluster forget a broker that is gone for good (Kafka 3.3 and later, with KRaft).

    Asks before on a terminal, and otherwise needs --yes. Stop the broker first: a running one registers again.
    """
    confirm("forget this broker for good", [f"broker {broker}"], yes=yes, options=shared)

    async def run(session: Session) -> int:
        change = session.kafka.admin.unregister_broker(broker)
        return await print_outcomes(session, _NODE, {broker: {"node_id": broker}}, change, done="unregistered")

    return run_with_client(shared, run)
