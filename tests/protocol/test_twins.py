"""The compiled decoder does what the pure one does, and is in use where it was built."""

import gc
import os
import subprocess
import sys
from importlib.util import find_spec
from random import Random
from typing import Any

import pytest
from support.shapes import Shapes, Tagged, with_tags
from support.twins import Decoded, compiled, pure
from support.vectors import declared_messages, vectors

from aiokafkawire.protocol import compiler
from aiokafkawire.protocol.api import ResponseHeader
from aiokafkawire.protocol.compiler import DECODERS, IMPLEMENTATION, decode, encode
from aiokafkawire.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from aiokafkawire.protocol.messages.metadata import MetadataResponse

MESSAGES = declared_messages()
BUILT = pytest.mark.skipif("cython" not in DECODERS, reason="the compiled decoder is not built here")


def test_the_compiled_decoder_is_in_use_where_it_must_be() -> None:
    if os.environ.get("AIOKAFKAWIRE_REQUIRE_COMPILED", "0") in ("", "0"):
        pytest.skip("AIOKAFKAWIRE_REQUIRE_COMPILED is not set: the pure decoder may do")
    assert IMPLEMENTATION == "cython"
    assert compiler._decode_prefix is DECODERS["cython"]


@pytest.mark.slow
def test_the_environment_picks_a_twin() -> None:
    def told(choice: str) -> subprocess.CompletedProcess[str]:
        script = "from aiokafkawire.protocol.compiler import IMPLEMENTATION; print(IMPLEMENTATION)"
        environment = os.environ | {"AIOKAFKAWIRE_MESSAGES": choice}
        return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)

    assert told("pure").stdout == "pure\n"
    assert told("").stdout == f"{'cython' if find_spec('aiokafkawire.protocol._hot') else 'pure'}\n"
    assert "ImportError: AIOKAFKAWIRE_MESSAGES=fast: must be one of cython, pure" in told("fast").stderr


def both(cls: type[Any], version: int, data: bytes) -> tuple[Decoded | None, Decoded | None]:
    """What each twin gives by itself: the message and its end, or None."""
    return pure(cls, version, data), compiled(cls, version, data)


def golden() -> list[tuple[type[Any], int, bytes]]:
    found = [
        (MESSAGES[one["name"]], one["version"], bytes.fromhex(one["hex"]))
        for kind in ("request", "response", "header", "data")
        for one in vectors(kind)
    ]
    shapes = [(Shapes, version, encode(Shapes(), version)) for version in range(3)]
    return [*found, *shapes, (Tagged, 0, encode(with_tags(Tagged(fifth=1), {1: b"a"}), 0))]


def largest(kind: str, name: str, version: int) -> bytes:
    """The golden message with every field set."""
    wanted = (name, version, "max")
    (text,) = (one["hex"] for one in vectors(kind) if (one["name"], one["version"], one["variant"]) == wanted)
    return bytes.fromhex(text)


@pytest.mark.slow
@BUILT
def test_both_read_the_same_from_every_golden_message() -> None:
    for cls, version, data in golden():
        one, other = both(cls, version, data)
        assert one is not None, (cls, version)
        assert other is not None, (cls, version)
        assert one == other or "nan" in repr(one), (cls, version)
        assert one[1] == len(data)
        # Equal is not enough: 1 == True == 1.0, and a missing attribute would be found here.
        assert kinds(one[0]) == kinds(other[0]), (cls, version)


def kinds(value: Any) -> Any:
    """The types of all that a message holds."""
    if isinstance(value, list):
        return [kinds(one) for one in value]
    if hasattr(value, "__attrs_attrs__"):
        return type(value), [kinds(getattr(value, one.name)) for one in value.__attrs_attrs__]
    if isinstance(value, dict):
        return {name: type(one) for name, one in value.items()}
    return type(value)


@BUILT
def test_both_refuse_the_same_damaged_messages() -> None:
    random, lies = Random(11), (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff", b"\xff", b"\0", b"\x80")
    refused = 0
    for cls, version, data in golden()[::3]:
        for _ in range(4):
            place = random.randrange(len(data) + 1)
            lie = random.choice(lies)
            for damaged in (data[:place], data[:place] + lie + data[place + len(lie) :], data[:place] + lie):
                one, other = both(cls, version, damaged)
                assert one == other or "nan" in repr(one), (cls, version, damaged)
                refused += one is None
    assert refused > 10_000


@BUILT
def test_no_more_tags_than_none_is_none_however_it_is_written() -> None:
    one, other = both(ResponseHeader, 1, b"\0\0\0\1\x80\0")
    assert one == other == (ResponseHeader(correlation_id=1), 6)


@BUILT
def test_a_subclass_is_decoded_too() -> None:
    class Mine(ResponseHeader):
        """A user's own."""

    assert both(Mine, 0, b"\0\0\0\1")[1] == (Mine(correlation_id=1), 4)


@BUILT
def test_what_is_decoded_shares_nothing_that_can_be_changed() -> None:
    partition = PartitionData(partition_index=0, error_code=0, high_watermark=0, records=b"")
    data = encode(FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])]), 17)
    # The compiled decoder makes defaults by itself; in version 4 there are more of them than in 17.
    for version, frame in ((17, data), (4, encode(decode(FetchResponse, 17, data), 4))):
        first, second = (DECODERS["cython"](FetchResponse, version, frame, 0)[0] for _ in range(2))
        assert first == second
        assert first.responses is not second.responses
        ours, other = first.responses[0].partitions[0], second.responses[0].partitions[0]
        for name in ("current_leader", "diverging_epoch", "snapshot_id"):
            assert getattr(ours, name) is not getattr(other, name)
        assert first.node_endpoints is not second.node_endpoints


@pytest.mark.slow
@BUILT
def test_decoding_keeps_no_memory() -> None:
    cases = golden()[::20]
    for cls, version, data in cases:  # compiled and cached
        both(cls, version, data)
        both(cls, version, data[:-1])
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(20):
        for cls, version, data in cases:
            both(cls, version, data)
            both(cls, version, data[:-1])
    gc.collect()
    assert sys.getallocatedblocks() - before < 200


@BUILT
def test_the_collector_need_not_walk_what_is_decoded() -> None:
    data = largest("response", "MetadataResponse", 12)
    message, _ = DECODERS["cython"](MetadataResponse, 12, data, 0)
    partition = message.topics[0].partitions[0]
    parts = (message, message.topics, message.topics[0], partition, partition.replica_nodes)
    assert not any(gc.is_tracked(part) for part in parts)


@BUILT
def test_byte_fields_are_views_of_the_frame_that_keep_it() -> None:
    data = largest("request", "ProduceRequest", 9)
    frame = bytes(bytearray(data))
    before = sys.getrefcount(frame)
    message, _ = DECODERS["cython"](MESSAGES["ProduceRequest"], 9, frame, 0)
    records = message.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert records.readonly
    assert records.nbytes == len(records) == len(bytes(records))
    assert bytes(records[1:]) == bytes(records)[1:]
    assert sys.getrefcount(frame) > before
    del message, records
    assert sys.getrefcount(frame) == before
