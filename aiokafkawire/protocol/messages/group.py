"""Groups and their coordinators."""

from ..api import ApiKey
from ..primitives import Array, Int8, Int16, Int32, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "Coordinator",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
)


@nested
class Coordinator:
    """The broker that coordinates one key."""

    key: String = field("4+")
    node_id: Int32 = field("4+")
    host: String = field("4+")
    port: Int32 = field("4+")
    error_code: Int16 = field("4+")
    error_message: String | None = field("4+", nullable="4+", ignorable=True)


@message(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Response):
    """The coordinator, or with v4+ one for each key."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0-3", default=0)
    error_message: String | None = field("1-3", nullable="1-3", default="", ignorable=True)
    node_id: Int32 = field("0-3", default=0)
    host: String = field("0-3", default="")
    port: Int32 = field("0-3", default=0)
    coordinators: Array[Coordinator] = field("4+", default=list)


@message(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorRequest(Request[FindCoordinatorResponse]):
    """Which broker coordinates this group or transactional id? v4+ asks for several at once (KIP-699)."""

    key: String = field("0-3", default="")
    key_type: Int8 = field("1+", default=0)  # 0: group; 1: transaction; 2: share group (KIP-932)
    coordinator_keys: Array[String] = field("4+", default=list)
