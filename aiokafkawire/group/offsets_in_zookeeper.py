"""Commits and fetches a group's offsets in ZooKeeper, through brokers whose coordinators do not store offsets."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import UnsupportedVersion
from ..protocol.messages.group_offsets import OffsetFetchResponse
from ..types import GroupMetadata, OffsetAndMetadata, TopicPartition
from .offset_commit_messages import IN_ZOOKEEPER, check_committed, commit_request
from .offset_fetch_messages import Found, check_fetched, zookeeper_offsets, zookeeper_question

__all__ = ("commit_to_zookeeper", "fetch_from_zookeeper")

_WITHOUT_OFFSETS: Final = "0.8.0"


async def commit_to_zookeeper(
    cluster: Cluster,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    deadline: Deadline,
    refused: UnsupportedVersion,
) -> None:
    """Commit offsets; raise as :meth:`GroupOffsets.commit`. ``refused`` is the error of the coordinator's versions."""
    try:
        await cluster.ask(
            cluster.least_loaded,
            commit_request(group, offsets),
            deadline,
            wanted=IN_ZOOKEEPER,
            check=partial(check_committed, group.group_id, offsets),
        )
    except UnsupportedVersion:
        raise _without_offsets(cluster, group.group_id, refused) from None


async def fetch_from_zookeeper(
    cluster: Cluster,
    group_id: str,
    partitions: Collection[TopicPartition],
    deadline: Deadline,
    refused: UnsupportedVersion,
    *,
    partly: bool,
) -> Found:
    """Return the offset or the error of each partition; raise for one that fails, or with ``partly`` if all fail.

    ``refused`` is the error of the coordinator's versions.
    """

    def read(response: OffsetFetchResponse) -> Found:
        found = zookeeper_offsets(group_id, partitions, response)
        check_fetched(found, partly=partly)
        return found

    def check(response: OffsetFetchResponse) -> None:
        read(response)

    request = zookeeper_question(group_id, partitions)
    try:
        return read(await cluster.ask(cluster.least_loaded, request, deadline, wanted=IN_ZOOKEEPER, check=check))
    except UnsupportedVersion:
        raise _without_offsets(cluster, group_id, refused) from None


def _without_offsets(cluster: Cluster, group_id: str, refused: UnsupportedVersion) -> UnsupportedVersion:
    """Return the error to raise: ``refused``, or one with advice if a broker is 0.8.0, which stores no offsets."""
    brokers = [cluster.brokers.known(node.address) for node in cluster.metadata.snapshot.nodes.values()]
    if not any(known is not None and known.release == _WITHOUT_OFFSETS for known in brokers):
        return refused
    return UnsupportedVersion(
        f"Kafka {_WITHOUT_OFFSETS} stores no committed offsets (they came with Kafka 0.8.1): open the consumer "
        f"without group_id, and store the offsets of group {group_id!r} in your application: {refused}"
    )
