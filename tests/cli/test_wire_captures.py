"""Captures with several connections: each response is matched with a request of its own connection."""

from __future__ import annotations

from pathlib import Path

from support.wire_command import METADATA, Capture, framed, objects, request, response

from aiokafkawire.cli.wire.frame_decoder import read_request
from aiokafkawire.protocol.messages.group import HeartbeatRequest, HeartbeatResponse
from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from aiokafkawire.testing.tap.pcap_packets import FILE_HEADER, CapturedConnection, packet_record
from aiokafkawire.types import Address

BROKER = Address("127.0.0.1", 9092)
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def capture(path: Path, *connections: tuple[int, bytes, bytes]) -> str:
    """A pcap file of connections: the client's port, its requests, and the responses."""
    packets: list[bytes] = []
    for port, requests, responses in connections:
        captured = CapturedConnection(Address("127.0.0.1", port), BROKER)
        packets += [
            *captured.opening(),
            *captured.sent(framed(requests), by_client=True),
            *(captured.sent(framed(responses), by_client=False) if responses else ()),
            *captured.closing(by_client=True),
        ]
    path.write_bytes(FILE_HEADER + b"".join(packet_record(packet, 1.0) for packet in packets))
    return str(path)


def test_connections_use_the_same_correlation_ids(tmp_path: Path, capsys: Capture) -> None:
    path = capture(
        tmp_path / "day.pcap",
        (50001, request(HEARTBEAT, 4), b""),  # it was never answered
        (50002, request(MetadataRequest(topics=[]), 12), response(METADATA, 12)),
        (50003, request(HEARTBEAT, 4), response(HeartbeatResponse(error_code=0), 4)),
    )
    found = [(frame["kind"], frame["api"]) for frame in objects(capsys, "--file", path)]
    assert sorted(found) == [
        ("request", "Heartbeat"),
        ("request", "Heartbeat"),
        ("request", "Metadata"),
        ("response", "Heartbeat"),
        ("response", "Metadata"),
    ]


def test_one_port_is_used_for_two_connections(tmp_path: Path, capsys: Capture) -> None:
    path = capture(
        tmp_path / "day.pcap",
        (50001, request(HEARTBEAT, 4), b""),
        (50001, request(MetadataRequest(topics=[]), 12), response(METADATA, 12)),
    )
    found = [(frame["kind"], frame["api"]) for frame in objects(capsys, "--file", path)]
    assert ("response", "Metadata") in found
    assert ("response", "Heartbeat") not in found


def test_a_response_that_could_be_a_request_is_none(tmp_path: Path, capsys: Capture) -> None:
    made = InitProducerIdResponse(error_code=0, producer_id=0, producer_epoch=0)
    as_request = response(made, 5, correlation_id=4)
    assert read_request(as_request).message is not None  # Produce v4
    asked = request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 5, correlation_id=4)
    path = capture(tmp_path / "day.pcap", (50001, asked, as_request))
    found = [(frame["kind"], frame["api"]) for frame in objects(capsys, "--file", path)]
    assert found == [("request", "InitProducerId"), ("response", "InitProducerId")]
