"""Which broker is killed when: a schedule that comes from a seed, carried out on a cluster while a client works."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from support.kafka_cluster import KafkaCluster

_FIRST = (3.0, 5.0)
_EVERY = (6.0, 10.0)
_DOWN = (2.0, 12.0)
_REST = (1.0, 4.0)
"""Seconds between the moment that all replicas are in sync again and the next kill, at least."""


@dataclass
class Kill:
    """One fault. Times are in seconds since the client began."""

    node: int
    led: int
    """Partitions of the topic that it led."""
    at: float
    back: float = 0.0
    whole: float = 0.0
    """When all replicas were in sync again."""


class Faults:
    """Kills the broker that leads most partitions, every 6 to 10 s, but not until all replicas are in sync again.

    A broker stays down for 2 to 12 s: some come back before the controller has noticed (broker.session.timeout.ms is
    9 s), some after.
    """

    def __init__(self, cluster: KafkaCluster, topic: str, seed: int, seconds: float) -> None:
        self.kills: list[Kill] = []
        self._cluster, self._topic, self._seconds = cluster, topic, seconds
        self._chance = random.Random(seed)

    def run(self, tell: Callable[[str], None], stop: threading.Event) -> None:
        """Run the schedule; afterwards all brokers run, and all replicas are in sync.

        Nothing more is killed once `stop` is set: the client has ended early.

        :raises BootFailed: a broker does not come back.
        """
        began = time.monotonic()
        due = self._chance.uniform(*_FIRST)
        while due < self._seconds:
            if stop.wait(max(due - (time.monotonic() - began), 0)):
                return
            down = self._chance.uniform(*_DOWN)
            kill = self._kill(began, tell)
            time.sleep(down)
            self._cluster.restart(kill.node)
            kill.back = time.monotonic() - began
            tell(f"broker {kill.node} is back")
            self._cluster.wait_whole()
            kill.whole = time.monotonic() - began
            tell("all replicas are in sync")
            due = max(kill.at + self._chance.uniform(*_EVERY), kill.whole + self._chance.uniform(*_REST))

    def _kill(self, began: float, tell: Callable[[str], None]) -> Kill:
        leaders = self._cluster.leaders(self._topic)
        # Of two that lead as many, the one that was not killed last.
        last = self.kills[-1].node if self.kills else 0
        node = max(sorted(leaders), key=lambda one: (leaders[one], one != last))
        kill = Kill(node, leaders[node], time.monotonic() - began)
        self.kills.append(kill)
        self._cluster.kill(node)
        tell(f"broker {node} killed, which led {kill.led} partitions")
        return kill

    def as_json(self) -> list[dict[str, Any]]:
        """Return the kills, for a report."""
        return [asdict(kill) for kill in self.kills]
