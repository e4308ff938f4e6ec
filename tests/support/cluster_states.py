"""Any state of a cluster that a file may declare and a broker accepts."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from aiokafkawire.cli.apply.cluster_settings import (
    DEFAULT,
    Acl,
    ClusterSettings,
    DeclaredTopic,
    QuotaEntity,
    Secret,
    User,
)

__all__ = ("PASSWORD", "states")

PASSWORD: Final = "PASSWORD_OF_ALL"
"""The environment variable that all passwords are in."""

_NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
_TOPIC_NAMES = st.from_regex(r"[a-zA-Z0-9-][a-zA-Z0-9.-]{0,20}", fullmatch=True).filter(
    lambda name: name not in (".", "..")
)
_TOPIC_CONFIGS: Final[dict[str, st.SearchStrategy[str]]] = {
    "retention.ms": st.integers(-1, 2**63 - 1).map(str),
    "max.message.bytes": st.integers(0, 2**31 - 1).map(str),
    "cleanup.policy": st.sampled_from(["delete", "compact", "compact,delete", "delete, compact"]),
    "compression.type": st.sampled_from(["zstd", "lz4", "producer"]),
    "preallocate": st.sampled_from(["true", "false"]),
    "min.cleanable.dirty.ratio": st.sampled_from(["0.5", "0.50", "1", "0.25"]),
    "message.timestamp.type": st.sampled_from(["CreateTime", "LogAppendTime"]),
}
_BROKER_CONFIGS: Final[dict[str, st.SearchStrategy[str]]] = {
    "log.cleaner.threads": st.integers(1, 2).map(str),
    "log.retention.ms": st.integers(1, 2**40).map(str),
    "message.max.bytes": st.integers(2**20, 2**24).map(str),
}
# The broker enforces the quotas that it has got: lower ones would throttle the shell.
_RATES = st.integers(10**6, 2**40).map(float)
_SHARES = st.floats(1_000, 1e9)
_LIMITS: Final[dict[str, st.SearchStrategy[float]]] = {
    "producer_byte_rate": _RATES,
    "consumer_byte_rate": _RATES,
    "request_percentage": _SHARES,
    "controller_mutation_rate": _SHARES,
}


def _some(values: dict[str, st.SearchStrategy[Any]], least: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    chosen = st.lists(st.sampled_from(sorted(values)), min_size=least, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: values[name] for name in names}))


_TOPICS = st.builds(
    DeclaredTopic,
    partitions=st.none() | st.integers(1, 5),
    replication_factor=st.none() | st.just(1),
    configs=_some(_TOPIC_CONFIGS),
)
_OPERATIONS: Final = {
    "topic": ("all", "read", "write", "create", "delete", "alter", "describe", "describe_configs", "alter_configs"),
    "group": ("all", "read", "delete", "describe"),
    "transactional_id": ("all", "write", "describe"),
    "cluster": ("all", "create", "alter", "describe", "cluster_action", "idempotent_write"),
    "delegation_token": ("describe",),
    "user": ("create_tokens", "describe_tokens"),
}


@st.composite
def _acls(draw: st.DrawFn) -> Acl:
    kind = draw(st.sampled_from(sorted(_OPERATIONS)))
    return Acl(
        principal=f"User:{draw(_NAMES)}",
        operation=draw(st.sampled_from(_OPERATIONS[kind])),
        resource_type=kind,
        resource_name="kafka-cluster" if kind == "cluster" else draw(_NAMES),
        pattern="literal" if kind == "cluster" else draw(st.sampled_from(["literal", "prefixed"])),
        permission=draw(st.sampled_from(["allow", "deny"])),
        host=draw(st.sampled_from(["*", "10.0.0.1", "::1"])),
    )


_QUOTA_NAMES = _NAMES | st.just(DEFAULT)
_ENTITIES = (
    st.builds(QuotaEntity, user=_QUOTA_NAMES)
    | st.builds(QuotaEntity, client_id=_QUOTA_NAMES)
    | st.builds(QuotaEntity, user=_QUOTA_NAMES, client_id=_QUOTA_NAMES)
)
_ADDRESSES = st.builds(QuotaEntity, ip=st.sampled_from([DEFAULT, "10.0.0.1", "192.0.2.7"]))
_QUOTAS = st.dictionaries(_ENTITIES, _some(_LIMITS, 1), max_size=4)
_CONNECTIONS = st.dictionaries(
    _ADDRESSES, st.fixed_dictionaries({"connection_creation_rate": st.integers(1_000, 10**6).map(float)}), max_size=2
)


def _users(mechanism: str) -> st.SearchStrategy[User]:
    # The hashing takes its time.
    return st.builds(User, st.just(mechanism), st.none() | st.just(4097), st.just(Secret(environment=PASSWORD)))


_CREDENTIALS = (
    st.tuples(_users("SCRAM-SHA-256"))
    | st.tuples(_users("SCRAM-SHA-512"))
    | st.tuples(_users("SCRAM-SHA-256"), _users("SCRAM-SHA-512"))
)


def states() -> st.SearchStrategy[ClusterSettings]:
    """Return a strategy that makes states with all sections, each perhaps empty."""
    return st.builds(
        ClusterSettings,
        # Brokers take no two topics whose names differ in "." and "_" alone; here are no underscores.
        topics=st.dictionaries(_TOPIC_NAMES, _TOPICS, max_size=5),
        brokers=st.dictionaries(st.sampled_from([DEFAULT, "1"]), _some(_BROKER_CONFIGS, 1), max_size=2),
        acls=st.frozensets(_acls(), max_size=8),
        quotas=st.builds(lambda some, more: {**some, **more}, _QUOTAS, _CONNECTIONS),
        users=st.dictionaries(_NAMES, _CREDENTIALS, max_size=2),
    )
