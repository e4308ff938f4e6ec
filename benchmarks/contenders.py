"""What is measured: every client, the ways of using it, and the event loops."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

OURS: Final = "ours"
NO_LOOP: Final = "threads"
"""In place of an event loop, for a client that has threads of its own."""
CLIENTS: Final = {"ours": "aiokafkawire", "aiokafka": "aiokafka", "confluent": "confluent_kafka"}
"""Each client and the module that it needs."""
TASKS: Final = ("produce", "consume", "latency")

_PROGRAMS: Final[dict[str, str]] = {"ours": "ours", "aiokafka": "aiokafka_peer", "confluent": "confluent_peer"}
_LOOPS: Final[dict[str, tuple[str, ...]]] = {
    "ours": ("asyncio", "uvloop", "trio"),
    "aiokafka": ("asyncio", "uvloop"),
    "confluent": (NO_LOOP,),
}
_WAYS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "produce": {
        "ours": ("enqueue", "send_nowait"),
        "aiokafka": ("send", "send_batch"),
        "confluent": ("produce", "produce_reports"),
    },
    "consume": {
        "ours": ("batches", "async_for"),
        "aiokafka": ("getmany", "async_for"),
        "confluent": ("consume", "poll"),
    },
    "latency": {
        "ours": ("awaited_send",),
        "aiokafka": ("awaited_send",),
        "confluent": ("produce_poll", "aio_producer"),
    },
}


@dataclass(frozen=True)
class Contender:
    """One row of the report: a client, used in one way, on one event loop."""

    task: str
    client: str
    way: str
    loop: str

    @property
    def label(self) -> str:
        """Its name on the command line and in reports, such as ``produce ours enqueue asyncio``."""
        return f"{self.task} {self.client} {self.way} {self.loop}"

    @property
    def program(self) -> str:
        """The module that measures it."""
        return program_of(self.client)


def program_of(client: str) -> str:
    return f"benchmarks.clients.{_PROGRAMS[client]}"


def contenders(tasks: Sequence[str], clients: Sequence[str], loops: Sequence[str]) -> list[Contender]:
    """All of them, with the clients of each task taking turns: first every client's first way, and so on."""
    found = []
    for task in TASKS:
        if task not in tasks:
            continue
        queues = [_of_client(task, client, loops) for client in CLIENTS if client in clients]
        while any(queues):
            found += [queue.pop(0) for queue in queues if queue]
    return found


def _of_client(task: str, client: str, loops: Sequence[str]) -> list[Contender]:
    chosen = [loop for loop in _LOOPS[client] if loop in loops or loop == NO_LOOP]
    return [Contender(task, client, way, loop) for loop in chosen for way in _WAYS[task][client]]
