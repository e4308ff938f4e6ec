"""The ACLs of a cluster, and the filters that find them (KIP-140, KIP-290)."""

from typing import Final

import attrs

from ...protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType

__all__ = ("ANYTHING", "CLUSTER_NAME", "StoredAcl", "AclFilter")

ANYTHING: Final = "*"
"""The name of a resource, or the host, that stands for all of them."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The only name of a resource of type CLUSTER."""


@attrs.frozen
class StoredAcl:
    """One ACL: whether a principal may perform an operation on the resources of a pattern."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType

    def covers(self, resource_type: ResourceType, name: str) -> bool:
        """Return whether the ACL is about this resource."""
        if self.resource_type is not resource_type:
            return False
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, ANYTHING)


@attrs.frozen
class AclFilter:
    """A filter of ACLs; None, and ANY, match everything."""

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission_type: AclPermissionType

    @property
    def is_unknown(self) -> bool:
        """Whether a code of the filter has no meaning."""
        codes = (self.resource_type, self.pattern_type, self.operation, self.permission_type)
        return any(code == 0 for code in codes)

    def matches(self, acl: StoredAcl) -> bool:
        """Return whether the filter finds an ACL."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (AclPermissionType.ANY, acl.permission_type)
        )

    def _matches_name(self, acl: StoredAcl) -> bool:
        if self.pattern_type is PatternType.MATCH:
            return self.resource_name is None or acl.covers(acl.resource_type, self.resource_name)
        is_type = self.pattern_type in (PatternType.ANY, acl.pattern_type)
        return is_type and self.resource_name in (None, acl.resource_name)
