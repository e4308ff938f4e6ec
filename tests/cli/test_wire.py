"""The wire command tells frames apart, reads them, and says what is wrong with those that it cannot read."""

import json
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.wire_command import HELLO, METADATA, Capture, framed, objects, request, response, run

from aiokafkawire.cli.main import main
from aiokafkawire.cli.wire.frame_decoder import read_response
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.message_registry import request_of
from aiokafkawire.protocol.messages.metadata import (
    ApiVersion,
    ApiVersionsResponse,
    MetadataRequest,
)
from aiokafkawire.protocol.messages.produce import ProduceRequest
from aiokafkawire.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

ASKED = request(MetadataRequest(topics=None), 12, 8)
ANSWER = response(METADATA, 12, 8)


# --- frames ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [HELLO, framed(HELLO)])
def test_a_request_says_what_it_is(data: bytes, capsys: Capture) -> None:
    status, out = run(capsys, data.hex())
    where = "without a length prefix" if data is HELLO else "after the length prefix"
    assert (status, out) == (
        0,
        f"""\
{len(data)} bytes, from hex

frame 1: bytes 0-{len(data) - 1}, {len(HELLO)} {where}
request ApiVersions v3 (API key 18, known versions: v0 to v5)
  header v2
    request_api_key: 18 (ApiVersions)
    request_api_version: 3
    correlation_id: 7
    client_id: "me"
  ApiVersionsRequest v3
    client_software_name: "aiokafkawire"
    client_software_version: "1"
""",
    )


def test_json(capsys: Capture) -> None:
    (told,) = objects(capsys, framed(HELLO).hex())
    assert told == {
        "frame": 1,
        "stream": "",
        "start": 0,
        "end": len(HELLO) + 4,
        "length": len(HELLO),
        "kind": "request",
        "api": "ApiVersions",
        "api_key": 18,
        "version": 3,
        "header": {
            "request_api_key": 18,
            "request_api_key_means": "ApiVersions",
            "request_api_version": 3,
            "correlation_id": 7,
            "client_id": "me",
        },
        "message": "ApiVersionsRequest",
        "body": {"client_software_name": "aiokafkawire", "client_software_version": "1"},
    }


@pytest.mark.parametrize("version", range(14))
def test_a_produce_without_its_length_is_not_taken_for_a_short_frame(version: int, capsys: Capture) -> None:
    data = request(ProduceRequest(acks=-1, timeout_ms=1500, topic_data=[]), version)
    status, out = run(capsys, data.hex())
    assert (status, "acks: -1 (all in-sync replicas)" in out) == (0, True)


def test_frames_follow_one_another(capsys: Capture) -> None:
    first, second = objects(capsys, framed(HELLO, ASKED).hex())
    assert [first["api"], second["api"]] == ["ApiVersions", "Metadata"]
    assert second["start"] == first["end"] == len(HELLO) + 4


@pytest.mark.parametrize(("left", "missing"), [(1, 3), (4, len(ASKED)), (20, len(ASKED) - 16)])
def test_a_frame_that_is_cut_says_how_much_is_missing(left: int, missing: int, capsys: Capture) -> None:
    data = (framed(HELLO) + framed(ASKED)[:left]).hex()
    status, out = run(capsys, data)
    assert status == 1
    assert "client_software_name" in out
    assert f"{missing} " in out.splitlines()[-1]
    assert out.splitlines()[-1].startswith("  cut short")
    assert [told.get("missing") for told in objects(capsys, data)] == [None, missing]


def test_the_first_frame_may_be_the_one_that_is_cut(capsys: Capture) -> None:
    status, out = run(capsys, framed(HELLO)[:-1].hex())
    assert status == 1
    assert f"its length prefix says {len(HELLO)}, {len(HELLO) - 1} are here, 1 are missing" in out
    assert "--no-length" in out


def test_the_length_can_be_told(capsys: Capture) -> None:
    status, out = run(capsys, "--no-length", framed(HELLO).hex())
    assert (status, "without a length prefix" in out) == (1, True)
    status, out = run(capsys, "--length", HELLO.hex())
    assert (status, "cut short" in out) == (1, True)


@pytest.mark.parametrize("said", [-5, 3])
def test_what_cannot_be_a_length_ends_the_stream(said: int, capsys: Capture) -> None:
    status, out = run(capsys, (framed(HELLO) + struct.pack(">i", said) + bytes(20)).hex())
    assert status == 1
    assert out.endswith(f"  no frame: its length prefix says {said}\n")


# --- responses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["Metadata:12", "3:12", "metadata:v12", "METADATA:12", "MetadataResponse:12"])
@pytest.mark.parametrize("data", [ANSWER, framed(ANSWER)])
def test_a_response_is_told_by_what_it_answers(api: str, data: bytes, capsys: Capture) -> None:
    status, out = run(capsys, "--response", api, data.hex())
    assert status == 0
    assert "response Metadata v12 (API key 3, known versions: v0 to v13)\n  header v1\n    correlation_id: 8\n" in out
    assert '    cluster_id: "abc"\n' in out


def test_without_a_version_it_is_the_newest_that_reads_it(capsys: Capture) -> None:
    (told,) = objects(capsys, "--response", "metadata", ANSWER.hex())
    assert told["version"] == 12
    assert told["notes"] == ["no version was given: this is the newest that decodes it; others: v11"]
    status, out = run(capsys, "--response", "metadata", "--no-length", ANSWER[:-1].hex())
    assert (status, "no version of MetadataResponse (0-13) decodes it; the longest attempt: " in out) == (1, True)


def test_an_old_broker_answers_api_versions_in_version_0(capsys: Capture) -> None:
    keys = [ApiVersion(api_key=18, min_version=0, max_version=2)]
    old = response(ApiVersionsResponse(error_code=35, api_keys=keys), 0)
    status, out = run(capsys, "--response", "ApiVersions:3", old.hex())
    assert status == 0
    assert "note: the request was v3, which the broker does not support; it answers in version 0 (KIP-511)" in out
    assert "error_code: 35 (UNSUPPORTED_VERSION: " in out
    assert "api_key: 18 (ApiVersions)" in out
    new = response(ApiVersionsResponse(error_code=0, api_keys=keys), 3)
    assert run(capsys, "--response", "ApiVersions:3", new.hex())[0] == 0, "its header is never flexible"


def test_a_capture_of_both_directions(tmp_path: Path, capsys: Capture) -> None:
    both = tmp_path / "both.raw"
    both.write_bytes(framed(ASKED, ANSWER, ASKED, ANSWER))
    told = objects(capsys, "--file", str(both))
    assert [(one["kind"], one["version"]) for one in told] == [("request", 12), ("response", 12)] * 2


def test_directions_of_a_capture_are_told_apart_whichever_comes_first(capsys: Capture) -> None:
    answer, asked = (framed(frame).hex(" ") for frame in (ANSWER, ASKED))
    told = objects(capsys, f"    0000  {answer}\n0000  {asked}")
    assert [(one["kind"], one["stream"]) for one in told] == [("request", "dump 2"), ("response", "dump 1")]


def test_two_files_of_one_direction_each(tmp_path: Path, capsys: Capture) -> None:
    requests, responses = tmp_path / "requests", tmp_path / "responses"
    # The same id is in use on two connections: the oldest request is answered first.
    requests.write_bytes(framed(ASKED, request(MetadataRequest(topics=None), 1, 8)))
    responses.write_text(framed(ANSWER, response(METADATA, 1, 8), response(METADATA, 1, 99)).hex())
    main(["wire", "--json", "--requests", str(requests), "--responses", str(responses)])
    out, err = capsys.readouterr()
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["version"] for one in told] == [12, 1, 12, 1, None]
    assert [one["stream"] for one in told] == [str(requests)] * 2 + [str(responses)] * 3
    assert told[-1]["problem"] == "no pending request has its correlation id, 99"
    assert err == (
        f"{requests}: {requests.stat().st_size} bytes, from raw bytes\n"
        f"{responses}: {responses.stat().st_size // 2} bytes, from hex\n"
    )


def test_what_could_it_be(capsys: Capture) -> None:
    keys = [ApiVersion(api_key=key, min_version=0, max_version=2) for key in range(30)]
    data = response(ApiVersionsResponse(error_code=0, api_keys=keys), 3)
    status, out = run(capsys, "--guess", data.hex())
    assert (status, "    response ApiVersions v5, v4, v3\n" in out) == (0, True)
    status, out = run(capsys, "--guess", response(METADATA, 1).hex())
    assert (status, "guessed: no other API decodes it" in out, "response Metadata v1 " in out) == (0, True, True)
    status, out = run(capsys, "--guess", "--no-length", "ff" * 40)
    assert (status, "no other API decodes it" in out) == (1, True)
    status, out = run(capsys, "--guess", HELLO.hex())
    assert "request ApiVersions v3" in out, "a request needs no guess"


def test_what_is_not_plausible_is_no_guess_unless_all_is(capsys: Capture) -> None:
    data = bytes.fromhex("0000000700000000006400000000")
    assert read_response(data, request_of(ApiKey.DESCRIBE_CLIENT_QUOTAS), 1).message is not None
    _, out = run(capsys, "--guess", data.hex())
    assert "    response ListGroups v2, v1\n" in out
    assert "DescribeClientQuotas" not in out, "Kafka writes it in other bytes"
    status, out = run(capsys, "--guess", response(ApiVersionsResponse(error_code=999, api_keys=[]), 0).hex())
    assert (status, "    response ApiVersions v0\n" in out) == (0, True), (
        "no error code is 999, and nothing better is known"
    )


# --- what cannot be read ---------------------------------------------------------------------------------------------


def test_damage_is_located_and_marked(capsys: Capture) -> None:
    data = bytearray(HELLO)
    at = data.index(b"aiokafkawire") - 1
    data[at] = 0x7F
    status, out = run(capsys, framed(bytes(data)).hex())
    assert status == 1
    assert 'client_id: "me"' in out, "the header is told"
    assert "cannot be decoded: ApiVersionsRequest v3.client_software_name: no string at byte " in out
    assert "v2, v1" not in out, "those have no body"
    assert "counted from the end of its length prefix" in out
    assert f"^^ byte {at + 1}\n" in out
    (told,) = objects(capsys, framed(bytes(data)).hex())
    assert (told["position"], told["other_versions"]) == (at + 1, [])


def test_other_versions_that_would_read_it_are_named(capsys: Capture) -> None:
    data = request(MetadataRequest(topics=None), 9)
    wrong = data[:2] + struct.pack(">h", 8) + data[4:]
    status, out = run(capsys, "--no-length", wrong.hex())
    assert status == 1
    assert re.search(r"^  versions that decode it: (v10 and )?v9$", out, re.MULTILINE)


def test_a_version_that_is_too_new(capsys: Capture) -> None:
    newer = request(MetadataRequest(topics=None), 13, unknown=14)
    status, out = run(capsys, newer.hex())
    assert status == 1
    assert 'client_id: "me"' in out
    assert "cannot be decoded: Metadata v14 is unknown; known versions: 0-13" in out
    assert "  versions that decode it: v13, v12 and v11\n" in out


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "; this is HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "these are bytes of TLS"),
        (b"\x00\x12", "2 bytes, but a request's header has at least 8"),
        (struct.pack(">hhi", 2000, 0, 1) + bytes(10), "unknown API key 2000"),
        (b"\x00\x12\x00\x03\x00\x00\x00\x07\x7f\xff", "RequestHeader v2.client_id"),
        (ANSWER, "If the frame is a response, name its API: --response API[:VERSION]"),
    ],
)
def test_what_is_no_request_is_told(data: bytes, said: str, capsys: Capture) -> None:
    status, out = run(capsys, "--no-length", data.hex())
    assert (status, said in out) == (1, True), out


def test_damaged_credentials_are_not_dumped(capsys: Capture) -> None:
    data = request(SaslAuthenticateRequest(auth_bytes=b"\0user\0sesame"), 1)[:-1].hex()
    assert "sesam" not in run(capsys, "--no-length", data)[1]
    assert "sesam" in run(capsys, "--no-length", "--secrets", data)[1]


def test_sasl_without_headers_is_not_dumped(capsys: Capture) -> None:
    handshake = request(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    status, out = run(capsys, framed(handshake, b"\0user\0sesame").hex())
    assert (status, "sesame" in out, "SaslHandshake v0 they have no header" in out) == (1, False, True)


@given(st.binary(max_size=120), st.integers(0, 94), st.integers(0, 20), st.integers(0, 2))
def test_anything_is_told_without_a_traceback(noise: bytes, key: int, version: int, how: int) -> None:
    head = struct.pack(">hhih", key, version, 1, -1)
    data = (noise, head + noise, framed(head + noise, noise))[how]
    said = [["--response", f"{key}"], ["--records"], ["--length"], ["--message", "EndTxnMarker"]]
    for way in ([], ["--json"], ["--full"], *said):
        assert main(["wire", *way, "--", data.hex()]) in (0, 1)
