"""Every declared message equals what Kafka's own Java classes write, byte for byte, both ways."""

import gzip
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.kafka_json import from_json, to_json
from support.rows import every_row
from support.vectors import DIRECTORY, OURS, declared_messages, vectors

from aiokafkawire.errors import UnsupportedVersion
from aiokafkawire.protocol.compiler import decode, encode

MESSAGES = declared_messages()

WHOLE = {"request": 4784, "response": 4784, "header": 65, "data": 234, "ignorable": 937}
"""How many vectors of each kind we keep: 13 for each version of a message; of `ignorable` one for each absent field."""


def grouped(*names: str) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The vectors by message and version."""
    found = defaultdict(list)
    for name in names:
        for vector in vectors(name):
            found[vector["name"], vector["version"]].append(vector)
    return found


VECTORS = grouped("request", "response", "header", "data")
ABSENT = grouped("ignorable")


@pytest.mark.parametrize("kind", WHOLE)
def test_no_vectors_are_lost(kind: str) -> None:
    count = sum(1 for _ in vectors(kind))
    assert count == WHOLE[kind] if DIRECTORY == OURS else count > 0


def test_every_version_of_every_message_has_vectors() -> None:
    declared = {
        (name, version)
        for name, cls in MESSAGES.items()
        for version in range(cls.versions.first, cls.versions.last + 1)
    }
    assert declared == set(VECTORS)


@pytest.mark.usefixtures("each_decoder")
@every_row(("name", "version"), sorted(VECTORS))
def test_bytes_decode_to_what_kafka_wrote(name: str, version: int) -> None:
    for vector in VECTORS[name, version]:
        message = decode(MESSAGES[name], version, bytes.fromhex(vector["hex"]))
        assert to_json(message, version) == vector["json"], vector["variant"]


@every_row(("name", "version"), sorted(VECTORS))
def test_messages_encode_to_kafkas_bytes(name: str, version: int) -> None:
    for vector in VECTORS[name, version]:
        message = from_json(MESSAGES[name], vector["json"])
        assert encode(message, version).hex() == vector["hex"], vector["variant"]


@every_row(("name", "version"), sorted(ABSENT))
def test_a_value_that_the_version_lacks_is_dropped_or_refused_as_kafka_does(name: str, version: int) -> None:
    for vector in ABSENT[name, version]:
        message = from_json(MESSAGES[name], vector["json"])
        if vector["outcome"] == "ok":
            assert encode(message, version).hex() == vector["hex"], vector["path"]
            # What was dropped does not come back: it has its default on the other side.
            received = decode(MESSAGES[name], version, bytes.fromhex(vector["hex"]))
            assert encode(received, version).hex() == vector["hex"], vector["path"]
            assert received != message, vector["path"]
        else:
            assert vector["outcome"] == "unsupported"
            with pytest.raises(UnsupportedVersion, match=f"this is {version}"):
                encode(message, version)


@pytest.mark.slow
def test_another_set_takes_the_place_of_ours(tmp_path: Path) -> None:
    right, wrong = VECTORS["HeartbeatRequest", 0][0], VECTORS["HeartbeatRequest", 1][0]
    wrong = wrong | {"hex": wrong["hex"] + "00"}
    for kind in WHOLE:
        lines = [json.dumps(one) + "\n" for one in (right, wrong)] if kind == "request" else []
        (tmp_path / f"{kind}.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))
    test = f"{__file__}::test_messages_encode_to_kafkas_bytes"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", test],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"AIOKAFKAWIRE_VECTORS": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    told = done.stdout + done.stderr
    assert "1 of 2 rows failed" in told, told
    assert re.findall("row: .*", told) == ["row: name='HeartbeatRequest', version=1"], told
