"""The contenders: the clients, the ways of using each of them, and the event loops they run on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.java import JAVA

OURS: Final = "ours"
FLOOR: Final = "floor"
"""No client, but prepared bytes over a plain connection: the lower bound for every client."""
DROP_IN: Final = "aiokafkawire.aiokafka"
"""The programs of aiokafka, on our package with its API."""
NO_LOOP: Final = "threads"
"""Instead of an event loop, for a client with its own threads."""
CLIENTS: Final = {
    OURS: "aiokafkawire",
    "aiokafka": "aiokafka",
    "confluent": "confluent_kafka",
    "kafka-python": "kafka.protocol.api_message",  # since kafka-python 3
    "kio": "kio",
    JAVA: "benchmarks.java",
    FLOOR: "aiokafkawire",
}
"""Each client and the module that it needs."""
PEERS: Final = tuple(name for name in CLIENTS if name not in (OURS, FLOOR))
FILES: Final = {
    OURS: "ours",
    "aiokafka": "aiokafka_peer",
    DROP_IN: "aiokafka_peer",
    "confluent": "confluent_peer",
    "kafka-python": "kafka_python_peer",
    JAVA: "java_peer",
    FLOOR: "floor",
}
"""Each client and the name of its module, in every folder that has one for each client."""

_LOOPS: Final[dict[str, tuple[str, ...]]] = {
    OURS: ("asyncio", "uvloop", "trio"),
    "aiokafka": ("asyncio", "uvloop"),
    FLOOR: ("asyncio", "uvloop"),
}
_CODECS: Final[dict[str, tuple[str, ...]]] = dict.fromkeys((OURS, "kafka-python", "kio"), ("codec",))
WAYS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "produce": {
        OURS: ("enqueue", "send_nowait"),
        "aiokafka": ("send", "send_batch"),
        "confluent": ("produce_reports", "produce"),
        "kafka-python": ("send",),
    },
    "consume": {
        OURS: ("batches", "async_for", "poll"),
        "aiokafka": ("getmany", "async_for"),
        "confluent": ("consume", "poll"),
        "kafka-python": ("poll",),
    },
    "share": {
        OURS: ("share_explicit", "share_implicit", "share_async_with"),
        "confluent": ("share_explicit", "share_implicit"),
        JAVA: ("share_explicit", "share_implicit"),
    },
    "latency": {
        OURS: ("awaited_send",),
        "aiokafka": ("awaited_send",),
        "confluent": ("produce_poll", "aio_producer"),
        "kafka-python": ("awaited_send",),
        FLOOR: ("replayed_frame",),
    },
    "end_to_end": {
        OURS: ("send_and_read",),
        "aiokafka": ("send_and_read",),
        "confluent": ("send_and_read",),
        "kafka-python": ("send_and_read",),
    },
    "concurrent": {
        OURS: ("senders",),
        "aiokafka": ("senders",),
        "confluent": ("futures", "aio_senders"),
        "kafka-python": ("senders",),
    },
    "rebalance": {OURS: ("members",), "aiokafka": ("members",), "confluent": ("members",)},
    "messages": _CODECS,
}
"""By task and client. The first way of each client is comparable: it returns a delivery for every record, and
takes records in batches where there are any."""
_WITHOUT_LOOP: Final = ("messages",)


@dataclass(frozen=True)
class Contender:
    """One row of a table: a client, used in one way, on one event loop."""

    client: str
    way: str
    loop: str

    @property
    def label(self) -> str:
        """Its name in reports, such as ``aiokafkawire enqueue asyncio``; no loop goes without saying."""
        return " ".join(["aiokafkawire" if self.client == OURS else self.client, *self.words])

    @property
    def words(self) -> list[str]:
        """The name without its client."""
        return [word for word in (self.way, self.loop) if word != NO_LOOP]


def contenders(task: str, clients: Sequence[str], loops: Sequence[str], *, alike: bool = False) -> list[Contender]:
    """Return a task's contenders, with the clients taking turns: first every client's first way, and so on.

    ``alike`` leaves one way of each client, on the first loop: those that do the same as each other.
    """
    queues = [_of_client(task, client, loops) for client in CLIENTS if client in clients and client in WAYS[task]]
    if alike:
        return [queue[0] for queue in queues if queue]
    found = []
    while any(queues):
        found += [queue.pop(0) for queue in queues if queue]
    return found


def _of_client(task: str, client: str, loops: Sequence[str]) -> list[Contender]:
    known = _LOOPS.get(client, ()) if task not in _WITHOUT_LOOP else ()
    chosen = [loop for loop in known if loop in loops] if known else [NO_LOOP]
    return [Contender(client, way, loop) for loop in chosen for way in WAYS[task][client]]
