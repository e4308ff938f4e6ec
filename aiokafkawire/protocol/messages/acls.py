"""Who may do what (KIP-11, KIP-140)."""

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
    """DOC(DescribeAclsResponse.Acls)."""

    principal: String = field("0+")
    host: String = field("0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@nested
class DescribeAclsResource:
    """DOC(DescribeAclsResponse.Resources)."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    pattern_type: Int8 = field("1+", default=3)
    acls: Array[AclDescription] = field("0+")


@message(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    resources: Array[DescribeAclsResource] = field("0+")


@message(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsRequest(Request[DescribeAclsResponse]):
    """DOC."""

    resource_type_filter: Int8 = field("0+")
    resource_name_filter: String | None = field("0+", nullable="0+")
    pattern_type_filter: Int8 = field("1+", default=3)
    principal_filter: String | None = field("0+", nullable="0+")
    host_filter: String | None = field("0+", nullable="0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@nested
class AclCreationResult:
    """DOC(CreateAclsResponse.Results)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[AclCreationResult] = field("0+")


@nested
class AclCreation:
    """DOC(CreateAclsRequest.Creations)."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    resource_pattern_type: Int8 = field("1+", default=3)
    principal: String = field("0+")
    host: String = field("0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@message(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsRequest(Request[CreateAclsResponse]):
    """DOC."""

    creations: Array[AclCreation] = field("0+")


@nested
class DeleteAclsMatchingAcl:
    """DOC(DeleteAclsResponse.MatchingAcls)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    pattern_type: Int8 = field("1+", default=3)
    principal: String = field("0+")
    host: String = field("0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@nested
class DeleteAclsFilterResult:
    """DOC(DeleteAclsResponse.FilterResults)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    matching_acls: Array[DeleteAclsMatchingAcl] = field("0+")


@message(ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    filter_results: Array[DeleteAclsFilterResult] = field("0+")


@nested
class DeleteAclsFilter:
    """DOC(DeleteAclsRequest.Filters)."""

    resource_type_filter: Int8 = field("0+")
    resource_name_filter: String | None = field("0+", nullable="0+")
    pattern_type_filter: Int8 = field("1+", default=3)
    principal_filter: String | None = field("0+", nullable="0+")
    host_filter: String | None = field("0+", nullable="0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


@message(ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsRequest(Request[DeleteAclsResponse]):
    """DOC."""

    filters: Array[DeleteAclsFilter] = field("0+")
