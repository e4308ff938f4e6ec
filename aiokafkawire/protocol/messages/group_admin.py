"""Listing, describing and deleting groups."""

from ..api import ApiKey
from ..primitives import Array, Bool, Bytes, Int16, Int32, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "DeletableGroupResult",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribedGroup",
    "DescribedGroupMember",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
)


@nested
class ListedGroup:
    """DOC(ListGroupsResponse.Groups)."""

    group_id: String = field("0+")
    protocol_type: String = field("0+")
    group_state: String = field("4+", default="", ignorable=True)
    group_type: String = field("5+", default="", ignorable=True)


@message(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    groups: Array[ListedGroup] = field("0+")


@message(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsRequest(Request[ListGroupsResponse]):
    """DOC."""

    states_filter: Array[String] = field("4+", default=list)
    types_filter: Array[String] = field("5+", default=list)


@nested
class DescribedGroupMember:
    """DOC(DescribeGroupsResponse.Members)."""

    member_id: String = field("0+")
    group_instance_id: String | None = field("4+", nullable="4+", default=None, ignorable=True)
    client_id: String = field("0+")
    client_host: String = field("0+")
    member_metadata: Bytes = field("0+")
    member_assignment: Bytes = field("0+")


@nested
class DescribedGroup:
    """DOC(DescribeGroupsResponse.Groups)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("6+", nullable="6+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")
    protocol_type: String = field("0+")
    protocol_data: String = field("0+")
    members: Array[DescribedGroupMember] = field("0+")
    authorized_operations: Int32 = field("3+", default=-(2**31))


@message(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    groups: Array[DescribedGroup] = field("0+")


@message(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Request[DescribeGroupsResponse]):
    """DOC."""

    groups: Array[String] = field("0+")
    include_authorized_operations: Bool = field("3+", default=False)


@nested
class DeletableGroupResult:
    """DOC(DeleteGroupsResponse.Results)."""

    group_id: String = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("3+", nullable="3+", default=None, ignorable=True)


@message(ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+")
class DeleteGroupsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[DeletableGroupResult] = field("0+")


@message(ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+")
class DeleteGroupsRequest(Request[DeleteGroupsResponse]):
    """DOC."""

    groups_names: Array[String] = field("0+")
