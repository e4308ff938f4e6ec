"""The message codec beside kafka-python's and kio's: encoding and decoding what clients of large clusters exchange.

Every contender reads the same bytes, and writes them again from its own objects; a contender whose bytes differ from
ours is an error. They take turns, every other round goes backwards, and the garbage collector runs as it does in any
program.
"""

import argparse
import gc
import importlib
import io
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from aiokafkawire.protocol.compiler import IMPLEMENTATION, decode, encode
from aiokafkawire.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from aiokafkawire.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aiokafkawire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from aiokafkawire.protocol.schema import Message
from benchmarks.machine import describe, has_module, version_of
from benchmarks.report import RESULTS, aligned

OURS, KAFKA_PYTHON, KIO = "aiokafkawire", "kafka-python", "kio"
DIRECTIONS = ("encode", "decode")
RECORDS = bytes(range(250)) * 4


class Case(NamedTuple):
    """A message in a version that all contenders have."""

    what: str
    message: Message
    version: int


class Codec(NamedTuple):
    """What a contender does with one case, ready to be called."""

    encode: Callable[[], bytes]
    decode: Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="how often each contender has its turn (7)")
    parser.add_argument("--seconds", type=float, default=0.3, help="seconds of each turn, about (0.3)")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the ratios; needs matplotlib")
    options = parser.parse_args()
    peers = {name: peer for name, peer in PEERS.items() if has_module(MODULES[name])}
    about = describe(sys.argv) | {
        "contenders": ", ".join([f"{OURS} ({IMPLEMENTATION} decoder)", *(f"{one} {version_of(one)}" for one in peers)]),
        "left out": ", ".join(name for name in PEERS if name not in peers) or "nobody",
    }
    print("\n".join(f"{name:<{max(map(len, about))}}  {text}" for name, text in about.items()), end="\n\n", flush=True)
    gc.collect()
    gc.freeze()  # what was there before belongs to nobody's codec
    rows = [row for case in cases() for row in measured(case, peers, options.rounds, options.seconds)]
    print("\n".join(aligned(table(rows, list(peers)))))
    kept = RESULTS / f"messages-{time.strftime('%Y%m%d-%H%M%S')}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    print(f"\nkept as {kept}")
    if options.plot is not None:
        plot(rows, list(peers), options.plot)


# --- what is encoded and decoded -----------------------------------------------------------------------------


def cases() -> list[Case]:
    """Versions are the newest that all three have."""
    return [
        Case("MetadataResponse, 1,000 topics of 10", metadata(1000, 10), 13),
        Case("FetchRequest, 100 topics of 10", fetch_request(100, 10), 17),
        Case("FetchResponse, 100 topics of 10", fetch_response(100, 10), 17),
        Case("ProduceRequest, 10 topics of 10", produce_request(10, 10), 13),
        Case("ProduceResponse, 10 topics of 10", produce_response(10, 10), 13),
        Case("OffsetFetchResponse, 500 topics of 10", offset_fetch(500, 10), 9),
    ]


def metadata(topics: int, partitions: int) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=node, host=f"broker-{node}.example", port=9092) for node in range(3)]
    return MetadataResponse(
        brokers=brokers,
        cluster_id="abcdefghijklmnopqrstuv",
        controller_id=0,
        topics=[
            MetadataResponseTopic(
                error_code=0,
                name=f"topic-{topic}",
                topic_id=UUID(int=topic + 1),
                partitions=[
                    MetadataResponsePartition(
                        error_code=0,
                        partition_index=index,
                        leader_id=index % 3,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def fetch_request(topics: int, partitions: int) -> FetchRequest:
    asked = [
        FetchPartition(partition=index, fetch_offset=123_456 + index, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[FetchTopic(topic_id=UUID(int=topic + 1), partitions=asked) for topic in range(topics)],
    )


def fetch_response(topics: int, partitions: int) -> FetchResponse:
    data = [
        PartitionData(
            partition_index=index,
            error_code=0,
            high_watermark=123_456,
            last_stable_offset=123_456,
            log_start_offset=0,
            records=RECORDS,
        )
        for index in range(partitions)
    ]
    return FetchResponse(
        responses=[FetchableTopicResponse(topic_id=UUID(int=topic + 1), partitions=data) for topic in range(topics)]
    )


def produce_request(topics: int, partitions: int) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=RECORDS) for index in range(partitions)]
    named = [TopicProduceData(topic_id=UUID(int=topic + 1), partition_data=data) for topic in range(topics)]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=named)


def produce_response(topics: int, partitions: int) -> ProduceResponse:
    answers = [PartitionProduceResponse(index=index, error_code=0, base_offset=123_456) for index in range(partitions)]
    return ProduceResponse(
        responses=[
            TopicProduceResponse(topic_id=UUID(int=topic + 1), partition_responses=answers) for topic in range(topics)
        ]
    )


def offset_fetch(topics: int, partitions: int) -> OffsetFetchResponse:
    committed = [
        OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=123_456 + index, committed_leader_epoch=5, metadata="", error_code=0
        )
        for index in range(partitions)
    ]
    named = [OffsetFetchResponseTopics(name=f"topic-{topic}", partitions=committed) for topic in range(topics)]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="group", topics=named, error_code=0)])


# --- the contenders ------------------------------------------------------------------------------------------


def ours(case: Case, data: bytes) -> Codec:
    cls = type(case.message)
    return Codec(
        partial(encode, decode(cls, case.version, data), case.version), partial(decode, cls, case.version, data)
    )


def kafka_python(case: Case, data: bytes) -> Codec:
    name = type(case.message).__name__
    modules = [importlib.import_module(f"kafka.protocol.{one}") for one in ("metadata", "consumer", "producer")]
    (cls,) = {getattr(one, name) for one in modules if hasattr(one, name)}
    message = cls.decode(data, version=case.version)
    message._header = None  # its decoder leaves this slot empty, and its encoder asks for it
    return Codec(partial(message.encode, version=case.version), partial(cls.decode, data, version=case.version))


def kio(case: Case, data: bytes) -> Codec:
    name = type(case.message).__name__
    kind = "request" if name.endswith("Request") else "response"
    api = "".join(f"_{one.lower()}" if one.isupper() else one for one in name.removesuffix(kind.title())).lstrip("_")
    cls: Any = getattr(importlib.import_module(f"kio.schema.{api}.v{case.version}.{kind}"), name)
    serial: Any = importlib.import_module("kio.serial")
    write, read = serial.entity_writer(cls), serial.entity_reader(cls)
    message, _ = read(data, 0)

    def encoded() -> bytes:
        with io.BytesIO() as buffer:
            write(buffer, message)
            return buffer.getvalue()

    return Codec(encoded, partial(read, data, 0))


PEERS: dict[str, Callable[[Case, bytes], Codec]] = {KAFKA_PYTHON: kafka_python, KIO: kio}
MODULES = {KAFKA_PYTHON: "kafka.protocol.api_message", KIO: "kio"}


# --- measuring -----------------------------------------------------------------------------------------------


def measured(
    case: Case, peers: dict[str, Callable[[Case, bytes], Codec]], rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """One row for each direction: ms of each contender, and for each peer its time by ours, round by round."""
    data = encode(case.message, case.version)
    codecs = {OURS: ours(case, data)} | {name: peer(case, data) for name, peer in peers.items()}
    for name, codec in codecs.items():
        if bytes(codec.encode()) != data:
            raise SystemExit(f"{case.what}: {name} writes other bytes than {OURS}")
    rows = []
    for direction in DIRECTIONS:
        took: dict[str, list[float]] = {name: [] for name in codecs}
        for number in range(rounds):
            for name in list(codecs) if number % 2 == 0 else reversed(codecs):
                took[name].append(_per_call(getattr(codecs[name], direction), seconds))
        rows.append(
            {
                "what": f"{case.what}, v{case.version}",
                "bytes": len(data),
                "direction": direction,
                "ms": {name: _spread([1000 * one for one in times]) for name, times in took.items()},
                "ratio": {
                    name: _spread([peer / own for peer, own in zip(took[name], took[OURS], strict=True)])
                    for name in peers
                },
            }
        )
        print(f"  {direction} {case.what}: done", file=sys.stderr, flush=True)
    return rows


def _per_call(function: Callable[[], object], seconds: float) -> float:
    count, ended, started = 0, 0.0, time.perf_counter()
    while ended - started < seconds:
        function()
        count += 1
        ended = time.perf_counter()
    return (ended - started) / count


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def table(rows: list[dict[str, Any]], peers: list[str]) -> list[list[str]]:
    """Ours in ms, and by how much longer each peer takes."""
    shown = [["median ms [range]", "", OURS, *(text for peer in peers for text in (peer, "times ours"))]]
    for row in rows:
        texts = [f"{row['direction']} {row['what']}", f"{row['bytes']:,} B", _text(row["ms"][OURS])]
        texts += [text for peer in peers for text in (_text(row["ms"][peer]), _text(row["ratio"][peer]))]
        shown.append(texts)
    return shown


def _text(spread: dict[str, float]) -> str:
    return f"{spread['median']:.3g} [{spread['least']:.3g}-{spread['most']:.3g}]"


def plot(rows: list[dict[str, Any]], peers: list[str], path: Path) -> None:
    """How many times as long as ours each peer takes."""
    pyplot = importlib.import_module("matplotlib.pyplot")
    drawing, axis = pyplot.subplots(figsize=(10, 0.5 + 0.5 * len(rows)), layout="constrained")
    height = 0.8 / len(peers)
    for number, peer in enumerate(peers):
        places = [index + number * height for index in range(len(rows))]
        axis.barh(places, [row["ratio"][peer]["median"] for row in rows], height, label=peer)
    names = [f"{row['direction']} {row['what']}" for row in rows]
    axis.set_yticks([index + 0.4 - height / 2 for index in range(len(rows))], names, fontsize=8)
    axis.axvline(1, color="black", linewidth=1)
    axis.set_xscale("log")
    axis.invert_yaxis()
    axis.set_title(f"time of the peer / time of {OURS} (right of 1: {OURS} is faster)", fontsize=10)
    axis.legend(fontsize=8)
    drawing.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
