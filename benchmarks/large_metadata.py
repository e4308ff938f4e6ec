"""The time for which a response with 100,000 partitions blocks the event loop.

A server in another process answers every Metadata request with the same topics. A client bootstraps from it and lists
the topics, on each event loop in turn, while a task that is due every millisecond notes how late it runs.
"""

import argparse
import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from aiokafkawire import Client
from aiokafkawire.protocol.api import ApiKey, RequestHeader, request_header_version, response_header_version
from aiokafkawire.protocol.compiler import IMPLEMENTATION, decode_prefix, encode
from aiokafkawire.protocol.messages.metadata import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponseBroker,
)
from aiokafkawire.protocol.schema import Request
from benchmarks.codec.messages import metadata
from benchmarks.machine import ROOT, describe, has_module
from benchmarks.report import aligned

LOOPS = {
    "asyncio": ("asyncio", {"use_uvloop": False}),
    "uvloop": ("asyncio", {"use_uvloop": True}),
    "trio": ("trio", {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000, help="topics of the answer (10000)")
    parser.add_argument("--partitions", type=int, default=10, help="partitions of each (10)")
    parser.add_argument("--rounds", type=int, default=5, help="clients on each loop (5)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.topics, options.partitions)
        return
    about = describe(sys.argv) | {"decoder": IMPLEMENTATION, "partitions": f"{options.topics * options.partitions:,}"}
    print("\n".join(f"{name:<{max(map(len, about))}}  {text}" for name, text in about.items()), end="\n\n")
    table = [["worst hold of the loop, ms, in each round", "bootstrap", "list_topics"]]
    with serving(options.topics, options.partitions) as port:
        for name, (backend, settings) in LOOPS.items():
            if has_module(name):
                rounds = [
                    anyio.run(one_client, port, backend=backend, backend_options=settings)
                    for _ in range(options.rounds)
                ]
                table.append(
                    [
                        name,
                        *(" ".join(f"{worst * 1e3:.1f}" for worst in column) for column in zip(*rounds, strict=True)),
                    ]
                )
    print("\n".join(aligned(table)))


async def one_client(port: int) -> tuple[float, float]:
    """Return the longest delay, in seconds, while bootstrapping and while listing the topics."""
    late: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await anyio.sleep(0.001)
            now = time.perf_counter()
            late.append(now - last - 0.001)
            last = now

    async def worst() -> float:
        await anyio.sleep(0.05)
        found = max(late)
        late.clear()
        return found

    gc.collect()  # the garbage of the previous client
    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await worst()  # the start of the loop itself
        async with Client(f"127.0.0.1:{port}") as client:
            bootstrap = await worst()
            topics = await client.admin.list_topics()
            listed = await worst()
            assert len(topics) > 1
        group.cancel_scope.cancel()
    return bootstrap, listed


# --- the server ----------------------------------------------------------------------------------------------


@contextmanager
def serving(topics: int, partitions: int) -> Iterator[int]:
    """Start a server in a process of its own; yield its port."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.large_metadata",
        "--serve",
        f"--topics={topics}",
        f"--partitions={partitions}",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def serve(topics: int, partitions: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answer = metadata(topics, partitions)
        answer.brokers = [MetadataResponseBroker(node_id=0, host="127.0.0.1", port=port)]
        body = encode(answer, MetadataRequest.versions.last)
        print(port, flush=True)
        while True:
            connection, _ = server.accept()
            threading.Thread(target=converse, args=(connection, body), daemon=True).start()


def converse(connection: socket.socket, body: bytes) -> None:
    reader = connection.makefile("rb")
    asked: list[type[Request[Any]]] = [ApiVersionsRequest, MetadataRequest]
    spoken = [ApiVersion(api_key=one.api_key, min_version=0, max_version=one.versions.last) for one in asked]
    versions = ApiVersionsResponse(error_code=0, api_keys=spoken)
    while size := reader.read(4):
        frame = reader.read(int.from_bytes(size, "big"))
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        request = asked[key != ApiKey.API_VERSIONS]
        header, _ = decode_prefix(RequestHeader, request_header_version(request, version), frame)
        start = header.correlation_id.to_bytes(4, "big") + bytes(response_header_version(request, version))
        answer = start + (encode(versions, version) if request is ApiVersionsRequest else body)
        connection.sendall(len(answer).to_bytes(4, "big") + answer)


if __name__ == "__main__":
    main()
