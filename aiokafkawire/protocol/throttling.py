"""Which responses make a client wait before its next request on the connection (KIP-219)."""

from collections.abc import Mapping
from itertools import islice
from struct import Struct
from typing import Final

from .api import ApiKey
from .schema import Response, schema_of

__all__ = ("client_waits", "leading_throttle_ms", "throttle_leads", "throttle_seconds")

_MOST_MS: Final = 3_600_000
"""The longest time that a client waits. No quota asks for that much; the largest number would be 25 days."""

_INT32: Final = Struct(">i")

_SINCE: Final[Mapping[int, int]] = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.DELETE_RECORDS: 1,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.ADD_OFFSETS_TO_TXN: 1,
    ApiKey.END_TXN: 1,
    ApiKey.TXN_OFFSET_COMMIT: 1,
    ApiKey.DESCRIBE_ACLS: 1,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 2,
    ApiKey.ALTER_CONFIGS: 1,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    ApiKey.CREATE_PARTITIONS: 1,
    ApiKey.CREATE_DELEGATION_TOKEN: 1,
    ApiKey.RENEW_DELEGATION_TOKEN: 1,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 1,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKey.DELETE_GROUPS: 1,
}
"""The first version of each API of Kafka 1.1 and older whose throttle time the client waits.

Before a response in an older version, the broker has waited. Newer APIs let the client wait in all versions.
"""


def throttle_seconds(response: Response) -> float:
    """Return the throttle time of a response in seconds, an hour at most; 0 if there is none."""
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    return min(max(0, throttle_ms), _MOST_MS) / 1000


def client_waits(api_key: int, version: int) -> bool:
    """Return whether the client waits the throttle time of a response; in older versions the broker has waited."""
    return version >= _SINCE.get(api_key, 0)


def throttle_leads(response: type[Response], version: int) -> bool:
    """Return whether the throttle time is the first field of a response in this version, as in most."""
    present = (field for field in schema_of(response).fields if version in field.versions and field.tag is None)
    return any(field.name == "throttle_time_ms" for field in islice(present, 1))


def leading_throttle_ms(frame: bytes, position: int) -> int:
    """Return the throttle time that an encoded response begins with, at ``position`` of the received frame."""
    return int(_INT32.unpack_from(frame, position)[0]) if len(frame) - position >= _INT32.size else 0
