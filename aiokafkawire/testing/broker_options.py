"""The arguments of :class:`~.broker.Broker`: types for functions that pass them on, and checks of their values."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict
from uuid import UUID

import attrs

from ..argument_checks import INT32, is_integer, is_text, shown
from ..errors import ConfigError
from .cluster.state import Settings
from .groups.settings import MIGRATION_POLICIES
from .groups.target_assignment import ASSIGNORS
from .logs.log_reader import RACK_AWARE
from .security.authorizer import Authorizer
from .security.bearer_tokens import TokenValidator

__all__ = (
    "BrokerArguments",
    "SimulatedArguments",
    "check_choices",
    "check_configs",
    "check_consumer_groups",
    "check_index",
    "check_types",
    "check_listening",
    "check_name",
    "check_nodes",
    "check_number",
    "authorizer_of",
    "settings_of",
)

_LAST_PORT: Final = 65_535
_MOST_NODES: Final = 1_000


class SimulatedArguments(TypedDict, total=False):
    """The arguments of :class:`~.broker.Broker` that ``simulate`` accepts."""

    node_id: int
    racks: Sequence[str | None]
    cluster_id: str
    max_versions: str | None
    auto_create_topics_enable: bool
    num_partitions: int
    default_replication_factor: int | None
    min_insync_replicas: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    group_min_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    group_consumer_session_timeout_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_size: int
    group_consumer_assignors: Sequence[str]
    group_consumer_migration_policy: str
    users: Mapping[str, str] | None
    sasl_enabled_mechanisms: Sequence[str]
    oauthbearer: bool | TokenValidator
    connections_max_reauth_ms: int
    connection_failed_authentication_delay_ms: int
    delegation_token_secret_key: str | None
    delegation_token_max_lifetime_ms: int
    delegation_token_expiry_time_ms: int
    log_dirs: int
    authorizer: bool
    super_users: Sequence[str]
    allow_everyone_if_no_acl_found: bool
    message_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    socket_request_max_bytes: int
    max_connections_per_ip: int
    client_telemetry: bool
    telemetry_max_bytes: int
    strict: bool


class BrokerArguments(SimulatedArguments, total=False):
    """All arguments of :class:`~.broker.Broker` by name, except ``nodes``."""

    host: str
    port: int | None
    advertised_host: str | None
    tls: ssl.SSLContext | None
    clock: Callable[[], int]
    new_uuid: Callable[[], UUID]


_NUMBERS: Final[Mapping[str, int]] = {  # the least allowed value of each
    "node_id": 0,
    "num_partitions": 1,
    "min_insync_replicas": 1,
    "replica_lag_time_max_ms": 1,
    "group_min_session_timeout_ms": 1,
    "group_initial_rebalance_delay_ms": 0,
    "group_max_size": 1,
    "group_consumer_session_timeout_ms": 1,
    "group_consumer_heartbeat_interval_ms": 1,
    "group_consumer_max_size": 1,
    "connections_max_reauth_ms": 0,
    "connection_failed_authentication_delay_ms": 0,
    "delegation_token_max_lifetime_ms": 1,
    "delegation_token_expiry_time_ms": 1,
    "log_dirs": 1,
    "message_max_bytes": 0,
    "max_incremental_fetch_session_cache_slots": 0,
    "socket_request_max_bytes": 1,
    "max_connections_per_ip": 0,
    "telemetry_max_bytes": 1,
}
_FLAGS: Final = (
    "allow_everyone_if_no_acl_found",
    "authorizer",
    "auto_create_topics_enable",
    "client_telemetry",
    "strict",
)
_FUNCTIONS: Final = ("clock", "new_uuid")


# The values to check are Any: the errors are for callers without a type checker.


def check_types(given: Mapping[str, Any]) -> None:
    """Raise ConfigError if an argument has a wrong type or is out of range; ``given`` maps names to values."""
    for name, least in _NUMBERS.items():
        if not is_integer(given[name], least, INT32):
            raise ConfigError(f"{name} is {shown(given[name])}: an integer from {least} to {INT32}")
    for name in _FLAGS:
        if not isinstance(given[name], bool):
            raise ConfigError(f"{name} is {shown(given[name])}: True or False")
    for name in _FUNCTIONS:
        if not callable(given[name]):
            raise ConfigError(f"{name} is {shown(given[name])}: a function")
    for name in ("cluster_id", "host"):
        _check_text(name, given[name])
    if given["advertised_host"] is not None:
        _check_text("advertised_host", given["advertised_host"])
    secret_key = given["delegation_token_secret_key"]
    if secret_key is not None and not (isinstance(secret_key, str) and secret_key and is_text(secret_key)):
        raise ConfigError("delegation_token_secret_key is text that is not empty (not shown), or None")
    racks, users = given["racks"], given["users"]
    if (
        isinstance(racks, str)
        or not isinstance(racks, Sequence)
        or not all(isinstance(rack, str | None) for rack in racks)
    ):
        raise ConfigError(f"racks is {shown(racks)}: a list of strings, None for a broker without a rack")
    if users is None:
        return
    if not isinstance(users, Mapping) or not all(isinstance(text, str) for user in users.items() for text in user):
        raise ConfigError("users is a mapping of names to passwords, both strings (not shown)")


def _check_text(name: str, given: Any) -> None:
    if not isinstance(given, str) or not given or not given.isprintable():
        raise ConfigError(f"{name} is {shown(given)}: a string")


def check_name(what: str, given: Any) -> None:
    """Raise TypeError unless ``given`` is a string; ``what`` names the argument in the message."""
    if not isinstance(given, str):
        raise TypeError(f"{what} must be a string, got {shown(given)}")


def check_index(what: str, given: Any) -> None:
    """Raise TypeError unless ``given`` is an integer; ``what`` names the argument in the message."""
    if not _is_int(given):
        raise TypeError(f"{what} must be an integer, got {shown(given)}")


def check_number(what: str, given: Any, *, whole: bool = False) -> None:
    """Raise TypeError unless ``given`` is a number (an integer if ``whole``), ValueError if it is negative or NaN.

    ``what`` names the argument in the message.
    """
    if not _is_int(given) and (whole or not isinstance(given, float)):
        raise TypeError(f"{what} must be {'an integer' if whole else 'a number'}, got {shown(given)}")
    if not given >= 0:
        raise ValueError(f"{what} must be 0 or more, got {shown(given)}")


def check_configs(configs: Any) -> None:
    """Raise TypeError unless ``configs`` is a mapping of a topic's settings, or None."""
    if configs is not None and not isinstance(configs, Mapping):
        raise TypeError(f"configs must be a mapping such as {{'cleanup.policy': 'compact'}}, got {shown(configs)}")
    for name, value in (configs or {}).items():
        check_name("a setting's name", name)
        check_name(f"the setting {name}", value)


def check_nodes(nodes: Any, racks: Sequence[str | None], default_replication_factor: int | None) -> None:
    """Raise ConfigError if the number of brokers is invalid, or does not fit the racks or the replication factor."""
    if not _is_int(nodes) or nodes < 1:
        raise ConfigError(f"nodes is {nodes!r}: it must be an integer of 1 or more")
    if nodes > _MOST_NODES:
        raise ConfigError(f"nodes is {nodes}: {_MOST_NODES} brokers at most")
    if racks and len(racks) != nodes:
        raise ConfigError(f"{nodes} brokers with {len(racks)} racks: a rack for each, None if it has none, or no racks")
    if default_replication_factor is not None and not is_integer(default_replication_factor, 1, nodes):
        raise ConfigError(
            f"default_replication_factor is {default_replication_factor!r}: from 1 to {nodes}, one replica per broker"
        )


def check_listening(nodes: int, port: Any, tls: Any) -> None:
    """Raise ConfigError unless ``port`` is None or can be the first of ``nodes`` ports, and ``tls`` fits it."""
    if tls is not None and not isinstance(tls, ssl.SSLContext):
        raise ConfigError(f"tls is {tls!r}: an ssl.SSLContext, or None")
    if port is None:
        if tls is not None:
            raise ConfigError("tls needs a TCP port (port=None means in-memory only)")
        return
    if not _is_int(port) or not 0 <= port <= _LAST_PORT:
        raise ConfigError(f"port is {port!r}: from 1 to {_LAST_PORT}, 0 for any free port, or None for no port")
    if port and port + nodes - 1 > _LAST_PORT:
        raise ConfigError(f"{nodes} brokers from port {port} on: the first port is {_LAST_PORT - nodes + 1} at most")


def check_choices(max_versions: Any, replica_selector_class: Any) -> None:
    """Raise ConfigError if an argument is neither None nor valid; :mod:`.cluster.releases` rejects unknown releases."""
    if max_versions is not None and not isinstance(max_versions, str):
        raise ConfigError(f'max_versions is {max_versions!r}: a release of Apache Kafka as a string, such as "2.4"')
    if replica_selector_class is not None and replica_selector_class != RACK_AWARE:
        raise ConfigError(f"replica_selector_class is {replica_selector_class!r}: {RACK_AWARE!r}, or None")


def check_consumer_groups(assignors: Any, migration_policy: Any) -> None:
    """Raise ConfigError if the assignors or the migration policy of consumer groups are invalid."""
    known = ", ".join(ASSIGNORS)
    if isinstance(assignors, str) or not isinstance(assignors, Sequence) or not assignors:
        raise ConfigError(f"group_consumer_assignors is {shown(assignors)}: some of {known}, the default first")
    if any(name not in ASSIGNORS for name in assignors):
        raise ConfigError(f"group_consumer_assignors is {shown(assignors)}: only {known}")
    if migration_policy not in MIGRATION_POLICIES:
        policies = ", ".join(MIGRATION_POLICIES)
        raise ConfigError(f"group_consumer_migration_policy is {shown(migration_policy)}: one of {policies}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# --- what the arguments make -------------------------------------------------------------------------------------


def settings_of(given: Mapping[str, Any], **derived: Any) -> Settings:
    """Return the settings of the brokers: those among the arguments, and ``derived`` ones instead of these."""
    names = {field.name for field in attrs.fields(Settings)}
    return Settings(**{name: value for name, value in {**given, **derived}.items() if name in names})


def authorizer_of(given: Mapping[str, Any]) -> Authorizer | None:
    """Return the authorizer that the arguments ask for; None if there is to be none.

    Raises:
        ConfigError: the super users are no principals, or there are some without an authorizer.
    """
    super_users = given["super_users"]
    is_list = isinstance(super_users, Sequence) and not isinstance(super_users, str | bytes)
    if not is_list or not all(isinstance(user, str) and user.partition(":")[2] for user in super_users):
        raise ConfigError(f'super_users is {shown(super_users)}: a list of principals such as "User:admin"')
    allows = given["allow_everyone_if_no_acl_found"]
    if given["authorizer"]:
        return Authorizer(super_users, allow_everyone_if_no_acl_found=allows)
    if super_users or allows:
        name = "super_users" if super_users else "allow_everyone_if_no_acl_found"
        raise ConfigError(f"{name} needs authorizer=True: without an authorizer everyone may do everything")
    return None
