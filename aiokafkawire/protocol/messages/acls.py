"""Who may do what (KIP-11, KIP-140).

Any broker takes these requests; one without an authorizer answers SECURITY_DISABLED. Before v1 every name is a literal
one. Brokers of 4.0 and later serve v1 and up. The codes:

- resource types: 0: unknown; 1: any; 2: topic; 3: group; 4: cluster; 5: transactional id; 6: delegation token (KIP-48);
  7: user (v3+, KIP-373)
- pattern types (v1+, KIP-290): 0: unknown; 1: any; 2: match, which is every pattern that covers the name; 3: literal,
  where the name * is every resource; 4: prefixed
- operations: 0: unknown; 1: any; 2: all; 3: read; 4: write; 5: create; 6: delete; 7: alter; 8: describe;
  9: cluster action; 10: describe configs; 11: alter configs; 12: idempotent write; 13: create tokens and
  14: describe tokens (KIP-373); 15: two-phase commit (KIP-939)
- permission types: 0: unknown; 1: any; 2: deny; 3: allow

"Any" and "match" are for filters alone; "unknown" is never sent.
"""

from ..api import ApiKey
from ..primitives import Array, Int8, Int16, Int32, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AclCreation",
    "AclCreationResult",
    "AclDescription",
    "CreateAclsRequest",
    "CreateAclsResponse",
    "DeleteAclsFilter",
    "DeleteAclsFilterResult",
    "DeleteAclsMatchingAcl",
    "DeleteAclsRequest",
    "DeleteAclsResponse",
    "DescribeAclsRequest",
    "DescribeAclsResource",
    "DescribeAclsResponse",
)


@nested
class AclDescription:
    """One ACL of a resource: who, from where, may or may not do what."""

    principal: String = field("0+")  # with its type, as User:alice; User:* is everyone
    host: String = field("0+")  # an IP address; * is any
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@nested
class DescribeAclsResource:
    """A resource, or the pattern that covers several, and its ACLs."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    pattern_type: Int8 = field("1+", default=3)  # KIP-290
    acls: Array[AclDescription] = field("0+")


@message(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsResponse(Response):
    """The ACLs that match the filter, by resource."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    resources: Array[DescribeAclsResource] = field("0+")


@message(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsRequest(Request[DescribeAclsResponse]):
    """Which ACLs are there? Those that match every field; a null name, principal or host matches all."""

    resource_type_filter: Int8 = field("0+")
    resource_name_filter: String | None = field("0+", nullable="0+")
    pattern_type_filter: Int8 = field("1+", default=3)  # KIP-290
    principal_filter: String | None = field("0+", nullable="0+")
    host_filter: String | None = field("0+", nullable="0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@nested
class AclCreationResult:
    """Whether one ACL was created; its place in the list tells which."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsResponse(Response):
    """How each creation went, in the request's order."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[AclCreationResult] = field("0+")


@nested
class AclCreation:
    """One ACL to create; its pattern is literal or prefixed."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    resource_pattern_type: Int8 = field("1+", default=3)  # KIP-290
    principal: String = field("0+")  # with its type, as User:alice; User:* is everyone
    host: String = field("0+")  # an IP address; * is any
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@message(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsRequest(Request[CreateAclsResponse]):
    """ACLs to create; one that exists already counts as created."""

    creations: Array[AclCreation] = field("0+")


@nested
class DeleteAclsMatchingAcl:
    """An ACL that the filter matched, and whether it was deleted."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    pattern_type: Int8 = field("1+", default=3)  # KIP-290
    principal: String = field("0+")  # with its type, as User:alice; User:* is everyone
    host: String = field("0+")  # an IP address; * is any
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@nested
class DeleteAclsFilterResult:
    """What one filter matched, or why the filter was refused; its place in the list tells which."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    matching_acls: Array[DeleteAclsMatchingAcl] = field("0+")


@message(ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsResponse(Response):
    """What each filter matched, in the request's order."""

    throttle_time_ms: Int32 = field("0+", default=0)
    filter_results: Array[DeleteAclsFilterResult] = field("0+")


@nested
class DeleteAclsFilter:
    """The ACLs that match every field; a null name, principal or host matches all."""

    resource_type_filter: Int8 = field("0+")
    resource_name_filter: String | None = field("0+", nullable="0+")
    pattern_type_filter: Int8 = field("1+", default=3)  # KIP-290
    principal_filter: String | None = field("0+", nullable="0+")
    host_filter: String | None = field("0+", nullable="0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@message(ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsRequest(Request[DeleteAclsResponse]):
    """ACLs to delete, by filters that work as those of DescribeAcls."""

    filters: Array[DeleteAclsFilter] = field("0+")
