"""The command `aiokafkawire wire` in tests: frames for it, and what it prints."""

import json
import struct
from typing import Any, TypeAlias

import pytest

from aiokafkawire.cli.main import main
from aiokafkawire.protocol.api import RequestHeader, ResponseHeader, request_header_version, response_header_version
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.message_registry import request_of
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataResponse
from aiokafkawire.protocol.schema import Request, Response

__all__ = ("HELLO", "METADATA", "Capture", "framed", "objects", "request", "response", "run")

Capture: TypeAlias = pytest.CaptureFixture[str]


def request(message: Request[Any], version: int, correlation_id: int = 7, *, unknown: int | None = None) -> bytes:
    """A request without its length prefix; with ``unknown`` its header says another version."""
    cls: Any = type(message)
    header = RequestHeader(
        request_api_key=cls.api_key,
        request_api_version=version if unknown is None else unknown,
        correlation_id=correlation_id,
        client_id="me",
    )
    return encode(header, request_header_version(cls, version)) + encode(message, version)


def response(message: Response, version: int, correlation_id: int = 7) -> bytes:
    """A response without its length prefix."""
    header_version = response_header_version(request_of(message.api_key), version)
    return encode(ResponseHeader(correlation_id=correlation_id), header_version) + encode(message, version)


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


HELLO = request(ApiVersionsRequest(client_software_name="aiokafkawire", client_software_version="1"), 3)
METADATA = MetadataResponse(brokers=[], topics=[], controller_id=5, cluster_id="abc")


def run(capsys: Capture, *argv: str) -> tuple[int, str]:
    """The status of the command, and what it printed; it says nothing else."""
    status = main(["wire", *argv])
    out, err = capsys.readouterr()
    assert err == ""
    return status, out


def objects(capsys: Capture, *argv: str) -> list[Any]:
    """What it prints with ``--json``."""
    main(["wire", "--json", *argv])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]
