"""Names for numbers: error codes, enumerations, bits, times."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from ...error_codes import ErrorCode
from ...errors import UnknownBrokerError, broker_error
from ...records.compression import Codec
from .apis import name_of_key

__all__ = ("iso_time", "meaning_of")

_CONFIG_SOURCES: Final = {
    0: "UNKNOWN",
    1: "TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "CLIENT_METRICS_CONFIG",
    8: "GROUP_CONFIG",
}
_PATTERNS: Final = {0: "UNKNOWN", 1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
_OPERATIONS: Final = {
    0: "UNKNOWN",
    1: "ANY",
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
_ACL_RESOURCES: Final = {
    0: "UNKNOWN",
    1: "ANY",
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
_CONFIG_RESOURCES: Final = {
    0: "UNKNOWN",
    2: "TOPIC",
    4: "BROKER",
    8: "BROKER_LOGGER",
    16: "CLIENT_METRICS",
    32: "GROUP",
}
_CODECS: Final = {int(codec): codec.name.lower() for codec in Codec}

_BY_FIELD: Final[Mapping[str, Mapping[int, str]]] = {
    "acks": {-1: "all in-sync replicas", 0: "no response", 1: "the leader alone"},
    "isolation_level": {0: "read_uncommitted", 1: "read_committed"},
    "key_type": {0: "group", 1: "transaction", 2: "share group"},
    "endpoint_type": {1: "brokers", 2: "controllers"},
    "election_type": {0: "PREFERRED", 1: "UNCLEAN"},
    "leader_recovery_state": {0: "RECOVERED", 1: "RECOVERING"},
    "match_type": {0: "this name", 1: "the default", 2: "any name"},
    "mechanism": {0: "UNKNOWN", 1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"},
    "security_protocol": {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"},
    "upgrade_type": {1: "upgrade only", 2: "safe downgrade", 3: "unsafe downgrade"},
    "config_operation": {0: "SET", 1: "DELETE", 2: "APPEND", 3: "SUBTRACT"},
    "config_source": _CONFIG_SOURCES,
    "source": _CONFIG_SOURCES,
    "config_type": dict(
        enumerate(("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"))
    ),
    "operation": _OPERATIONS,
    "permission_type": {0: "UNKNOWN", 1: "ANY", 2: "DENY", 3: "ALLOW"},
    "pattern_type": _PATTERNS,
    "pattern_type_filter": _PATTERNS,
    "resource_pattern_type": _PATTERNS,
    "resource_type_filter": _ACL_RESOURCES,
    "resource_types": _CONFIG_RESOURCES,
    "compression_type": _CODECS,
    "accepted_compression_types": _CODECS,
    "acknowledge_types": {0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"},
    "delivery_state": {0: "available", 2: "acknowledged", 4: "archived"},
}

_BY_PLACE: Final[Mapping[tuple[str, str], Mapping[int, str]]] = {
    ("ListOffsetsPartition", "timestamp"): {
        -1: "latest",
        -2: "earliest",
        -3: "that of the largest timestamp",
        -4: "earliest on the broker's own disk",
        -5: "latest in tiered storage",
        -6: "earliest that waits for tiered storage",
    },
    ("FetchRequest", "replica_id"): {-1: "a consumer"},
    ("ListOffsetsRequest", "replica_id"): {-1: "a consumer"},
    ("FetchRequest", "session_epoch"): {-1: "a full fetch, no session", 0: "a full fetch that begins a session"},
    ("ControlRecordTypeSchema", "type"): {
        0: "ABORT",
        1: "COMMIT",
        2: "LEADER_CHANGE",
        3: "SNAPSHOT_HEADER",
        4: "SNAPSHOT_FOOTER",
        5: "KRAFT_VERSION",
        6: "KRAFT_VOTERS",
    },
}

_NOT_REQUESTED: Final = -(2**31)
_TIMES: Final = ("timestamp", "timestamp_ms", "log_append_time_ms", "transaction_start_time_ms")


def meaning_of(struct: str, field: str, value: object) -> str:
    """Return the meaning of a field's value; empty if none is known."""
    if field.endswith("error_code") and isinstance(value, int):
        return _error(value)
    if field in ("api_key", "request_api_key") and isinstance(value, int):
        return name_of_key(value) or "unknown API"
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    table = _BY_PLACE.get((struct, field)) or _BY_FIELD.get(field)
    if field == "resource_type":
        table = _ACL_RESOURCES if "Acl" in struct else _CONFIG_RESOURCES
    if table is not None and value in table:
        return table[value]
    if field.endswith("authorized_operations"):
        return _operations(value)
    return iso_time(value) if field.endswith(_TIMES) and value > 0 else ""


def iso_time(milliseconds: int) -> str:
    """Return a time in ms since the epoch as ISO 8601 in UTC; empty if it is out of range."""
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return ""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _error(code: int) -> str:
    if code == ErrorCode.NONE:
        return "NONE"
    error = broker_error(code)
    return "unknown code" if isinstance(error, UnknownBrokerError) else " ".join(str(error).split())


def _operations(bits: int) -> str:
    if bits == _NOT_REQUESTED:
        return "not requested"
    names = [name for bit, name in _OPERATIONS.items() if bits >> bit & 1]
    return ", ".join(names) or "none"
