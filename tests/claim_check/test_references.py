"""References: what a record has instead of a large value, and which objects have expired."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from aiokafkawire.claim_check.references import (
    HEADER,
    MAX_EXPIRES_MS,
    ObjectReference,
    check_object,
    decode_reference,
    encode_reference,
    expired_folder,
    expires_ms_of,
    gone_error,
    has_reference,
    object_key,
    without_reference,
)
from aiokafkawire.errors import ClaimCheckError, ClaimCheckObjectDamaged

HEX = "0123456789abcdef" * 2
NOON = 1_796_126_400_000  # 2026-12-01 12:00:00 UTC
DIGEST = sha256(b"data").hexdigest()
KEPT = ObjectReference(object_key("orders", None, HEX), 4, DIGEST, None)
EXPIRING = ObjectReference(object_key("orders", NOON, HEX), 4, DIGEST, NOON)


def test_keys_name_the_topic_and_the_expiry() -> None:
    assert KEPT.key == f"orders/keep/{HEX}"
    assert EXPIRING.key == f"orders/2026-12-01/{NOON}-{HEX}"
    assert expires_ms_of(EXPIRING.key) == NOON
    assert [expires_ms_of(key) for key in (KEPT.key, "orders/2026-12-01/other", "", f"../{NOON}-{HEX}")] == [None] * 4
    assert expires_ms_of(object_key("t", MAX_EXPIRES_MS, HEX)) == MAX_EXPIRES_MS


@pytest.mark.parametrize(
    ("folder", "expired"), [("2026-11-30", True), ("2026-12-01", True), ("2026-12-02", False), ("keep", False)]
)
def test_folders_with_expired_objects(folder: str, expired: bool) -> None:
    assert expired_folder(folder, NOON) is expired


@pytest.mark.parametrize("reference", [KEPT, EXPIRING])
def test_a_reference_is_read_as_it_was_written(reference: ObjectReference) -> None:
    value, header = encode_reference(reference)
    assert decode_reference(value) == reference
    assert has_reference([("other", None), header])
    assert json.loads(value)["expires"] == reference.expires_ms


def test_headers_without_a_reference() -> None:
    assert not has_reference([("other", b"1")])
    assert without_reference([("a", b"1"), (HEADER, b"1"), ("b", None), (HEADER, b"2")]) == [("a", b"1"), ("b", None)]


@pytest.mark.parametrize("version", [None, b"", b"2"])
def test_a_reference_in_another_format(version: bytes | None) -> None:
    with pytest.raises(ClaimCheckError, match=r"version .*, and this release reads version b'1'"):
        has_reference([(HEADER, version)])


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(encode_reference(KEPT)[0]) | fields).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"not JSON",
        b"[]",
        b"{}",
        b"[" * 100_000,
        changed(key=None),
        changed(key="../../etc/passwd"),
        changed(key=f"../keep/{HEX}"),
        changed(key=f"./keep/{HEX}"),
        changed(key=f"a/b/keep/{HEX}"),
        changed(key=f"orders/keep/{HEX}\n"),
        changed(size=-1),
        changed(size="4"),
        changed(size=True),
        changed(size=2**70),
        changed(sha256="ab"),
        changed(sha256=None),
        changed(expires="later"),
        changed(expires=-1),
        changed(expires=10**30),
    ],
)
def test_a_value_that_is_no_reference(data: bytes) -> None:
    with pytest.raises(ClaimCheckError, match="its value is no reference to an object") as caught:
        decode_reference(data)
    assert caught.value.key is None
    assert len(str(caught.value)) < 400


def test_an_object_that_is_not_what_was_written() -> None:
    check_object(KEPT, b"data")
    for data, found in [
        (b"dat", "it has 3 bytes instead of 4"),
        (b"data+", "it has more than 4 bytes instead of 4"),
        (b"date", "its SHA-256 is another one"),
    ]:
        with pytest.raises(ClaimCheckObjectDamaged, match=found) as caught:
            check_object(EXPIRING, data)
        assert (caught.value.key, caught.value.expires_ms) == (EXPIRING.key, NOON)


def test_why_an_object_is_gone() -> None:
    error = gone_error(EXPIRING, NOON)
    assert "is gone: it expired at 2026-12-01 12:00:00 UTC; read records sooner" in str(error)
    assert (error.key, error.expires_ms) == (EXPIRING.key, NOON)
    error = gone_error(EXPIRING, NOON - 1)
    assert "it expires only at 2026-12-01 12:00:00 UTC, so another program has deleted it" in str(error)
    assert "it never expires, so another program has deleted it" in str(gone_error(KEPT, NOON))
