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
    """A group, of any type."""

    group_id: String = field("0+")
    # such as "consumer" or "connect"; empty if the group only keeps offsets
    protocol_type: String = field("0+")
    group_state: String = field("4+", default="", ignorable=True)  # KIP-518; such as "Stable" or "Empty"
    # KIP-848: "classic", "consumer", "share" or "streams"
    group_type: String = field("5+", default="", ignorable=True)


@message(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsResponse(Response):
    """The groups that this broker coordinates."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    groups: Array[ListedGroup] = field("0+")


@message(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsRequest(Request[ListGroupsResponse]):
    """Which groups does this broker coordinate (KIP-40)? All brokers together know all groups."""

    states_filter: Array[String] = field("4+", default=list)  # KIP-518; an empty list lets all states pass
    types_filter: Array[String] = field("5+", default=list)  # KIP-848; an empty list lets all types pass


@nested
class DescribedGroupMember:
    """A member of a classic group; metadata and assignment are empty unless the group is stable."""

    member_id: String = field("0+")
    group_instance_id: String | None = field("4+", nullable="4+", default=None, ignorable=True)  # KIP-345
    client_id: String = field("0+")
    client_host: String = field("0+")
    member_metadata: Bytes = field("0+")  # of consumers: a ConsumerProtocolSubscription
    member_assignment: Bytes = field("0+")  # of consumers: a ConsumerProtocolAssignment


@nested
class DescribedGroup:
    """A classic group and its members.

    A group that is not there, or not classic, is "Dead"; v6+ gives it the error GROUP_ID_NOT_FOUND, too (KIP-1043).
    """

    error_code: Int16 = field("0+")
    error_message: String | None = field("6+", nullable="6+", default=None)  # KIP-1043
    group_id: String = field("0+")
    # "PreparingRebalance", "CompletingRebalance", "Stable", "Empty" or "Dead"
    group_state: String = field("0+")
    protocol_type: String = field("0+")
    protocol_data: String = field("0+")  # which of the members' protocols was chosen; empty unless the group is stable
    members: Array[DescribedGroupMember] = field("0+")
    # KIP-430: bit n stands for the ACL operation n; -2**31: not asked for
    authorized_operations: Int32 = field("3+", default=-(2**31))


@message(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Response):
    """What each of the groups is like."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    groups: Array[DescribedGroup] = field("0+")


@message(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Request[DescribeGroupsResponse]):
    """What are these classic groups like (KIP-40)? Their coordinator is to be asked.

    Groups of other types have requests of their own, such as ConsumerGroupDescribe.
    """

    groups: Array[String] = field("0+")
    include_authorized_operations: Bool = field("3+", default=False)  # KIP-430


@nested
class DeletableGroupResult:
    """Whether one group is gone; NON_EMPTY_GROUP: it still has members."""

    group_id: String = field("0+")
    error_code: Int16 = field("0+")  # v3+: also GROUP_DELETION_FAILED (KIP-1331)
    error_message: String | None = field("3+", nullable="3+", default=None, ignorable=True)  # KIP-1331


@message(ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+")
class DeleteGroupsResponse(Response):
    """How each deletion went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[DeletableGroupResult] = field("0+")


@message(ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+")
class DeleteGroupsRequest(Request[DeleteGroupsResponse]):
    """Groups without members, to delete with their offsets (KIP-229); their coordinator is to be asked."""

    groups_names: Array[String] = field("0+")
