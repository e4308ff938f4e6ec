"""Logs the refreshes of the metadata: those that fail for long, partitions without a leader, and another cluster."""

import logging
from collections.abc import Callable, Mapping

from ..errors import KafkaError
from ..event_log import EventLog, TroubleLog
from ..types import Address, TopicPartition
from .bootstrap_errors import lasting_error
from .metadata import Snapshot

__all__ = ("MetadataLog",)

_log = EventLog("aiokafkawire.cluster")


class MetadataLog:
    """The log of one client's metadata: trouble is a warning only once it has lasted for 10 s."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._refreshes = TroubleLog(_log, now, first=logging.DEBUG)
        self._elections = TroubleLog(_log, now, first=logging.DEBUG)
        self._leaderless: set[TopicPartition] = set()

    def failed(self, errors: Mapping[Address, KafkaError]) -> None:
        """Log that no address has answered; ``errors`` are those of the addresses."""
        error = lasting_error(errors) or next(iter(errors.values()))
        message = "cannot refresh the metadata, asked at all addresses (%(addresses)d) and retrying: %(error)s"
        self._refreshes.failed("refresh", message, text={"addresses": len(errors)}, error=error)

    def refreshed(self, snapshot: Snapshot) -> None:
        """Log a refresh, and which partitions have no leader, or have one again."""
        self._refreshes.ended("refresh", "refreshed the metadata")
        _log.debug(
            "metadata: %(brokers)d brokers, %(count)d topics",
            text={"brokers": len(snapshot.nodes)},
            count=len(snapshot.topics),
            cluster_id=snapshot.cluster_id,
        )
        leaderless = set(snapshot.leaderless)
        for partition in sorted(leaderless):
            message = "%(partition)s has no leader, so its records wait: check the brokers that have its replicas"
            self._elections.failed(partition, message, partition=partition)
        for partition in sorted(self._leaderless - leaderless):
            self._elections.ended(partition, "%(partition)s has a leader", partition=partition)
        self._leaderless = leaderless

    def other_cluster(self, before: str | None, after: str | None) -> None:
        """Log that the brokers belong to another cluster."""
        message = (
            "the brokers belong to another cluster now: %(cluster_id)s instead of %(before)s; dropping the metadata"
        )
        _log.warning(message, text={"before": before}, cluster_id=after)
