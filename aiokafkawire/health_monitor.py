"""Reads the health of a client and its parts, and reports partitions that stall to the observers and the log."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from .cluster.cluster import Cluster
from .event_log import EventLog
from .metrics.live import LiveClient
from .plain_values import error_text
from .runtime import call_soon_threadsafe

if TYPE_CHECKING:  # many programs never ask for the health of a client
    from .client_health import BrokerHealth, ClientHealth
    from .processing.health import ProcessingHealth
    from .stalls import StallTracker

__all__ = ("HealthMonitor",)

_log = EventLog("aiokafkawire.health")
_CHECKS: Final = 3
"""How often a partition is looked at in the time after which it counts as stalled."""


class HealthMonitor:
    """The health of one client. It looks for stalls at each call, and regularly while an observer has methods for them.

    Args:
        live: the client's producers and consumers.
    """

    def __init__(self, live: LiveClient) -> None:
        self._live, self._cluster = live, live.cluster
        self._after = live.cluster.config.stall_report_ms / 1000
        self.processing: dict[str, Callable[[], ProcessingHealth]] = {}
        """Returns the health of each call of ``Client.process`` that runs, by the name of its consumer."""
        self.failures: list[str] = []
        """What has failed for good that the program needs beside the client's own parts, in words."""
        self._stalls: StallTracker | None = None
        # When each producer or consumer with stalled partitions began to have some.
        self._stalled_since: dict[str, float] = {}

    async def run(self) -> None:
        """Look for stalls until cancelled, while an observer has methods for them."""
        observers, call_soon = self._cluster.observers, call_soon_threadsafe()
        while True:
            changed = anyio.Event()
            observers.on_change = partial(_call_if_open, call_soon, changed.set)
            if observers.partition_stalled is None and observers.stall_ended is None:
                await changed.wait()
            else:
                await anyio.sleep(self._after / _CHECKS)
                self.health("open")

    def health(self, state: str) -> "ClientHealth":
        """Return the health of a client that is in this state: ``"new"``, ``"open"`` or ``"closed"``.

        Raises:
            UsageError: the client is open, and was opened on another event loop that still runs.
        """
        from .client_health import client_health

        owner = self._cluster.owner
        if state == "open" and owner.has_lost_loop:
            return client_health(state, fault="the event loop on which the client was opened has ended")
        if state != "open":
            state = "closed" if owner.has_closed or owner.has_lost_loop else "new"
            return client_health(state, metadata_error=error_text(self._cluster.metadata.refresh_error))
        owner.require_own_loop()
        found, now = self._read(), self._cluster.runtime.now()
        self._report_stalls(found, now)
        return found

    def _read(self) -> "ClientHealth":
        from .client_health import client_health

        cluster, parts = self._cluster, self._live.parts()
        producers = [producer.health() for producer in parts.producers]
        shares = [consumer.health() for consumer in parts.share_consumers]
        if cluster.metadata.refresh_error is None and not cluster.brokers.in_use():
            # The connections may have broken while nothing was sent: the next call knows whether a broker answers.
            cluster.metadata.mark_stale(cluster.metadata.snapshot)
        now, updated_at = cluster.runtime.now(), cluster.metadata.updated_at
        fault = cluster.owner.fault
        return client_health(
            "open",
            metadata_age=now - updated_at if updated_at is not None else None,
            metadata_error=error_text(cluster.metadata.refresh_error),
            fault=None if fault is None else f"a background task has failed: {error_text(fault)}",
            failures=self.failures,
            brokers=_brokers(cluster, now),
            producers={one.name: one for one in producers},
            consumers={consumer.name: consumer.health() for consumer in parts.consumers},
            share_consumers={one.name: one for one in shares},
            processing={name: health() for name, health in self.processing.items()},
        )

    def _report_stalls(self, found: "ClientHealth", now: float) -> None:
        if self._stalls is None:
            from .stalls import StallTracker

            self._stalls = StallTracker(self._after)
        began, ended = self._stalls.look(found, now)
        observers = self._cluster.observers
        _notify(observers.partition_stalled, began)
        _notify(observers.stall_ended, ended)
        if not began and not ended:
            return
        counts: dict[str, int] = {}
        for name, _ in self._stalls.stalled:
            counts[name] = counts.get(name, 0) + 1
        for event in began:
            if event.lane not in self._stalled_since:
                self._stalled_since[event.lane] = now - event.seconds
                partitions = "a partition has" if counts[event.lane] == 1 else f"{counts[event.lane]} partitions have"
                _log.warning(
                    "%(client)s: %(stalled)s made no progress for %(elapsed).0f s; %(topic)s-%(partition)d: %(reason)s",
                    text={"client": event.lane, "stalled": partitions},
                    topic=event.topic,
                    partition=event.partition,
                    elapsed=event.seconds,
                    reason=event.reason,
                    count=counts[event.lane],
                )
        for name in self._stalled_since.keys() - counts.keys():
            message, text = "%(client)s: all partitions make progress again, after %(elapsed).0f s", {"client": name}
            _log.info(message, text=text, elapsed=now - self._stalled_since.pop(name))


def _call_if_open(call_soon: Callable[..., object], function: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the client's event loop has ended
        call_soon(function)


def _notify(observer: Callable[[Any], None] | None, events: Any) -> None:
    if observer is not None:
        for event in events:
            observer(event)


def _brokers(cluster: Cluster, now: float) -> "list[BrokerHealth]":
    """Return the health of the known brokers, and of the other addresses that are in use or failing."""
    from .client_health import BrokerHealth

    connections = cluster.brokers.open_connections()
    failures = cluster.brokers.failures()
    ids = {node.address: node_id for node_id, node in cluster.metadata.snapshot.nodes.items()}
    found = []
    for address in dict.fromkeys([*ids, *connections, *failures]):
        since, error = failures.get(address, (None, None))
        failing = None if since is None else now - since
        found.append(BrokerHealth(address, ids.get(address), connections.get(address, 0), failing, error_text(error)))
    return found
