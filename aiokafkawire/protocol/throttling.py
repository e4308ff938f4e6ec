"""Which responses make a client wait before its next request on the connection (KIP-219)."""

from collections.abc import Mapping
from itertools import islice
from struct import Struct
from typing import Final

from .api import ApiKey
from .schema import Response, schema_of

__all__ = ("client_waits", "leading_throttle_ms")

_INT32: Final = Struct(">i")
_leads: Final[dict[tuple[type[Response], int], bool]] = {}
"""Whether the throttle time is the first field of a response, by its type and version."""

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


def client_waits(api_key: int, version: int) -> bool:
    """Return whether the client waits the throttle time of a response; in older versions the broker has waited."""
    return version >= _SINCE.get(api_key, 0)


def leading_throttle_ms(response: type[Response], version: int, frame: bytes, position: int) -> int:
    """Return the throttle time at the beginning of an encoded response, where most responses have it; otherwise 0.

    Args:
        response: the response's type.
        version: the response's version.
        frame: the received frame.
        position: where the response begins in it.
    """
    leads = _leads.get((response, version))
    if leads is None:
        present = (field for field in schema_of(response).fields if version in field.versions and field.tag is None)
        leads = _leads[response, version] = any(field.name == "throttle_time_ms" for field in islice(present, 1))
    if not leads or len(frame) - position < _INT32.size:
        return 0
    (found,) = _INT32.unpack_from(frame, position)
    return int(found)
