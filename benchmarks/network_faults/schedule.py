"""Carries out the faults of one kind, at the same times on the links of all clients."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from support.kafka_cluster import KafkaCluster

from benchmarks.network_faults.kinds import CALM, Kind
from benchmarks.network_faults.link import Rules
from benchmarks.network_faults.namespaces import BROKERS, ClientNetwork, addresses_of, zone
from benchmarks.recovery.windows import WARM_UP, Window, wait

_AWAY: Final = 20.0
"""Seconds until the host of a broker comes back that had vanished."""


def duration(kind: Kind, faults: int) -> float:
    """Return the seconds of a run with so many faults."""
    return WARM_UP + faults * (kind.seconds + kind.rest)


class Network:
    """The links of all clients, by name, and the brokers' addresses behind them. It lasts for many kinds of faults."""

    def __init__(self, cluster: KafkaCluster, links: Mapping[str, ClientNetwork]) -> None:
        self._cluster, self.links = cluster, links
        self._moves: Counter[int] = Counter()

    def calm(self, kind: Kind) -> None:
        """Let everything pass, and resolve the names to the addresses of this kind."""
        self._use(CALM, kind)

    def run(self, kind: Kind, faults: int, topics: Iterable[str], tell: Callable[[str], None]) -> list[Window]:
        """Run so many faults of a kind, from now on, and return their times.

        :raises BootFailed: a broker does not come back.
        """
        topics = list(topics)
        due = time.monotonic() + WARM_UP
        windows = []
        for number in range(faults):
            wait(due)
            began = time.monotonic()
            tell(f"{number + 1}/{faults} {kind.title}")
            vanished = self._start(kind, topics)
            wait(due + kind.seconds)
            if kind.seconds:
                self._use(CALM, kind)
            healed = time.monotonic() if kind.seconds else began
            if vanished is not None:
                wait(due + _AWAY)
                self._bring_back(vanished, kind)
            due += kind.seconds + kind.rest
            windows.append(Window(began, healed, due))
        wait(due)
        return windows

    def _start(self, kind: Kind, topics: Sequence[str]) -> int | None:
        """Start a fault; return the broker that it has killed."""
        if kind.moves:
            self._moves.update(BROKERS)
            self._use(kind.rules, kind)
            return None
        if kind.kills:
            led = sum((self._cluster.leaders(topic) for topic in topics), Counter[int]())
            node = max(sorted(led), key=lambda one: led[one])
            self._use(Rules(gone=addresses_of(node, self._moves[node])), kind)
            self._cluster.kill(node)
            return node
        self._use(kind.rules, kind)
        return None

    def _bring_back(self, node: int, kind: Kind) -> None:
        self._moves[node] += 1
        self._use(Rules(), kind)
        self._cluster.restart(node)

    def _former(self) -> tuple[str, ...]:
        """Return the addresses that brokers had before they moved."""
        pairs = (addresses_of(node, move) for node in BROKERS for move in range(self._moves[node]))
        return tuple(address for pair in pairs for address in pair)

    def _use(self, rules: Rules, kind: Kind) -> None:
        fails = kind.names_fail and rules is not CALM
        for link in self.links.values():
            link.resolve(zone(kind.family, self._moves), "fails" if fails else "answers")
            link.use(replace(rules, gone=(*self._former(), *rules.gone)), forget=kind.forgets and rules is not CALM)
