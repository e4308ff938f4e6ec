"""The state of a cluster as a file declares it, or as brokers describe it."""

from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

__all__ = (
    "CLUSTER",
    "DEFAULT",
    "HIDDEN",
    "SECTIONS",
    "Acl",
    "ClusterSettings",
    "ConfigValue",
    "DeclaredTopic",
    "QuotaEntity",
    "Secret",
    "User",
)

DEFAULT: Final = "<default>"
"""The name that stands for all users, client ids, addresses or brokers without settings of their own."""

CLUSTER: Final = "kafka-cluster"
"""The name of the only resource of the type "cluster"."""

SECTIONS: Final = ("topics", "brokers", "acls", "quotas", "users")
"""The parts of a state, in the order of a file."""


@attrs.frozen
class DeclaredTopic:
    """A topic; None stands for what the file leaves to the cluster."""

    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(order=True)
class Acl:
    """One rule: a principal may do an operation on a resource, or may not."""

    principal: str
    operation: str
    resource_type: str
    resource_name: str
    pattern: str = "literal"
    permission: str = "allow"
    host: str = "*"

    def __str__(self) -> str:
        name = self.resource_name + ("*" if self.pattern == "prefixed" else "")
        resource = self.resource_type if self.resource_type == "cluster" else f"{self.resource_type} {name}"
        where = "" if self.host == "*" else f" from {self.host}"
        return f"{self.permission} {self.principal} {self.operation} on {resource}{where}"


@attrs.frozen(order=True)
class QuotaEntity:
    """The clients that share a quota: of a user, of a client id, of both, or of an address. "" stands for any."""

    user: str = ""
    client_id: str = ""
    ip: str = ""

    def __str__(self) -> str:
        parts = (("user", self.user), ("client id", self.client_id), ("address", self.ip))
        return ", ".join(f"{kind} {name}" for kind, name in parts if name)


@attrs.frozen
class Secret:
    """The place of a secret, such as a password: an environment variable, or a file; or none, see :data:`HIDDEN`."""

    environment: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        if self.environment is not None:
            return f"${self.environment}"
        return "(hidden)" if self.file is None else f"the file {self.file}"


HIDDEN: Final = Secret()
"""A value that is set, and that brokers do not return."""

ConfigValue: TypeAlias = str | Secret
"""The value of a config; a secret one by its place."""


@attrs.frozen
class User:
    """A user's SCRAM credential. Brokers never return a password, so one that they describe has none."""

    mechanism: str
    iterations: int | None = None
    password: Secret | None = None


@attrs.frozen
class ClusterSettings:
    """The part of a cluster's state that is declared; None stands for a section that is not declared at all."""

    topics: Mapping[str, DeclaredTopic] | None = None
    brokers: Mapping[str, Mapping[str, ConfigValue]] | None = None
    """The brokers' dynamic configs, by broker id or :data:`DEFAULT`."""
    acls: frozenset[Acl] | None = None
    quotas: Mapping[QuotaEntity, Mapping[str, float]] | None = None
    users: Mapping[str, tuple[User, ...]] | None = None
    config_types: Mapping[str, str] = attrs.field(factory=dict, eq=False)
    """The types of configs by name, such as "list", as far as brokers described them."""
