"""References to objects: the value and the header that a record has instead of a large value, and the objects' keys."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import attrs

from ..argument_checks import INT64, is_integer
from ..errors import ClaimCheckError, ClaimCheckObjectDamaged, ClaimCheckObjectGone
from ..types import Header

__all__ = (
    "HEADER",
    "MAX_EXPIRES_MS",
    "ObjectReference",
    "check_object",
    "decode_reference",
    "encode_reference",
    "expired_folder",
    "expires_ms_of",
    "gone_error",
    "has_reference",
    "object_key",
    "without_reference",
)

HEADER: Final = "aiokafkawire.claim-check"
"""The name of the header of records whose value is a reference; the header's value is the version of the format."""
_VERSION: Final = b"1"
_KEEP: Final = "keep"
"""The folder of the objects that do not expire."""
MAX_EXPIRES_MS: Final = 253_402_300_799_000
"""The last time that a key can have: the end of the year 9999."""
_KEY: Final = re.compile(
    r"(?!\.{1,2}/)[a-zA-Z0-9._-]{1,249}/(?:keep/[0-9a-f]{32}|[0-9]{4}-[0-9]{2}-[0-9]{2}/([0-9]{1,15})-[0-9a-f]{32})"
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@attrs.frozen
class ObjectReference:
    """An object in the store, and the value that it must have."""

    key: str
    """The object's key, as :func:`object_key` makes it."""
    size: int
    """The number of bytes."""
    sha256: str
    """The SHA-256 of the bytes, in hexadecimal digits."""
    expires_ms: int | None
    """When the object expires, in ms since the epoch; None if it never does."""


def object_key(topic: str, expires_ms: int | None, identity: str) -> str:
    """Return the key of an object: the topic, the day of its expiry, and its expiry with 32 hexadecimal digits."""
    if expires_ms is None:
        return f"{topic}/{_KEEP}/{identity}"
    return f"{topic}/{_time(expires_ms):%Y-%m-%d}/{expires_ms}-{identity}"


def expires_ms_of(key: str) -> int | None:
    """Return when the object of a key expires; None if it never does, or if no serializer has made the key."""
    found = _KEY.fullmatch(key)
    return int(found[1]) if found is not None and found[1] is not None else None


def expired_folder(folder: str, now_ms: int) -> bool:
    """Return whether a folder of a topic may have expired objects."""
    return folder != _KEEP and folder <= f"{_time(now_ms):%Y-%m-%d}"


def has_reference(headers: Iterable[Header]) -> bool:
    """Return whether the value of the record with these headers is a reference.

    Raises:
        ClaimCheckError: it is one in another format.
    """
    for name, value in headers:
        if name == HEADER:
            if value != _VERSION:
                raise ClaimCheckError(
                    f"the record's reference to its value has version {value!r:.50}, and this release reads version "
                    f"{_VERSION!r}: use the release that has written the record"
                )
            return True
    return False


def without_reference(headers: Iterable[Header]) -> list[Header]:
    """Return the headers without that of a reference, which a record may have from the record that it was made of."""
    return [(name, value) for name, value in headers if name != HEADER]


def encode_reference(reference: ObjectReference) -> tuple[bytes, Header]:
    """Return the value and the header of a record."""
    fields = attrs.asdict(reference)
    fields["expires"] = fields.pop("expires_ms")
    return json.dumps(fields, separators=(",", ":")).encode(), (HEADER, _VERSION)


def decode_reference(data: bytes) -> ObjectReference:
    """Return the reference that is a record's value.

    Raises:
        ClaimCheckError: the value is no reference.
    """
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        key, size, digest, expires = fields.get("key"), fields.get("size"), fields.get("sha256"), fields.get("expires")
        if (
            isinstance(key, str)
            and _KEY.fullmatch(key)
            and isinstance(size, int)
            and is_integer(size, 0, INT64)
            and isinstance(digest, str)
            and _SHA256.fullmatch(digest)
            and (expires is None or is_integer(expires, 0, MAX_EXPIRES_MS))
        ):
            return ObjectReference(key, size, digest, expires)
    raise ClaimCheckError(
        f"the record has the header {HEADER}, but its value is no reference to an object: {data!r:.200}"
    )


def check_object(reference: ObjectReference, data: bytes) -> None:
    """Check that the bytes of an object are those that were written.

    Raises:
        ClaimCheckObjectDamaged: they are not.
    """
    if len(data) != reference.size:
        size = len(data) if len(data) < reference.size else f"more than {reference.size}"
        found = f"it has {size} bytes instead of {reference.size}"
    elif sha256(data).hexdigest() != reference.sha256:
        found = "its SHA-256 is another one"
    else:
        return
    raise ClaimCheckObjectDamaged(
        f"the object {reference.key} is not what the producer wrote: {found}", reference.key, reference.expires_ms
    )


def gone_error(reference: ObjectReference, now_ms: int) -> ClaimCheckObjectGone:
    """Return the error for an object that is not in the store."""
    expires = reference.expires_ms
    if expires is not None and expires <= now_ms:
        why = f"it expired at {_text(expires)}; read records sooner, or let objects expire later (expires_after)"
    else:
        until = "never expires" if expires is None else f"expires only at {_text(expires)}"
        why = f"it {until}, so another program has deleted it, or the producer uses another store"
    return ClaimCheckObjectGone(f"the object {reference.key} is gone: {why}", reference.key, expires)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 1000, UTC)


def _text(ms: int) -> str:
    return f"{_time(ms):%Y-%m-%d %H:%M:%S} UTC"
