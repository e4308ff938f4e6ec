"""The decision whether a client may do something, as Kafka's StandardAuthorizer makes it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import attrs

from ...protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType
from .acls import ANYTHING, CLUSTER_NAME, AclFilter, StoredAcl

__all__ = ("Authorizer", "Rights")

_EVERYONE: Final = "User:*"
_IMPLYING: Final[Mapping[AclOperation, Collection[AclOperation]]] = {
    AclOperation.DESCRIBE: (
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS),
}
"""The operations whose permission includes that of another operation. Their denial does not."""


class Authorizer:
    """The ACLs of a cluster, and the decisions by them.

    Super users may do everything. For others the ACLs that cover a resource decide: one that denies wins over all that
    allow, and without one that allows, the operation is denied. A resource that no ACL covers is for super users only,
    or with ``allow_everyone_if_no_acl_found`` for everyone.
    """

    def __init__(self, super_users: Iterable[str] = (), *, allow_everyone_if_no_acl_found: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allows_by_default = allow_everyone_if_no_acl_found
        self._acls: dict[ResourceType, dict[StoredAcl, None]] = {}

    def add(self, acl: StoredAcl) -> None:
        """Add an ACL, unless it is there."""
        self._acls.setdefault(acl.resource_type, {})[acl] = None

    def remove(self, acl: StoredAcl) -> None:
        """Remove an ACL, if it is there."""
        self._acls.get(acl.resource_type, {}).pop(acl, None)

    def found(self, wanted: AclFilter) -> list[StoredAcl]:
        """Return the ACLs that a filter finds, in the order in which they were added to each type of resources."""
        return [acl for acls in self._acls.values() for acl in acls if wanted.matches(acl)]

    def allows(self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether a principal at a host may perform an operation on a resource."""
        if principal in self._super_users:
            return True
        covering = [acl for acl in self._acls.get(kind, ()) if acl.covers(kind, name)]
        if not covering:
            return self._allows_by_default
        applying = {acl.permission_type for acl in _of(covering, principal, host) if _applies(acl, operation)}
        return applying == {AclPermissionType.ALLOW}

    def allows_somewhere(self, principal: str, host: str, operation: AclOperation, kind: ResourceType) -> bool:
        """Return whether a principal at a host may perform an operation on any resource of a type (KIP-679)."""
        if self.allows(principal, host, operation, kind, "hardcode"):  # a name such as Kafka's, for the default
            return True
        acls = [
            acl
            for acl in _of(self._acls.get(kind, ()), principal, host)
            if acl.operation in (operation, AclOperation.ALL)
        ]
        denied = [acl for acl in acls if acl.permission_type is AclPermissionType.DENY]
        if any(_is_everything(acl) for acl in denied):
            return False
        return any(
            _is_everything(acl) or not any(_dominates(denial, acl) for denial in denied)
            for acl in acls
            if acl.permission_type is AclPermissionType.ALLOW
        )


def _of(acls: Iterable[StoredAcl], principal: str, host: str) -> Iterator[StoredAcl]:
    """Yield the ACLs for a principal and a host."""
    for acl in acls:
        if acl.principal in (principal, _EVERYONE) and acl.host in (host, ANYTHING):
            yield acl


def _applies(acl: StoredAcl, operation: AclOperation) -> bool:
    if acl.operation is AclOperation.ALL:
        return True
    if acl.permission_type is AclPermissionType.ALLOW:
        return acl.operation in _IMPLYING.get(operation, (operation,))
    return acl.operation is operation


def _is_everything(acl: StoredAcl) -> bool:
    return acl.pattern_type is PatternType.LITERAL and acl.resource_name == ANYTHING


def _dominates(denial: StoredAcl, allowed: StoredAcl) -> bool:
    """Return whether a denial covers all that another ACL allows."""
    if denial.pattern_type is PatternType.PREFIXED:
        return allowed.resource_name.startswith(denial.resource_name)
    return allowed.pattern_type is PatternType.LITERAL and allowed.resource_name == denial.resource_name


@attrs.frozen
class Rights:
    """The rights of the client of one connection; all rights if there is no authorizer."""

    authorizer: Authorizer | None
    principal: str
    host: str

    def may(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether the client may perform an operation on a resource."""
        return self.authorizer is None or self.authorizer.allows(self.principal, self.host, operation, kind, name)

    def may_for_cluster(self, operation: AclOperation) -> bool:
        """Return whether the client may perform an operation on the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_somewhere(self, operation: AclOperation, kind: ResourceType) -> bool:
        """Return whether the client may perform an operation on any resource of a type."""
        return self.authorizer is None or self.authorizer.allows_somewhere(self.principal, self.host, operation, kind)

    def of_bits(self, bits: int, kind: ResourceType, name: str) -> int:
        """Return those of some operations on a resource that the client may perform; bit n is the code n (KIP-430)."""
        return sum(1 << code for code in AclOperation if bits >> code & 1 and self.may(code, kind, name))
