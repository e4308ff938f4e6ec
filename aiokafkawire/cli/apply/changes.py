"""The changes of a cluster: each has a line of text for people, and a row for programs."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from ..quotas.limits import quota_text
from .cluster_settings import DEFAULT, HIDDEN, Acl, ConfigValue, DeclaredTopic, QuotaEntity, User

__all__ = (
    "AddAcl",
    "AddPartitions",
    "AlterConfigs",
    "AlterQuota",
    "Change",
    "CreateTopic",
    "DeleteTopic",
    "DeleteUser",
    "RemoveAcl",
    "SetUser",
    "acl_fields",
    "entity_fields",
    "named",
)

_SECRET_ENDS: Final = ("password", "jaas.config", "keystore.key", "truststore.certificates", "secret.key")
"""The ends of the names of brokers' configs that are secret."""


@attrs.frozen
class CreateTopic:
    """Create a topic with its configs."""

    name: str
    topic: DeclaredTopic

    def __str__(self) -> str:
        partitions = "the default number of" if self.topic.partitions is None else self.topic.partitions
        noun = "partition" if self.topic.partitions == 1 else "partitions"
        factor = self.topic.replication_factor
        replicas = "" if factor is None else f", {factor} {'replica' if factor == 1 else 'replicas'}"
        configs = "".join(f", {name}={value}" for name, value in sorted(self.topic.configs.items()))
        return f"+ topic {self.name}: {partitions} {noun}{replicas}{configs}"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        return {
            "action": "create",
            "kind": "topic",
            "topic": self.name,
            "partitions": self.topic.partitions,
            "replication_factor": self.topic.replication_factor,
            "configs": dict(self.topic.configs),
        }


@attrs.frozen
class AddPartitions:
    """Add partitions to a topic."""

    name: str
    before: int
    count: int

    def __str__(self) -> str:
        return f"~ topic {self.name}: {self.before} -> {self.count} partitions"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        partitions = {"before": self.before, "after": self.count}
        return {"action": "alter", "kind": "topic", "topic": self.name, "partitions": partitions}


@attrs.frozen
class AlterConfigs:
    """Set configs of a topic or a broker; None stands for the default."""

    kind: Literal["topic", "broker"]
    name: str
    """A topic's name, a broker's id, or ``DEFAULT`` for all brokers."""
    changes: Mapping[str, ConfigValue | None]
    before: Mapping[str, ConfigValue]

    def __str__(self) -> str:
        changed = ", ".join(
            f"{name} {self._shown(name, self.before.get(name), after=False)} -> {self._shown(name, value, after=True)}"
            for name, value in sorted(self.changes.items())
        )
        subject = "all brokers" if self.name == DEFAULT else f"{self.kind} {self.name}"
        return f"~ {subject}: {changed}"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        configs = {
            name: {
                "before": None if name not in self.before else self._shown(name, self.before[name], after=False),
                "after": None if value is None else self._shown(name, value, after=True),
            }
            for name, value in sorted(self.changes.items())
        }
        return {"action": "alter", "kind": self.kind, **named(self.kind, self.name), "configs": configs}

    def _shown(self, name: str, value: ConfigValue | None, *, after: bool) -> str:
        if value is None:
            return "default"
        is_secret = name.endswith(_SECRET_ENDS) or (after and self.before.get(name) == HIDDEN)
        return str(HIDDEN) if is_secret and isinstance(value, str) else str(value)


@attrs.frozen
class DeleteTopic:
    """Delete a topic with its records."""

    name: str

    def __str__(self) -> str:
        return f"- topic {self.name}, with all its records"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        return {"action": "delete", "kind": "topic", "topic": self.name}


@attrs.frozen
class AddAcl:
    """Add a rule."""

    acl: Acl

    def __str__(self) -> str:
        return f"+ acl {self.acl}"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        return {"action": "create", "kind": "acl", **acl_fields(self.acl)}


@attrs.frozen
class RemoveAcl:
    """Remove a rule."""

    acl: Acl

    def __str__(self) -> str:
        return f"- acl {self.acl}"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        return {"action": "delete", "kind": "acl", **acl_fields(self.acl)}


@attrs.frozen
class AlterQuota:
    """Set limits of an entity; None removes a limit."""

    entity: QuotaEntity
    changes: Mapping[str, float | None]
    before: Mapping[str, float]

    @property
    def is_deletion(self) -> bool:
        """Whether the entity has no limits afterwards."""
        return all(limit is None for limit in self.changes.values()) and set(self.before) <= set(self.changes)

    def __str__(self) -> str:
        def shown(limit: float | None) -> str:
            return "none" if limit is None else quota_text(limit)

        changed = ", ".join(
            f"{name} {shown(self.before.get(name))} -> {shown(limit)}" for name, limit in sorted(self.changes.items())
        )
        sign = "-" if self.is_deletion else "~" if self.before else "+"
        return f"{sign} quota of {self.entity}: {changed}"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        action = "delete" if self.is_deletion else "alter" if self.before else "create"
        limits = {name: {"before": self.before.get(name), "after": self.changes[name]} for name in sorted(self.changes)}
        return {"action": action, "kind": "quota", **entity_fields(self.entity), "limits": limits}


@attrs.frozen
class SetUser:
    """Add a user's credential, or give it another password."""

    name: str
    user: User
    is_new: bool

    def __str__(self) -> str:
        sign, verb = ("+", "with") if self.is_new else ("~", "gets")
        iterations = "" if self.user.iterations is None else f", {self.user.iterations} iterations"
        return f"{sign} user {self.name}: {self.user.mechanism} {verb} the password in {self.user.password}{iterations}"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        return {
            "action": "create" if self.is_new else "alter",
            "kind": "user",
            "user": self.name,
            "mechanism": self.user.mechanism,
            "iterations": self.user.iterations,
            "password": str(self.user.password),
        }


@attrs.frozen
class DeleteUser:
    """Delete a user's credential."""

    name: str
    mechanism: str

    def __str__(self) -> str:
        return f"- user {self.name}: {self.mechanism}"

    def row(self) -> dict[str, Any]:
        """Return the change as a row."""
        return {"action": "delete", "kind": "user", "user": self.name, "mechanism": self.mechanism}


Change: TypeAlias = (
    CreateTopic | AddPartitions | AlterConfigs | DeleteTopic | AddAcl | RemoveAcl | AlterQuota | SetUser | DeleteUser
)


def acl_fields(acl: Acl) -> dict[str, Any]:
    """Return a rule for a row."""
    return {
        "principal": acl.principal,
        "operation": acl.operation,
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern,
        "permission_type": acl.permission,
        "host": acl.host,
    }


def entity_fields(entity: QuotaEntity) -> dict[str, Any]:
    """Return the entity of a quota for a row: the parts that it has; None stands for the default."""
    parts = {"user": entity.user, "client_id": entity.client_id, "ip": entity.ip}
    return {"entity": {key: None if name == DEFAULT else name for key, name in parts.items() if name}}


def named(kind: str, name: str) -> dict[str, str]:
    """Return the name of a topic, a broker or a user for a row."""
    if kind == "broker":
        return {"node_id": "default" if name == DEFAULT else name}
    return {kind: name}
