"""The wire command: messages within others, and how it is called and ends."""

import base64
import io
import re
import shlex
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.patience import PATIENCE
from support.wire_command import HELLO, METADATA, Capture, objects, request, run

from aiokafkawire.cli.main import main
from aiokafkawire.cli.wire.options import EPILOG
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from aiokafkawire.protocol.messages.control_records import EndTxnMarker, LeaderChangeMessage
from aiokafkawire.protocol.messages.group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from aiokafkawire.records.batch import BatchBuilder

# --- messages within others ------------------------------------------------------------------------------------------

SUBSCRIPTION = b"\0\1" + encode(ConsumerProtocolSubscription(topics=["flights"]), 1)
ASSIGNMENT = b"\0\0" + encode(
    ConsumerProtocolAssignment(
        assigned_partitions=[ConsumerProtocolAssignmentTopicPartition(topic="flights", partitions=[0, 1])]
    ),
    0,
)


@pytest.mark.parametrize(("protocol_type", "read"), [("consumer", True), ("connect", False)])
def test_what_members_tell_one_another_is_read(protocol_type: str, read: bool, capsys: Capture) -> None:
    protocol = JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
    message = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="", protocol_type=protocol_type, protocols=[protocol]
    )
    data = request(message, 5).hex()
    _, out = run(capsys, data)
    assert (f"metadata: {len(SUBSCRIPTION)} bytes, ConsumerProtocolSubscription v1\n" in out) is read
    assert ('topics: ["flights"]' in out) is read
    (told,) = objects(capsys, data)
    shown = told["body"]["protocols"][0]
    assert base64.b64decode(shown["metadata"]) == SUBSCRIPTION
    if read:
        assert shown["metadata_means"]["message"] == "ConsumerProtocolSubscription v1"
        assert shown["metadata_means"]["fields"]["topics"] == ["flights"]
    else:
        assert "metadata_means" not in shown


def test_assignments_of_old_versions_do_not_name_the_protocol(capsys: Capture) -> None:
    given = [SyncGroupRequestAssignment(member_id="a", assignment=one) for one in (ASSIGNMENT, b"\0\0\x01", b"")]
    message = SyncGroupRequest(group_id="g", generation_id=1, member_id="a", assignments=given)
    _, out = run(capsys, request(message, 0).hex())
    assert "ConsumerProtocolAssignment v0\n" in out
    assert "partitions: [0, 1]" in out
    assert "assignment: 3 bytes 00 00 01\n" in out, "what is none is shown as it is"
    assert "assignment: 0 bytes\n" in out


@pytest.mark.parametrize(
    ("name", "data", "field"),
    [
        ("ConsumerProtocolSubscription", SUBSCRIPTION, 'topics: ["flights"]'),
        ("consumer-protocol-subscription:1", SUBSCRIPTION, 'topics: ["flights"]'),
        ("ConsumerProtocolSubscription:1", SUBSCRIPTION[2:], 'topics: ["flights"]'),
        ("ConsumerProtocolSubscription", b"\0\x09" + SUBSCRIPTION[2:] + b"\0\0\0\1\0\0more", "with 4 bytes left"),
        ("EndTxnMarker", b"\0\0\0\0\0\5", "coordinator_epoch: 5"),
        ("EndTxnMarker:0", encode(EndTxnMarker(coordinator_epoch=5), 0), "coordinator_epoch: 5"),
        (
            "LeaderChangeMessage",
            encode(LeaderChangeMessage(version=1, leader_id=3, voters=[], granting_voters=[]), 1),
            "leader_id: 3",
        ),
        ("MetadataResponse:12", encode(METADATA, 12), "controller_id: 5"),
        ("MetadataRequest", encode(MetadataRequest(topics=None), 12), "this is the newest that decodes it"),
        ("ResponseHeader:0", b"\0\0\0\7", "correlation_id: 7"),
    ],
)
def test_one_message(name: str, data: bytes, field: str, capsys: Capture) -> None:
    status, out = run(capsys, "--message", name, data.hex())
    assert (status, field in out) == (0, True), out


@pytest.mark.parametrize("name", ["EndTxnMarker", "EndTxnMarker:0", "MetadataRequest", "MetadataResponse:3"])
def test_one_message_that_is_none(name: str, capsys: Capture) -> None:
    status, out = run(capsys, "--message", name, "fefefe")
    assert (status, "cannot be decoded: " in out) == (1, True)


def records() -> bytes:
    builder = BatchBuilder(limit=1 << 16)
    builder.append(1, b"k", b"v")
    return builder.build()


def test_records_alone(capsys: Capture) -> None:
    status, out = run(capsys, "--records", records().hex())
    assert (status, 'value: 1 byte "v"' in out) == (0, True)
    (told,) = objects(capsys, "--records", records().hex())
    assert base64.b64decode(told["batches"][0]["records"][0]["key"]) == b"k"
    assert run(capsys, "--records", records()[:-1].hex() + "01")[0] == 1, "damage is no success"


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--response", "Metdata:1", "00"], "unknown API 'Metdata'; did you mean Metadata"),
        (["--response", "Metadata:x", "00"], "the colon must be followed by a version, as in Metadata:12"),
        (["--response", "Metadata:99", "00"], "Metadata v99 is unknown; known versions: 0-13"),
        (["--response", "95", "00"], "unknown API '95'"),
        (["--message", "EndTxn", "00"], "unknown message 'EndTxn'; did you mean "),
        (["--message", "EndTxnMarker:7", "00"], "EndTxnMarker v7 is unknown; known versions: 0"),
        (["--guess", "--records", "00"], "--records and --guess cannot be combined"),
        (["--requests", "x"], "--requests and --responses must be used together"),
        (["--file", "x", "00"], "use only one input: arguments, --file, or "),
        (["--raw", "00"], "--raw needs --file or the standard input"),
    ],
)
def test_wrong_usage(argv: list[str], said: str, capsys: Capture) -> None:
    assert main(["wire", *argv]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (err.count("\n"), err.startswith("aiokafkawire: ")) == (1, True)
    assert "frame" not in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [(["xyz"], "no hex: 'x' is not a hex digit"), (["--file", "not/there"], "FileNotFoundError: "), (["abc"], "3 hex")],
)
def test_input_that_is_none(argv: list[str], said: str, capsys: Capture) -> None:
    assert main(["wire", *argv]) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"aiokafkawire: {said}"), err.count("\n")) == ("", True, 1)


class _Typed:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize("argv", [[], ["-"]])
@pytest.mark.parametrize(("data", "form"), [(HELLO, "raw bytes"), (HELLO.hex(" ").encode(), "hex")])
def test_standard_input(
    argv: list[str], data: bytes, form: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", _Typed(data))
    status, out = run(capsys, *argv)
    assert (status, out.splitlines()[0]) == (0, f"standard input: {len(HELLO)} bytes, from {form}")
    assert "request ApiVersions v3" in out


@pytest.mark.parametrize(
    ("notation", "content"),
    [("--raw", HELLO), ("--hex", HELLO.hex().encode()), ("--base64", base64.b64encode(HELLO))],
)
def test_the_notation_can_be_told(notation: str, content: bytes, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "captured"
    path.write_bytes(content)
    assert run(capsys, notation, "--file", str(path))[0] == 0


def test_base64_as_json_prints_it_goes_back_in(capsys: Capture) -> None:
    packed = base64.b64encode(SUBSCRIPTION).decode()
    assert run(capsys, "--base64", "--message", "ConsumerProtocolSubscription", packed)[0] == 0


def test_nothing_is_no_frame(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "empty"
    path.touch()
    status, out = run(capsys, "--file", str(path))
    assert (status, "no bytes at all" in out) == (1, True)


def examples() -> list[list[str]]:
    """The commands that the help shows, those that need no file."""
    commands = re.findall(r"^ +aiokafkawire wire (.*)$", EPILOG.replace("\\\n", ""), re.MULTILINE)
    return [argv for command in commands if "--file" not in (argv := shlex.split(command)) and "--requests" not in argv]


@pytest.mark.parametrize("argv", examples())
def test_the_examples_of_the_help_work(argv: list[str], capsys: Capture) -> None:
    assert len(examples()) == 4
    assert run(capsys, *argv)[0] == 0


def test_the_example_of_the_page_is_what_it_prints(capsys: Capture) -> None:
    page = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()
    found = re.search(r"^\$ aiokafkawire wire (.*)\n((?:.*\n)*?)```$", page, re.MULTILINE)
    assert found is not None
    assert run(capsys, *shlex.split(found[1])) == (0, found[2])


def test_help_teaches(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["wire", "--help"])
    out = capsys.readouterr().out
    assert "aiokafkawire wire --response Metadata:1" in out
    assert max(map(len, out.splitlines())) <= 120


def process(*argv: str, **options: Any) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-W", "error", "-m", "aiokafkawire", "wire", *argv]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **options)


def test_a_reader_that_goes_ends_it_quietly() -> None:
    with process() as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        running.stdin.write((struct.pack(">i", len(HELLO)) + HELLO) * 5000)
        running.stdin.close()
        assert (running.wait(50), running.stderr.read()) == (1, b"")


def test_names_that_the_terminal_cannot_show_are_escaped() -> None:
    data = request(ApiVersionsRequest(client_software_name="日本", client_software_version="1"), 3)
    with process(data.hex(), env={"PYTHONIOENCODING": "ascii"}) as running:
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (0, b"")
    assert b'client_software_name: "\\u65e5\\u672c"' in out
