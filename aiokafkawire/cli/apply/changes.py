"""The changes that make a cluster what a file declares, in a safe order. Nothing is deleted unless the user says so."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

import attrs

from .cluster_settings import Acl, ClusterSettings, DeclaredTopic, QuotaEntity, User

__all__ = (
    "SUBJECTS",
    "AddAcls",
    "AddPartitions",
    "AlterConfigs",
    "AlterQuota",
    "Change",
    "Conflict",
    "CreateTopic",
    "DeleteTopic",
    "DeleteUser",
    "Plan",
    "RemoveAcls",
    "SetUser",
    "plan_changes",
)

SUBJECTS: Final = ("topics", "configs", "acls", "quotas", "users")
"""What may be deleted."""


@attrs.frozen
class CreateTopic:
    """Create a topic with its configs."""

    name: str
    topic: DeclaredTopic

    def __str__(self) -> str:
        partitions = "the default number of" if self.topic.partitions is None else self.topic.partitions
        replicas = "" if self.topic.replication_factor is None else f", {self.topic.replication_factor} replicas"
        configs = "".join(f", {name}={value}" for name, value in sorted(self.topic.configs.items()))
        return f"+ topic {self.name}: {partitions} partitions{replicas}{configs}"


@attrs.frozen
class AddPartitions:
    """Add partitions to a topic."""

    name: str
    before: int
    count: int

    def __str__(self) -> str:
        return f"~ topic {self.name}: {self.before} -> {self.count} partitions"


@attrs.frozen
class AlterConfigs:
    """Set configs of a topic or a broker; None stands for the default."""

    kind: Literal["topic", "broker"]
    name: str
    """A topic's name, a broker's id, or ``DEFAULT`` for all brokers."""
    changes: Mapping[str, str | None]
    before: Mapping[str, str]

    def __str__(self) -> str:
        changed = ", ".join(
            f"{name} {self.before.get(name, 'default')} -> {'default' if value is None else value}"
            for name, value in sorted(self.changes.items())
        )
        return f"~ {self.kind} {self.name}: {changed}"


@attrs.frozen
class DeleteTopic:
    """Delete a topic with its records."""

    name: str

    def __str__(self) -> str:
        return f"- topic {self.name}, with all its records"


@attrs.frozen
class AddAcls:
    """Add rules."""

    acls: tuple[Acl, ...]

    def __str__(self) -> str:
        return "\n".join(f"+ acl {acl}" for acl in self.acls)


@attrs.frozen
class RemoveAcls:
    """Remove rules."""

    acls: tuple[Acl, ...]

    def __str__(self) -> str:
        return "\n".join(f"- acl {acl}" for acl in self.acls)


@attrs.frozen
class AlterQuota:
    """Set limits of an entity; None removes a limit."""

    entity: QuotaEntity
    changes: Mapping[str, float | None]
    before: Mapping[str, float]

    def __str__(self) -> str:
        def shown(limit: float | None) -> str:
            return "none" if limit is None else f"{limit:.15g}"

        changed = ", ".join(
            f"{name} {shown(self.before.get(name))} -> {shown(limit)}" for name, limit in sorted(self.changes.items())
        )
        return f"~ quota of {self.entity}: {changed}"


@attrs.frozen
class SetUser:
    """Add a user's credential, or give it another password."""

    name: str
    user: User
    is_new: bool

    def __str__(self) -> str:
        sign, verb = ("+", "with") if self.is_new else ("~", "gets")
        return f"{sign} user {self.name}: {self.user.mechanism} {verb} the password in {self.user.password}"


@attrs.frozen
class DeleteUser:
    """Delete a user's credential."""

    name: str
    mechanism: str

    def __str__(self) -> str:
        return f"- user {self.name}: {self.mechanism}"


Change: TypeAlias = (
    CreateTopic | AddPartitions | AlterConfigs | DeleteTopic | AddAcls | RemoveAcls | AlterQuota | SetUser | DeleteUser
)


@attrs.frozen
class Conflict:
    """A difference that no change can remove."""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"! {self.subject}: {self.reason}"


@attrs.frozen
class Plan:
    """The changes in their order, the conflicts, and how much of each subject the file does not mention."""

    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...]
    unmentioned: Mapping[str, int]


def plan_changes(
    declared: ClusterSettings, current: ClusterSettings, *, deletes: Collection[str] = (), sets_passwords: bool = False
) -> Plan:
    """Compare what is declared with what is there.

    Topics come first, then configs, users and quotas, then rules: those that deny before those that allow. Deletions
    follow in the opposite order, topics last.

    Args:
        declared: what the file declares.
        current: what the brokers describe; all subjects that the file declares.
        deletes: those of :data:`SUBJECTS` of which what the file does not mention is deleted.
        sets_passwords: whether users who exist get their passwords again; brokers do not return them.
    """
    plan = _Planner(declared, current, deletes, sets_passwords)
    return Plan((*plan.additions(), *plan.deletions()), tuple(plan.conflicts()), plan.unmentioned())


V = TypeVar("V")


@attrs.frozen
class _Planner:
    declared: ClusterSettings
    current: ClusterSettings
    deletes: Collection[str]
    sets_passwords: bool

    def additions(self) -> Iterator[Change]:
        there = self.current.topics or {}
        for name, topic in (self.declared.topics or {}).items():
            if name not in there:
                yield CreateTopic(name, topic)
            elif (topic.partitions or 0) > (before := there[name].partitions or 0):
                yield AddPartitions(name, before, topic.partitions or 0)
        for name, topic in (self.declared.topics or {}).items():
            if name in there:
                yield from self._configs("topic", name, topic.configs, there[name].configs)
        for name, configs in (self.declared.brokers or {}).items():
            yield from self._configs("broker", name, configs, (self.current.brokers or {}).get(name, {}))
        for name, users in (self.declared.users or {}).items():
            known = {user.mechanism: user for user in (self.current.users or {}).get(name, ())}
            for user in users:
                before_user = known.get(user.mechanism)
                if before_user is None or self.sets_passwords or user.iterations not in (None, before_user.iterations):
                    yield SetUser(name, user, is_new=before_user is None)
        for entity, limits in (self.declared.quotas or {}).items():
            before_limits = (self.current.quotas or {}).get(entity, {})
            changes = _differences(limits, before_limits, removes="quotas" in self.deletes)
            if changes:
                yield AlterQuota(entity, changes, before_limits)
        added = (self.declared.acls or frozenset()) - (self.current.acls or frozenset())
        yield from _acls(AddAcls, added, first="deny")

    def _configs(
        self, kind: Literal["topic", "broker"], name: str, configs: Mapping[str, str], before: Mapping[str, str]
    ) -> Iterator[Change]:
        changes = _differences(configs, before, removes="configs" in self.deletes)
        if changes:
            yield AlterConfigs(kind, name, changes, before)

    def deletions(self) -> Iterator[Change]:
        if "acls" in self.deletes:
            yield from _acls(RemoveAcls, self._other_acls(), first="allow")
        if "quotas" in self.deletes:
            for entity, limits in self._others("quotas"):
                yield AlterQuota(entity, dict.fromkeys(limits), limits)
        if "users" in self.deletes:
            for name, mechanism in self._other_users():
                yield DeleteUser(name, mechanism)
        if "topics" in self.deletes:
            for name, _ in self._others("topics"):
                yield DeleteTopic(name)

    def conflicts(self) -> Iterator[Conflict]:
        there = self.current.topics or {}
        for name, topic in (self.declared.topics or {}).items():
            before = there.get(name)
            if before is None:
                continue
            if topic.partitions is not None and topic.partitions < (before.partitions or 0):
                reason = f"it has {before.partitions} partitions and the file {topic.partitions}; none can be removed"
                yield Conflict(f"topic {name}", f"{reason}, so change the file, or delete the topic")
            if topic.replication_factor not in (None, before.replication_factor):
                reason = f"it has {before.replication_factor} replicas and the file {topic.replication_factor}"
                yield Conflict(f"topic {name}", f"{reason}: move it with 'aiokafkawire reassign'")

    def unmentioned(self) -> dict[str, int]:
        counts = {
            "topics": len(self._others("topics")) if self.declared.topics is not None else 0,
            "acls": len(self._other_acls()) if self.declared.acls is not None else 0,
            "quotas": len(self._others("quotas")) if self.declared.quotas is not None else 0,
            "users": len(self._other_users()) if self.declared.users is not None else 0,
        }
        return {subject: count for subject, count in counts.items() if count and subject not in self.deletes}

    def _others(self, subject: Literal["topics", "quotas"]) -> list[tuple[Any, Any]]:
        declared, current = getattr(self.declared, subject), getattr(self.current, subject) or {}
        return [(key, value) for key, value in current.items() if declared is not None and key not in declared]

    def _other_acls(self) -> frozenset[Acl]:
        if self.declared.acls is None:
            return frozenset()
        return (self.current.acls or frozenset()) - self.declared.acls

    def _other_users(self) -> list[tuple[str, str]]:
        if self.declared.users is None:
            return []
        kept = {(name, user.mechanism) for name, users in self.declared.users.items() for user in users}
        there = [(name, user.mechanism) for name, users in (self.current.users or {}).items() for user in users]
        return [credential for credential in there if credential not in kept]


def _differences(declared: Mapping[str, V], before: Mapping[str, V], *, removes: bool) -> dict[str, V | None]:
    """Return the values to set, and None for those to remove."""
    changes: dict[str, V | None] = {name: value for name, value in declared.items() if before.get(name) != value}
    if removes:
        changes |= {name: None for name in before if name not in declared}
    return changes


def _acls(
    change: Callable[[tuple[Acl, ...]], Change], acls: Iterable[Acl], *, first: Literal["allow", "deny"]
) -> Iterator[Change]:
    """Yield the changes of rules: those with the permission ``first`` before the others."""
    ordered = sorted(acls)
    for together in (
        tuple(acl for acl in ordered if acl.permission == first),
        tuple(acl for acl in ordered if acl.permission != first),
    ):
        if together:
            yield change(together)
