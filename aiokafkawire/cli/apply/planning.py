"""Plans the changes that make a cluster what a file declares, in a safe order.

Nothing is deleted unless the user says so.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

import attrs

from .changes import (
    AddAcl,
    AddPartitions,
    AlterConfigs,
    AlterQuota,
    Change,
    CreateTopic,
    DeleteTopic,
    DeleteUser,
    RemoveAcl,
    SetUser,
    named,
)
from .cluster_settings import DEFAULT, Acl, ClusterSettings, ConfigValue, Secret
from .config_values import is_same

__all__ = ("DELETABLE", "Conflict", "Plan", "batches", "blocked_by", "is_deletion", "plan_changes")

DELETABLE: Final = ("topics", "configs", "acls", "quotas", "users")
"""The kinds of settings that may be deleted."""

_KEPT: Final = {DEFAULT: ("min.insync.replicas",)}
"""Configs by broker that Kafka sets itself, and does not let go while it has eligible leader replicas (KIP-966)."""

_AT_ONCE: Final = 100
"""The most changes of one request, so that outcomes come soon."""

V = TypeVar("V")


@attrs.frozen
class Conflict:
    """A difference that no change can remove."""

    kind: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"! {self.kind} {self.name}: {self.reason}"

    def row(self) -> dict[str, Any]:
        """Return the conflict as a row."""
        return {"action": "conflict", "kind": self.kind, **named(self.kind, self.name), "reason": self.reason}


@attrs.frozen
class Plan:
    """The changes in their order, the conflicts, and what the file does not mention, by kind."""

    changes: tuple[Change, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unmentioned: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)


def plan_changes(
    declared: ClusterSettings, current: ClusterSettings, *, deletes: Collection[str] = (), sets_secrets: bool = False
) -> Plan:
    """Compare what is declared with what is there.

    Topics come first, then configs, users and quotas, then rules: those that deny before those that allow. Deletions
    follow in the opposite order, topics last.

    Args:
        declared: what the file declares.
        current: what the brokers describe; all sections that the file declares.
        deletes: those of :data:`DELETABLE` of which what the file does not mention is deleted.
        sets_secrets: whether passwords and other secrets that are set are set again; brokers do not return them.
    """
    plan = _Planner(declared, current, deletes, sets_secrets)
    return Plan((*plan.additions(), *plan.deletions()), tuple(plan.conflicts()), plan.unmentioned())


def is_deletion(change: Change) -> bool:
    """Return whether a change deletes a topic, a rule, a quota or a user."""
    return isinstance(change, DeleteTopic | RemoveAcl | DeleteUser) or (
        isinstance(change, AlterQuota) and change.is_deletion
    )


def blocked_by(change: Change, failed: Iterable[Change]) -> str:
    """Return why a change must not be made after others failed; "" if it may be made.

    Nothing is deleted before all that replaces it is there. Nothing is allowed before all that is denied is denied.
    """
    failures = list(failed)
    if failures and is_deletion(change):
        return "nothing is deleted, as a change before has failed"
    if isinstance(change, AddAcl) and change.acl.permission == "allow":
        denied = [one for one in failures if isinstance(one, AddAcl) and one.acl.permission == "deny"]
        if denied:
            return "nothing is allowed, as a rule that denies could not be added"
    return ""


def batches(changes: Iterable[Change]) -> Iterator[Sequence[Change]]:
    """Yield changes that follow one another and that one request can make; it takes one change of each resource."""
    batch: list[Change] = []
    kind: tuple[object, ...] = ()
    names: set[str] = set()
    for change in changes:
        its_kind = _kind(change)
        its_name = change.name if isinstance(change, SetUser | DeleteUser) else str(change)
        if batch and (its_kind != kind or its_name in names or len(batch) == _AT_ONCE):
            yield batch
            batch, names = [], set()
        batch.append(change)
        names.add(its_name)
        kind = its_kind
    if batch:
        yield batch


def _kind(change: Change) -> tuple[object, ...]:
    permission = change.acl.permission if isinstance(change, AddAcl | RemoveAcl) else ""
    return type(change), permission, is_deletion(change)


@attrs.frozen
class _Planner:
    declared: ClusterSettings
    current: ClusterSettings
    deletes: Collection[str]
    sets_secrets: bool

    def additions(self) -> Iterator[Change]:
        there = self.current.topics or {}
        for name, topic in (self.declared.topics or {}).items():
            if name not in there:
                yield CreateTopic(name, topic)
        for name, topic in (self.declared.topics or {}).items():
            before = there[name].partitions if name in there else None
            if before is not None and topic.partitions is not None and topic.partitions > before:
                yield AddPartitions(name, before, topic.partitions)
        for name, topic in (self.declared.topics or {}).items():
            if name in there:
                yield from self._configs("topic", name, topic.configs, there[name].configs)
        for name, configs in (self.declared.brokers or {}).items():
            yield from self._configs("broker", name, configs, (self.current.brokers or {}).get(name, {}))
        yield from self._users()
        for entity, limits in (self.declared.quotas or {}).items():
            before_limits = (self.current.quotas or {}).get(entity, {})
            changes: dict[str, float | None] = {
                name: limit for name, limit in limits.items() if before_limits.get(name) != limit
            }
            if "quotas" in self.deletes:
                changes |= _removals(limits, before_limits)
            if changes:
                yield AlterQuota(entity, changes, before_limits)
        added = (self.declared.acls or frozenset()) - (self.current.acls or frozenset())
        yield from (AddAcl(acl) for acl in _sorted(added, first="deny"))

    def _configs(
        self,
        kind: Literal["topic", "broker"],
        name: str,
        configs: Mapping[str, ConfigValue],
        before: Mapping[str, ConfigValue],
    ) -> Iterator[Change]:
        changes: dict[str, ConfigValue | None] = {
            key: value for key, value in configs.items() if not self._is_as_declared(key, value, before.get(key))
        }
        if "configs" in self.deletes:
            changes |= _removals(configs, _without_kept(name, before))
        if changes:
            yield AlterConfigs(kind, name, changes, before)

    def _is_as_declared(self, name: str, value: ConfigValue, before: ConfigValue | None) -> bool:
        if before is None:
            return False
        if isinstance(before, Secret) or isinstance(value, Secret):
            return isinstance(before, Secret) and not self.sets_secrets
        return is_same(value, before, self.current.config_types.get(name))

    def _users(self) -> Iterator[Change]:
        for name, users in (self.declared.users or {}).items():
            known = {user.mechanism: user for user in (self.current.users or {}).get(name, ())}
            for user in users:
                before = known.get(user.mechanism)
                if before is None or self.sets_secrets or user.iterations not in (None, before.iterations):
                    kept = before.iterations if before is not None and user.iterations is None else user.iterations
                    yield SetUser(name, attrs.evolve(user, iterations=kept), is_new=before is None)

    def deletions(self) -> Iterator[Change]:
        if "acls" in self.deletes:
            yield from (RemoveAcl(acl) for acl in _sorted(self._other_acls(), first="allow"))
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
                yield Conflict("topic", name, f"{reason}, so change the file, or delete the topic")
            if topic.replication_factor not in (None, before.replication_factor):
                reason = f"it has {before.replication_factor} replicas and the file {topic.replication_factor}"
                yield Conflict("topic", name, f"{reason}: move it with 'aiokafkawire reassign'")

    def unmentioned(self) -> dict[str, tuple[str, ...]]:
        found = {
            "topics": [name for name, _ in self._others("topics")],
            "configs": list(self._other_configs()),
            "acls": [str(acl) for acl in sorted(self._other_acls())],
            "quotas": [*self._other_limits(), *(str(entity) for entity, _ in self._others("quotas"))],
            "users": [f"{name} ({mechanism})" for name, mechanism in self._other_users()],
        }
        return {kind: tuple(names) for kind, names in found.items() if names and kind not in self.deletes}

    def _other_configs(self) -> Iterator[str]:
        for name, topic in (self.declared.topics or {}).items():
            before = (self.current.topics or {}).get(name)
            if before is not None:
                yield from (f"{key} of topic {name}" for key in _removals(topic.configs, before.configs))
        for name, configs in (self.declared.brokers or {}).items():
            there = _without_kept(name, (self.current.brokers or {}).get(name, {}))
            subject = "all brokers" if name == DEFAULT else f"broker {name}"
            yield from (f"{key} of {subject}" for key in _removals(configs, there))

    def _other_limits(self) -> Iterator[str]:
        for entity, limits in (self.declared.quotas or {}).items():
            there = (self.current.quotas or {}).get(entity, {})
            yield from (f"{name} of {entity}" for name in _removals(limits, there))

    def _others(self, section: Literal["topics", "quotas"]) -> list[tuple[Any, Any]]:
        declared, current = getattr(self.declared, section), getattr(self.current, section) or {}
        return sorted((key, value) for key, value in current.items() if declared is not None and key not in declared)

    def _other_acls(self) -> frozenset[Acl]:
        if self.declared.acls is None:
            return frozenset()
        return (self.current.acls or frozenset()) - self.declared.acls

    def _other_users(self) -> list[tuple[str, str]]:
        if self.declared.users is None:
            return []
        kept = {(name, user.mechanism) for name, users in self.declared.users.items() for user in users}
        there = [(name, user.mechanism) for name, users in (self.current.users or {}).items() for user in users]
        return sorted(credential for credential in there if credential not in kept)


def _without_kept(name: str, configs: Mapping[str, V]) -> dict[str, V]:
    """Return the configs of a topic or a broker that may be set back to their defaults."""
    return {key: value for key, value in configs.items() if key not in _KEPT.get(name, ())}


def _removals(declared: Mapping[str, V], before: Mapping[str, V]) -> dict[str, None]:
    """Return None for what is there and not declared."""
    return {name: None for name in sorted(before) if name not in declared}


def _sorted(acls: Iterable[Acl], *, first: Literal["allow", "deny"]) -> list[Acl]:
    """Return rules sorted, those with the permission ``first`` before the others."""
    return sorted(acls, key=lambda acl: (acl.permission != first, acl))
