"""API keys, the headers of requests and responses, and the choice of a request's version."""

from collections.abc import Mapping
from enum import IntEnum

from ..errors import UnsupportedVersion
from .introduced_in import brought_by
from .primitives import Int16, Int32, String
from .schema import Message, Request, Response, Versions, field, message

__all__ = (
    "ApiKey",
    "RequestHeader",
    "ResponseHeader",
    "choose_version",
    "request_header_version",
    "response_header_version",
)


class ApiKey(IntEnum):
    """The number that identifies an API in request headers."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


@message(versions="0-2", flexible="2+")
class RequestHeader(Message):
    """The header of every request. Only ControlledShutdown v0 used version 0."""

    request_api_key: Int16 = field("0+")
    request_api_version: Int16 = field("0+")
    correlation_id: Int32 = field("0+")
    # A plain string in every version, so that a broker can read the client id of an unsupported request (KIP-511).
    client_id: String | None = field("1+", nullable="1+", default="", ignorable=True, flexible="none")


@message(versions="0-1", flexible="1+")
class ResponseHeader(Message):
    """The header of every response."""

    correlation_id: Int32 = field("0+")


def request_header_version(request: type[Request[Response]], version: int) -> int:
    """Return the version of RequestHeader for ``request`` in ``version``."""
    if request.api_key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if version in request.flexible else 1


def response_header_version(request: type[Request[Response]], version: int) -> int:
    """Return the version of ResponseHeader for the response to ``request`` in ``version``."""
    # A client that requests ApiVersions does not know yet whether the broker supports flexible headers (KIP-511).
    if request.api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if version in request.flexible else 0


def choose_version(
    request: type[Request[Response]], spoken: Mapping[int, Versions], wanted: Versions, where: str = "the broker"
) -> int:
    """Return the newest version of ``request`` in the range ``wanted`` that both client and broker support.

    ``spoken`` maps API keys to the versions that the broker advertised; ``where`` names the broker in errors.

    Raises:
        UnsupportedVersion: there is no such version; the message lists the versions of each side.
    """
    name = request.__name__.removesuffix("Request")
    theirs = spoken.get(request.api_key)
    if theirs is None:
        since = brought_by(request.api_key)
        came = f", which came with Kafka {since}" if since is not None else ""
        raise UnsupportedVersion(f"{where} does not know the request {name} (API key {int(request.api_key)}){came}")
    first = max(request.stable.first, theirs.first, wanted.first)
    last = min(request.stable.last, theirs.last, wanted.last)
    if first > last:
        ours = Versions(max(request.stable.first, wanted.first), min(request.stable.last, wanted.last))
        needed = f"this request needs one of {ours}"
        if ours.last < ours.first:
            needed = f"this client has {request.stable} of the wanted {wanted}"
        raise UnsupportedVersion(f"{where} speaks {name} {theirs}, and {needed}")
    return last
