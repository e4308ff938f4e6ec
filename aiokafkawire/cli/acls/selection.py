"""Makes ACLs, and filters that find them, from the options of the shell."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

import attrs

from ...admin.acl_bindings import AclBinding, AclBindingFilter, ResourcePattern
from ...protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType
from ..exit_status import MISSING, CommandFailed

__all__ = ("OPERATIONS", "AclEntries", "AclSelection", "Resources", "acl_row", "bindings", "filters")

_OF_CONFIGS: Final = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
_OPERATIONS_OF: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        *_OF_CONFIGS,
    ),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_OF_CONFIGS),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.IDEMPOTENT_WRITE,
        *_OF_CONFIGS,
    ),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations that Kafka has for each type of resource; each has ALL, too."""

_UNUSABLE: Final = (AclOperation.UNKNOWN, AclOperation.ANY)
OPERATIONS: Final = tuple(one.name.lower().replace("_", "-") for one in AclOperation if one not in _UNUSABLE)
"""The names of operations as users write them."""

_ANYTHING: Final[Sequence[str | None]] = (None,)
_PRODUCER: Final = {
    ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}
_CONSUMER: Final = {
    ResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
    ResourceType.GROUP: (AclOperation.READ,),
}
"""The operations of the roles, as those of kafka-acls."""


@attrs.frozen(kw_only=True)
class Resources:
    """The resources that the options name."""

    names: Mapping[ResourceType, Sequence[str]]
    """The names, by type; none for the cluster, which has no name."""
    cluster: bool = False
    pattern: PatternType = PatternType.LITERAL

    def patterns(self) -> list[tuple[ResourceType, str, PatternType]]:
        """Return the type, the name and the type of pattern of each resource."""
        found = [(kind, name, self.pattern) for kind, names in self.names.items() for name in dict.fromkeys(names)]
        if self.cluster:
            cluster = ResourcePattern.cluster()
            found.append((cluster.type, cluster.name, cluster.pattern_type))
        return found


@attrs.frozen(kw_only=True)
class AclSelection:
    """The resources and the operations of ACLs, or the roles that stand for operations."""

    resources: Resources
    operations: Sequence[str] = ()
    """As in :data:`OPERATIONS`."""
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    @property
    def has_roles(self) -> bool:
        """Whether roles stand for operations."""
        return self.producer or self.consumer

    def check(self) -> None:
        """Raise CommandFailed for options that do not fit together (exit status 2)."""
        kinds = {kind for kind, names in self.resources.names.items() if names}
        if self.has_roles and self.operations:
            raise CommandFailed(
                "--producer and --consumer have operations of their own: leave --operation out", MISSING
            )
        if self.has_roles and ResourceType.TOPIC not in kinds:
            raise CommandFailed(f"{'--producer' if self.producer else '--consumer'} needs a --topic", MISSING)
        if self.consumer and ResourceType.GROUP not in kinds:
            raise CommandFailed("--consumer needs a --group", MISSING)
        if self.idempotent and not self.producer:
            raise CommandFailed("--idempotent goes with --producer", MISSING)
        if self.has_roles:
            used = set(_PRODUCER if self.producer else ()) | set(_CONSUMER if self.consumer else ())
            role = " and ".join(name for name in ("producer", "consumer") if getattr(self, name))
            if self.resources.cluster or kinds - used:
                raise CommandFailed(f"a {role} has no ACLs on some of these resources: leave them out", MISSING)

    def rights(self) -> list[tuple[tuple[ResourceType, str, PatternType], AclOperation]]:
        """Return each resource with each operation.

        Raises:
            CommandFailed: the options do not fit together, or a type of resource has no such operation.
        """
        self.check()
        found = [
            (resource, operation)
            for resource in self.resources.patterns()
            for operation in self._operations_on(resource[0])
        ]
        if self.idempotent:
            cluster = ResourcePattern.cluster()
            found.append(((cluster.type, cluster.name, cluster.pattern_type), AclOperation.IDEMPOTENT_WRITE))
        return found

    def _operations_on(self, kind: ResourceType) -> list[AclOperation]:
        if self.has_roles:
            roles = [role for role, is_given in ((_PRODUCER, self.producer), (_CONSUMER, self.consumer)) if is_given]
            return list(dict.fromkeys(operation for role in roles for operation in role.get(kind, ())))
        found = [AclOperation[name.upper().replace("-", "_")] for name in dict.fromkeys(self.operations)]
        allowed = (AclOperation.ALL, *_OPERATIONS_OF[kind])
        for operation in found:
            if operation not in allowed:
                known = ", ".join(_written(one) for one in allowed)
                what = f"a {_written(kind)} has no operation {_written(operation)}"
                raise CommandFailed(f"{what}; it has {known}", MISSING)
        return found


@attrs.frozen(kw_only=True)
class AclEntries:
    """The principals and hosts of ACLs."""

    allowed: Sequence[str] = ()
    denied: Sequence[str] = ()
    allowed_hosts: Sequence[str] = ()
    denied_hosts: Sequence[str] = ()

    def all(self) -> list[tuple[str, AclPermissionType, str]]:
        """Return each principal with the permission and each host.

        Raises:
            CommandFailed: there is no principal, or there are hosts without principals (exit status 2).
        """
        if not self.allowed and not self.denied:
            raise CommandFailed("whom? Give --allow-principal or --deny-principal, such as User:alice", MISSING)
        for principals, hosts, option in (
            (self.allowed, self.allowed_hosts, "allow"),
            (self.denied, self.denied_hosts, "deny"),
        ):
            if hosts and not principals:
                raise CommandFailed(f"--{option}-host goes with --{option}-principal", MISSING)
        return [
            *((one, AclPermissionType.ALLOW, host) for one, host in product(self.allowed, self.allowed_hosts or "*")),
            *((one, AclPermissionType.DENY, host) for one, host in product(self.denied, self.denied_hosts or "*")),
        ]


def bindings(selection: AclSelection, entries: AclEntries) -> list[AclBinding]:
    """Return the ACLs that give each principal each operation on each resource.

    Raises:
        CommandFailed: the options do not fit together (exit status 2).
    """
    if selection.resources.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise CommandFailed("a new ACL has --pattern literal or prefixed", MISSING)
    if not selection.resources.patterns():
        raise CommandFailed("on what? Give a resource, such as --topic orders", MISSING)
    if not selection.operations and not selection.has_roles:
        raise CommandFailed("what? Give --operation, such as read or all, or --producer or --consumer", MISSING)
    if selection.has_roles and entries.denied:
        raise CommandFailed("--producer and --consumer allow: leave --deny-principal out", MISSING)
    found = entries.all()
    return [
        AclBinding(ResourcePattern(*resource), principal, operation, permission, host)
        for resource, operation in selection.rights()
        for principal, permission, host in found
    ]


def filters(
    selection: AclSelection,
    *,
    principals: Sequence[str | None] = (),
    hosts: Sequence[str | None] = (),
    permission: AclPermissionType = AclPermissionType.ANY,
) -> list[AclBindingFilter]:
    """Return the filters that find the ACLs with one of each of the values; no values mean any.

    Raises:
        CommandFailed: the options do not fit together (exit status 2).
    """
    selection.check()
    if selection.has_roles:
        permission = AclPermissionType.ALLOW
        rights: Iterable[Any] = selection.rights()
    else:
        operations = [AclOperation[name.upper().replace("-", "_")] for name in selection.operations]
        resources: Sequence[Any] = selection.resources.patterns() or [(ResourceType.ANY, None, PatternType.ANY)]
        rights = product(resources, operations or [AclOperation.ANY])
    return [
        AclBindingFilter(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            principal=principal,
            host=host,
            operation=operation,
            permission_type=permission,
        )
        for ((kind, name, pattern), operation), principal, host in product(
            rights, principals or [None], hosts or [None]
        )
    ]


def acl_row(binding: AclBinding) -> dict[str, Any]:
    """Return the row of an ACL."""
    return {
        "resource_type": _written(binding.pattern.type),
        "resource_name": binding.pattern.name,
        "pattern_type": _written(binding.pattern.pattern_type),
        "principal": binding.principal,
        "host": binding.host,
        "operation": _written(binding.operation),
        "permission_type": _written(binding.permission_type),
    }


def _written(code: ResourceType | PatternType | AclOperation | AclPermissionType) -> str:
    return code.name.lower().replace("_", "-")
