"""What a broker is told when it is made: the arguments as a type, for those who pass them on, and checks of them."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict
from uuid import UUID

from .logs.reading import RACK_AWARE
from .security.bearer_tokens import TokenValidator

__all__ = ("BrokerArguments", "SimulatedArguments", "check_choices", "check_listening", "check_nodes")

_LAST_PORT: Final = 65_535


class SimulatedArguments(TypedDict, total=False):
    """The arguments of :class:`~.broker.Broker` that a simulation leaves to its user; what they mean is told there."""

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
    users: Mapping[str, str] | None
    sasl_enabled_mechanisms: Sequence[str]
    oauthbearer: bool | TokenValidator
    connections_max_reauth_ms: int
    connection_failed_authentication_delay_ms: int
    message_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    socket_request_max_bytes: int
    max_connections_per_ip: int
    strict: bool


class BrokerArguments(SimulatedArguments, total=False):
    """All arguments of :class:`~.broker.Broker` by name, but for ``nodes``."""

    host: str
    port: int | None
    advertised_host: str | None
    tls: ssl.SSLContext | None
    clock: Callable[[], int]
    new_uuid: Callable[[], UUID]


# What is checked is Any: who has no type checker is told here.


def check_nodes(nodes: Any, racks: Sequence[str | None], default_replication_factor: int | None) -> None:
    """Raise ValueError unless there can be so many brokers, in such racks, with so many replicas."""
    if not _is_int(nodes) or nodes < 1:
        raise ValueError(f"nodes is {nodes!r}: how many brokers there are, 1 at least")
    if racks and len(racks) != nodes:
        raise ValueError(f"{nodes} brokers with {len(racks)} racks: a rack for each, None if it has none, or no racks")
    if default_replication_factor is not None and not 1 <= default_replication_factor <= nodes:
        raise ValueError(
            f"default_replication_factor is {default_replication_factor}: from 1 to {nodes}, one replica per broker"
        )


def check_listening(nodes: int, port: Any, tls: Any) -> None:
    """Raise ValueError unless so many brokers can listen from this port on, with TLS or without."""
    if tls is not None and not isinstance(tls, ssl.SSLContext):
        raise ValueError(f"tls is {tls!r}: an ssl.SSLContext, or None")
    if port is None:
        if tls is not None:
            raise ValueError("tls with port=None: TLS is spoken on a port alone, and over memory there is none")
        return
    if not _is_int(port) or not 0 <= port <= _LAST_PORT:
        raise ValueError(f"port is {port!r}: from 1 to {_LAST_PORT}, 0 for any that is free, or None for none")
    if port and port + nodes - 1 > _LAST_PORT:
        raise ValueError(f"{nodes} brokers from port {port} on: the first port is {_LAST_PORT - nodes + 1} at most")


def check_choices(max_versions: Any, replica_selector_class: Any) -> None:
    """Raise ValueError unless these are among what there is; which releases there are, the releases know."""
    if max_versions is not None and not isinstance(max_versions, str):
        raise ValueError(f'max_versions is {max_versions!r}: a release of Apache Kafka as a string, such as "2.4"')
    if replica_selector_class not in (None, RACK_AWARE):
        raise ValueError(f"replica_selector_class is {replica_selector_class!r}: {RACK_AWARE!r}, or None")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
