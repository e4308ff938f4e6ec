"""Every declared message equals what Kafka's own Java classes write, byte for byte, both ways."""

from collections import defaultdict
from typing import Any

import pytest
from support.kafka_json import from_json, to_json
from support.vectors import declared_messages, vectors

from aiokafkawire.errors import UnsupportedVersion
from aiokafkawire.protocol.compiler import decode, encode

MESSAGES = declared_messages()


def grouped(*names: str) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The vectors of the messages that we declare, by message and version."""
    found = defaultdict(list)
    for name in names:
        for vector in vectors(name):
            if vector["name"] in MESSAGES:
                found[vector["name"], vector["version"]].append(vector)
    return found


VECTORS = grouped("request", "response", "header", "data")
ABSENT = grouped("ignorable")


def test_every_version_of_every_message_has_vectors() -> None:
    declared = {
        (name, version)
        for name, cls in MESSAGES.items()
        for version in range(cls.versions.first, cls.versions.last + 1)
    }
    assert declared == set(VECTORS)


@pytest.mark.parametrize(("name", "version"), sorted(VECTORS))
def test_bytes_decode_to_what_kafka_wrote(name: str, version: int) -> None:
    for vector in VECTORS[name, version]:
        message = decode(MESSAGES[name], version, bytes.fromhex(vector["hex"]))
        assert to_json(message, version) == vector["json"], vector["variant"]


@pytest.mark.parametrize(("name", "version"), sorted(VECTORS))
def test_messages_encode_to_kafkas_bytes(name: str, version: int) -> None:
    for vector in VECTORS[name, version]:
        message = from_json(MESSAGES[name], vector["json"])
        assert encode(message, version).hex() == vector["hex"], vector["variant"]


@pytest.mark.parametrize(("name", "version"), sorted(ABSENT))
def test_a_value_that_the_version_lacks_is_dropped_or_refused_as_kafka_does(name: str, version: int) -> None:
    for vector in ABSENT[name, version]:
        message = from_json(MESSAGES[name], vector["json"])
        if vector["outcome"] == "ok":
            assert encode(message, version).hex() == vector["hex"], vector["path"]
        else:
            assert vector["outcome"] == "unsupported"
            with pytest.raises(UnsupportedVersion, match=f"this is {version}"):
                encode(message, version)
