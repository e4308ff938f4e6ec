"""Error responses to any request in any version, built from the message schemas.

An array of results gets one result for each element of the request's array, with the same name, index or id. The error
code is set in the fields that the API has for it. Other fields have the request's value if it has one, else they are
empty, 0 or -1.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID

import attrs

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ...protocol.primitives import ZERO_UUID, WireType
from ...protocol.schema import FieldSchema, Request, Response, schema_of

__all__ = ("OF_A_SESSION", "OF_PARTITIONS", "ErrorField", "blame", "error_places", "merge", "refusal")

_OTHER_CODES: Final = ("topic_config_error_code", "acknowledge_error_code")
"""Fields for error codes of a detail of the response, not of the request; injected errors leave them unset."""

_SAME: Final = {
    "topic": "name", "topic_name": "name", "user": "name", "entity_name": "entity",
    "index": "partition", "partition_index": "partition", "partition_id": "partition",
}  # fmt: skip
"""The common name of fields that have one meaning under several names."""

_IDENTITY: Final = frozenset(
    """name topic_id partition group_id transactional_id producer_id key member_id group_instance_id feature id entity
    entity_type resource_type resource_name""".split()  # noqa: SIM905  # a list of strings would take one line each
)
"""The fields, by their common names, that identify the elements of an array."""

_NO_NODE: Final = ("node_id", "port")
"""The fields of a coordinator that are -1 in a response with an error, whatever the fields' defaults are."""

OF_PARTITIONS: Final = frozenset(
    {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    }
)
"""Errors of a topic or partition, which a response has only in its innermost results."""

OF_A_SESSION: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a fetch session, which apply to the whole request (KIP-227)."""

_OF_THE_WHOLE: Final = {
    ApiKey.FETCH: OF_A_SESSION,
    ApiKey.METADATA: frozenset({ErrorCode.REBOOTSTRAP_REQUIRED}),  # KIP-1102
}
"""The only errors in the top-level code of these APIs; all other errors are in the innermost results."""


class ErrorField(NamedTuple):
    """A field for an error code in a response: its depth (0 at the top level), the struct that has it, and its name."""

    depth: int
    struct: Any
    field: str


def refusal(request: Request[Response], version: int, error: ErrorCode) -> Response:
    """Return a response with this error for every topic, partition, group or resource that the request names.

    If the request names none, and the API has no top-level error code, the response has one result without a name.
    """
    answer = _made(type(request).response, version, request, force=False)
    if not any(error_places(answer, version)):
        answer = _made(type(request).response, version, request, force=True)
    blame(answer, version, error)
    made: Response = answer
    return made


def error_places(answer: Any, version: int, depth: int = 0) -> Iterator[ErrorField]:
    """Yield the fields for error codes in ``answer``, a response, or a struct at this ``depth`` of a response."""
    for field in schema_of(type(answer)).fields:
        if version not in field.versions:
            continue
        if _is_error(field):
            yield ErrorField(depth, answer, field.name)
        elif field.array and isinstance(field.kind, type):
            for element in getattr(answer, field.name) or ():
                yield from error_places(element, version, depth + 1)


def blame(answer: Response, version: int, error: ErrorCode) -> None:
    """Set an error in the same fields of a response as Kafka's brokers do.

    An error of a topic or partition is set in the innermost results only, any other error in all fields for errors. In
    Fetch and Metadata, errors in ``_OF_THE_WHOLE`` are set at the top level only, all others in the innermost results.
    """
    places = list(error_places(answer, version))
    deepest = max((place.depth for place in places), default=0)
    whole = _OF_THE_WHOLE.get(ApiKey(answer.api_key))
    if whole is not None and error in whole and any(place.depth == 0 for place in places):
        places = [place for place in places if place.depth == 0]
    elif whole is not None or error in OF_PARTITIONS:
        places = [place for place in places if place.depth == deepest]
    for place in places:
        setattr(place.struct, place.field, int(error))


def merge(answer: Any, added: Any, version: int) -> None:
    """Add the results in ``added`` to ``answer``, where they replace results for the same topic, partition or group."""
    for field in schema_of(type(answer)).fields:
        if not _holds_errors(field, version):
            continue
        mine = list(getattr(answer, field.name) or ())
        setattr(answer, field.name, mine)
        for result in getattr(added, field.name) or ():
            twin = next((at for at, other in enumerate(mine) if _identity(other) == _identity(result)), None)
            if twin is None:
                mine.append(result)
            elif any(_holds_errors(inner, version) for inner in schema_of(type(result)).fields):
                merge(mine[twin], result, version)
            else:
                mine[twin] = result


def _is_error(field: FieldSchema) -> bool:
    return field.kind is WireType.INT16 and field.name.endswith("error_code") and field.name not in _OTHER_CODES


def _holds_errors(field: FieldSchema, version: int) -> bool:
    if not (field.array and isinstance(field.kind, type) and version in field.versions):
        return False
    fields = [inner for inner in schema_of(field.kind).fields if version in inner.versions]
    return any(_is_error(inner) or _holds_errors(inner, version) for inner in fields)


def _meaning(name: str) -> str:
    return _SAME.get(name, name)


def _identity(struct: Any) -> list[Any]:
    fields = schema_of(type(struct)).fields
    return [getattr(struct, field.name) for field in fields if _meaning(field.name) in _IDENTITY]


# --- construction -------------------------------------------------------------------------------------------------


def _made(cls: type[Any], version: int, source: Any, *, force: bool) -> Any:
    """Build a response, or a struct in one, of class ``cls`` for ``source``, which is a request or an element in one.

    Identifying and required fields are copied from ``source``, if it has them. With ``force``, no array of results is
    empty: if ``source`` has no elements for it, it gets one result without a name.
    """
    values: dict[str, Any] = {}
    theirs = _scalars(source, version)
    first = True
    for field in schema_of(cls).fields:
        if version not in field.versions:
            continue
        meaning = _meaning(field.name)
        if _is_error(field):
            values[field.name] = 0
        elif _holds_errors(field, version):
            values[field.name] = _mirrored(field, version, source, force=force)
        elif meaning in theirs and (meaning in _IDENTITY or field.default is attrs.NOTHING):
            kind, value = theirs[meaning]
            fits = kind is field.kind and (value is not None or version in field.nullable)
            values[field.name] = value if fits else _empty(field, version)
        elif field.array and _arrays(source).get(field.name) is field.kind:
            values[field.name] = list(getattr(source, field.name) or ())
        elif first and not attrs.has(type(source)) and _takes(field, source):
            values[field.name], first = source, False
        elif field.default is attrs.NOTHING or field.name in _NO_NODE:
            values[field.name] = _empty(field, version)
    return cls(**values)


def _scalars(source: Any, version: int) -> dict[str, tuple[Any, Any]]:
    """Return the wire type and value of each field of ``source``, except arrays, by the field's common name."""
    if not attrs.has(type(source)):
        return {}
    fields = [field for field in schema_of(type(source)).fields if version in field.versions]
    return {_meaning(field.name): (field.kind, getattr(source, field.name)) for field in fields if not field.array}


def _arrays(source: Any) -> dict[str, Any]:
    """Return the class of the structs in each array of ``source``, such as the parts of an entity that has quotas."""
    if not attrs.has(type(source)):
        return {}
    fields = schema_of(type(source)).fields
    return {field.name: field.kind for field in fields if field.array and isinstance(field.kind, type)}


def _takes(field: FieldSchema, value: Any) -> bool:
    """Return whether this field of a result is for ``value``, a string or number from an array in the request."""
    if field.name == "error_message":
        return False
    if isinstance(value, str):
        return field.kind is WireType.STRING and not field.array
    return isinstance(value, int) and _meaning(field.name) == "partition"


def _mirrored(field: FieldSchema, version: int, source: Any, *, force: bool) -> list[Any]:
    elements = list(_elements(field, version, source))
    made: dict[Any, Any] = {}
    for index, element in enumerate(elements):
        result = _made(field.kind, version, element, force=force)  # type: ignore[arg-type]  # only structs hold errors
        # A name that the request has twice gets one result.
        made.setdefault(repr(_identity(result)) if _identity(result) else index, result)
    if not made and force:
        return [_made(field.kind, version, None, force=True)]  # type: ignore[arg-type]
    return list(made.values())


def _elements(field: FieldSchema, version: int, source: Any) -> Iterator[Any]:
    """Yield the elements in ``source``, a part of the request, that have results in the response's array ``field``."""
    if not attrs.has(type(source)):
        return
    inner = [field for field in schema_of(field.kind).fields if version in field.versions]  # type: ignore[arg-type]
    known = {_meaning(result.name) for result in inner if not result.array} & _IDENTITY
    for theirs in schema_of(type(source)).fields:
        if not theirs.array or version not in theirs.versions or theirs.name.startswith("forgotten"):
            continue
        values = getattr(source, theirs.name) or ()
        if not isinstance(theirs.kind, type):
            named = {WireType.STRING: any(_takes(result, "") for result in inner), WireType.INT32: "partition" in known}
            if named.get(theirs.kind):
                yield from values
            continue
        meanings = {_meaning(part.name) for part in schema_of(theirs.kind).fields if not part.array}
        # Results without an identifying field are in the order of the request's elements.
        if meanings & known or not known:
            yield from values
        else:
            for value in values:
                yield from _elements(field, version, value)


def _empty(field: FieldSchema, version: int) -> Any:
    if version in field.nullable and field.kind is not WireType.RECORDS:
        return None
    if field.array:
        return []
    if isinstance(field.kind, type):
        return _made(field.kind, version, None, force=False)
    unknown = (
        -1 if any(word in field.name for word in ("id", "port", "epoch", "offset", "watermark", "timestamp")) else 0
    )
    empty: dict[WireType, bool | int | float | str | bytes | UUID] = {
        WireType.BOOL: False, WireType.UINT16: 0, WireType.FLOAT64: 0.0, WireType.UUID: ZERO_UUID, WireType.STRING: "",
        WireType.BYTES: b"", WireType.RECORDS: b"",
    }  # fmt: skip
    return empty.get(field.kind, unknown)
