"""The compiled decoder does what the pure one does, and is in use where it was built."""

import gc
import os
import subprocess
import sys
from random import Random
from typing import Any

import pytest
from support.shapes import Shapes, Tagged, with_tags
from support.vectors import declared_messages, vectors

from aiokafkawire.errors import WireError
from aiokafkawire.protocol import compiler
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


def test_the_environment_picks_a_twin() -> None:
    def told(choice: str) -> subprocess.CompletedProcess[str]:
        script = "from aiokafkawire.protocol.compiler import IMPLEMENTATION; print(IMPLEMENTATION)"
        environment = os.environ | {"AIOKAFKAWIRE_MESSAGES": choice}
        return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)

    assert told("pure").stdout == "pure\n"
    assert told("").stdout == f"{'cython' if 'cython' in DECODERS else 'pure'}\n"
    assert "ImportError: AIOKAFKAWIRE_MESSAGES=fast: must be one of cython, pure" in told("fast").stderr


def both(cls: type[Any], version: int, data: bytes) -> tuple[Any, Any]:
    """What each twin gives: the message and its end, or the text of its error."""
    found: list[Any] = []
    for name in ("pure", "cython"):
        try:
            found.append(DECODERS[name](cls, version, data, 0))
        except WireError as error:
            found.append(str(error))
    return found[0], found[1]


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


@BUILT
def test_both_read_the_same_from_every_golden_message() -> None:
    for cls, version, data in golden():
        pure, compiled = both(cls, version, data)
        assert pure == compiled or "nan" in repr(pure), (cls, version)
        assert pure[1] == len(data)
        # Equal is not enough: 1 == True == 1.0, and a missing attribute would be found here.
        assert kinds(pure[0]) == kinds(compiled[0]), (cls, version)


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
def test_both_refuse_the_same_damaged_messages_with_the_same_words() -> None:
    random, lies = Random(11), (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff", b"\xff", b"\0", b"\x80")
    refused = 0
    for cls, version, data in golden()[::3]:
        for _ in range(4):
            place = random.randrange(len(data) + 1)
            lie = random.choice(lies)
            for damaged in (data[:place], data[:place] + lie + data[place + len(lie) :], data[:place] + lie):
                pure, compiled = both(cls, version, damaged)
                assert pure == compiled or "nan" in repr(pure), (cls, version, damaged)
                refused += isinstance(pure, str)
    assert refused > 10_000


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
