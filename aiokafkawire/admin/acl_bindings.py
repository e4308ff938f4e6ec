"""ACLs: who may or may not do what to which resources (KIP-11, KIP-140), and filters that find ACLs."""

from typing import Final

import attrs

from ..argument_checks import check_text
from ..protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType

__all__ = ("AclBinding", "AclBindingFilter", "ResourcePattern")

_CLUSTER: Final = "kafka-cluster"


@attrs.frozen
class ResourcePattern:
    """The resources that an ACL protects, such as ``ResourcePattern.topic("orders")``.

    The name ``*`` means all resources of the type. A prefixed pattern means all whose names begin with its name
    (KIP-290, brokers since 2.0).
    """

    type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    @classmethod
    def topic(cls, name: str, *, prefixed: bool = False) -> "ResourcePattern":
        """Return the pattern of a topic, or of the topics with a prefix. Raises UsageError if the name is not valid."""
        return cls._named(ResourceType.TOPIC, name, prefixed)

    @classmethod
    def group(cls, group_id: str, *, prefixed: bool = False) -> "ResourcePattern":
        """Return the pattern of a group, of any protocol. Raises UsageError if the id is not valid."""
        return cls._named(ResourceType.GROUP, group_id, prefixed)

    @classmethod
    def cluster(cls) -> "ResourcePattern":
        """Return the pattern of the cluster."""
        return cls(ResourceType.CLUSTER, _CLUSTER)

    @classmethod
    def transactional_id(cls, name: str, *, prefixed: bool = False) -> "ResourcePattern":
        """Return the pattern of a transactional id. Raises UsageError if the id is not valid."""
        return cls._named(ResourceType.TRANSACTIONAL_ID, name, prefixed)

    @classmethod
    def delegation_token(cls, token_id: str, *, prefixed: bool = False) -> "ResourcePattern":
        """Return the pattern of a delegation token (KIP-48). Raises UsageError if the id is not valid."""
        return cls._named(ResourceType.DELEGATION_TOKEN, token_id, prefixed)

    @classmethod
    def user(cls, principal: str, *, prefixed: bool = False) -> "ResourcePattern":
        """Return the pattern of a user, such as "User:alice", for whom tokens are made (KIP-373, brokers since 3.3).

        Raises UsageError if the name is not valid.
        """
        return cls._named(ResourceType.USER, principal, prefixed)

    @classmethod
    def _named(cls, kind: ResourceType, name: str, prefixed: bool) -> "ResourcePattern":
        check_text("the name of a resource", name)
        return cls(kind, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL)

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        prefix = "prefix " if self.pattern_type is PatternType.PREFIXED else ""
        return f"{kind} {prefix}{self.name!r}"


@attrs.frozen
class AclBinding:
    """An ACL: a principal may, or may not, perform an operation on the resources of a pattern.

    ``AclBinding(ResourcePattern.topic("orders"), "User:alice", AclOperation.READ)`` lets alice read the topic.

    Args:
        pattern: the resources; literal or prefixed.
        principal: the type and the name of the principal, such as "User:alice"; "User:*" is everyone.
        operation: what it may do; not ANY.
        permission_type: ALLOW or DENY; a denial wins over all permissions.
        host: the IP address from which it may do so; "*" is any.
    """

    pattern: ResourcePattern
    principal: str
    operation: AclOperation
    permission_type: AclPermissionType = AclPermissionType.ALLOW
    host: str = "*"

    def to_filter(self) -> "AclBindingFilter":
        """Return the filter that finds this ACL alone."""
        return AclBindingFilter(
            resource_type=self.pattern.type,
            resource_name=self.pattern.name,
            pattern_type=self.pattern.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission_type,
        )

    def __str__(self) -> str:
        what = f"{self.permission_type.name} {self.principal} {self.operation.name} on {self.pattern}"
        return what if self.host == "*" else f"{what} from {self.host}"


@attrs.frozen(kw_only=True)
class AclBindingFilter:
    """A filter of ACLs: it finds those that match every field; without arguments, all.

    Attributes:
        resource_type: the type of the resources, or ANY.
        resource_name: the name in the pattern, or None for any. With MATCH as ``pattern_type`` the name of a resource:
            the filter then finds the ACLs that cover it, with the name itself, a prefix of it, or ``*``.
        pattern_type: LITERAL or PREFIXED, ANY for both, or MATCH.
        principal: the principal, such as "User:alice", or None for any. "User:*" finds only ACLs for everyone.
        host: the host in the ACL, or None for any. "*" finds only ACLs for all hosts.
        operation: the operation in the ACL, or ANY. ALL finds only ACLs for all operations.
        permission_type: ALLOW or DENY, or ANY for both.
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY

    def __str__(self) -> str:
        given = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(AclBindingFilter)
            if getattr(self, field.name) != field.default
        }
        words = [f"{name}={getattr(value, 'name', value)}" for name, value in given.items()]
        return f"ACLs with {', '.join(words)}" if words else "all ACLs"
