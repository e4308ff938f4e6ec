"""What is told of a message is all of it, for messages that Kafka's own classes wrote."""

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from support.kafka_json import from_json
from support.vectors import declared_messages, vectors

from aiokafkawire.cli.wire.describe import Describer
from aiokafkawire.cli.wire.frame_decoder import read_request, read_response
from aiokafkawire.cli.wire.json_renderer import json_of
from aiokafkawire.cli.wire.text_renderer import Style, hexdump, lines_of, quoted
from aiokafkawire.protocol.api import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.message_registry import FAMILIES, request_of
from aiokafkawire.protocol.messages.fetch import FetchRequest, FetchTopic
from aiokafkawire.protocol.messages.group import JoinGroupRequest, JoinGroupRequestProtocol
from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.protocol.messages.sasl import SaslAuthenticateRequest
from aiokafkawire.protocol.schema import Message

MESSAGES = declared_messages()
ALL = Style(full=True)


@cache
def sampled() -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The first vectors of every message's oldest and newest version."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for name in ("request", "response", "header", "data"):
        for vector in vectors(name):
            key = vector["name"], vector["version"]
            cls = MESSAGES.get(vector["name"])
            if cls is not None and vector["version"] in (cls.versions.first, cls.versions.last) and len(found[key]) < 6:
                found[key].append(vector)
    return found


def snake(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)


def names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            if key != "_unknownTaggedFields":
                yield camel(snake(key))
                yield from names(one)
    elif isinstance(value, list):
        for one in value:
            yield from names(one)


def kafkas(value: Any) -> Any:
    """Our JSON as Kafka's: without what we add."""
    if isinstance(value, list):
        return [kafkas(one) for one in value]
    if not isinstance(value, dict):
        return value
    out = {camel(key): kafkas(one) for key, one in value.items() if not key.endswith("_means")}
    unknown = out.pop("unknownTaggedFields", None)
    if unknown:
        out["_unknownTaggedFields"] = [
            {"tag": int(tag), "data": base64.b64decode(data).hex()} for tag, data in unknown.items()
        ]
    return out


@pytest.mark.parametrize(("name", "version"), sorted(sampled()))
def test_every_field_is_told(name: str, version: int) -> None:
    for vector in sampled()[name, version]:
        message = decode(MESSAGES[name], version, bytes.fromhex(vector["hex"]))
        shown = Describer(secrets=True).message(message, version)
        lines = list(lines_of(shown, ALL))
        told = {camel(found[1]) for line in lines if (found := re.match(r" *([a-z0-9_]+):", line))}
        assert set(names(vector["json"])) <= told, vector["variant"]
        assert all(line.isprintable() for line in lines), "nothing that a terminal would obey"


@pytest.mark.parametrize(("name", "version"), sorted(sampled()))
def test_json_is_the_message(name: str, version: int) -> None:
    for vector in sampled()[name, version]:
        message = decode(MESSAGES[name], version, bytes.fromhex(vector["hex"]))
        printed = json.dumps(json_of(Describer(secrets=True).message(message, version)), allow_nan=False)
        assert from_json(MESSAGES[name], kafkas(json.loads(printed))) == message, vector["variant"]


@pytest.mark.parametrize("api_key", sorted(FAMILIES))
def test_requests_and_responses_are_found_behind_their_headers(api_key: int) -> None:
    request = request_of(api_key)
    for version in (request.versions.first, request.versions.last):
        body = bytes.fromhex(sampled()[request.__name__, version][-1]["hex"])
        header_version = request_header_version(request, version)
        client_id = "me" if header_version else ""
        header = RequestHeader(
            request_api_key=api_key, request_api_version=version, correlation_id=77, client_id=client_id
        )
        reading = read_request(encode(header, header_version) + body)
        assert (reading.problem, reading.header, reading.version) == ("", header, version)
        assert reading.message == decode(request, version, body)

        body = bytes.fromhex(sampled()[request.response.__name__, version][-1]["hex"])
        answered = ResponseHeader(correlation_id=77)
        reading = read_response(encode(answered, response_header_version(request, version)) + body, request, version)
        assert (reading.problem, reading.header, reading.version) == ("", answered, version)
        assert reading.message == decode(request.response, version, body)


# --- how values look -------------------------------------------------------------------------------------------------


def told(message: Message, version: int, style: Style | None = None, *, secrets: bool = False) -> list[str]:
    return list(lines_of(Describer(secrets=secrets).message(message, version), style or Style()))


def test_null_is_not_empty() -> None:
    assert told(MetadataRequest(topics=None), 1) == ["topics: null (all topics)"]
    assert told(MetadataRequest(topics=[]), 1) == ["topics: []"]


def test_nested_structs_are_indented_and_uuids_are_as_kafkas_tools_print_them() -> None:
    topic = FetchTopic(topic_id=UUID("2f9a1e5c-95d7-4d3e-8a4f-0123456789ab"), partitions=[])
    assert told(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic]), 17) == [
        "max_wait_ms: 500",
        "min_bytes: 1",
        "max_bytes: 2147483647",
        "isolation_level: 0 (read_uncommitted)",
        "session_id: 0",
        "session_epoch: -1 (a full fetch, no session)",
        "topics: 1",
        "  [0]",
        "    topic_id: L5oeXJXXTT6KTwEjRWeJqw",
        "    partitions: []",
        "forgotten_topics_data: []",
        'rack_id: ""',
        "cluster_id: null (tag 0)",
        "replica_state: (tag 1)",
        "  replica_id: -1",
        "  replica_epoch: -1",
    ]


def test_brief_leaves_out_defaults() -> None:
    message = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[])
    assert told(message, 17, Style(brief=True)) == ["max_wait_ms: 500", "min_bytes: 1", "topics: []"]
    printed = json_of(Describer().message(message, 17), brief=True)
    assert printed == {"max_wait_ms": 500, "min_bytes": 1, "topics": []}


def test_long_values_are_shortened_unless_asked_for() -> None:
    protocol = JoinGroupRequestProtocol(name="n" * 300, metadata=bytes(range(256)))
    message = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="", protocol_type="other", protocols=[protocol]
    )
    short, whole = told(message, 0), told(message, 0, ALL)
    assert short[-2:] == [
        f'    name: "{"n" * 100}"... (300 characters)',
        f"    metadata: 256 bytes {bytes(range(32)).hex(' ')} ...",
    ]
    assert whole[-2:] == [f'    name: "{"n" * 300}"', f"    metadata: 256 bytes {bytes(range(256)).hex(' ')}"]


def test_unknown_tagged_fields_are_told_by_tag() -> None:
    message: Any = MetadataRequest(topics=[])
    message.unknown_tagged_fields = {9: b"\x00\x01", 12: b""}
    assert told(message, 9)[-3:] == ["unknown_tagged_fields:", "  9: 2 bytes 00 01", "  12: 0 bytes"]


def test_what_could_be_a_secret_is_hidden() -> None:
    message = SaslAuthenticateRequest(auth_bytes=b"\0user\0password")
    assert told(message, 0) == ["auth_bytes: hidden, 14 long: it may be a secret (--secrets shows it)"]
    assert told(message, 0, secrets=True) == ["auth_bytes: 14 bytes 00 75 73 65 72 00 70 61 73 73 77 6f 72 64"]
    assert json_of(Describer().message(message, 0)) == {"auth_bytes": "<hidden, 14 long>"}


def test_configs_that_look_like_secrets_are_hidden() -> None:
    cls = MESSAGES["IncrementalAlterConfigsRequest"]
    configs = [
        {"name": name, "configOperation": 0, "value": "open sesame"} for name in ("ssl.key.password", "retention.ms")
    ]
    resource = {"resourceType": 4, "resourceName": "1", "configs": configs}
    lines = told(from_json(cls, {"resources": [resource], "validateOnly": False}), 0)
    assert [line.strip() for line in lines if "value" in line] == [
        "value: hidden, 11 long: it may be a secret (--secrets shows it)",
        'value: "open sesame"',
    ]
    assert "    resource_type: 4 (BROKER)" in lines


def test_a_terminal_is_told_nothing() -> None:
    assert quoted('a"\\\n\x1b[2J\u202e é 日') == '"a\\"\\\\\\n\\x1b[2J\\u202e é 日"'


@pytest.mark.parametrize("position", [0, 5, 16, 31, 32])
def test_the_hexdump_marks_the_byte(position: int) -> None:
    lines = list(hexdump(bytes(range(32)), position))
    (mark,) = (number for number, line in enumerate(lines) if "^^" in line)
    assert lines[mark].split("^^ ")[1].startswith(f"byte {position}")
    if position < 32:
        assert lines[mark - 1][lines[mark].index("^^") :].startswith(f"{position:02x}")
