"""The topic names and fetch sessions that a proxy learns from the traffic, for fault rules that select topics.

Requests name topics by id (KIP-516), and those of a fetch session only partitions that changed (KIP-227, KIP-932).
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final, TypeAlias
from uuid import UUID

from ...protocol.messages.fetch import FetchRequest, FetchResponse
from ...protocol.messages.metadata import DescribeTopicPartitionsResponse, MetadataResponse
from ...protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from ...protocol.messages.topics import CreateTopicsResponse
from ...protocol.primitives import ZERO_UUID
from ...protocol.schema import Request, Response

__all__ = ("ObservedCluster", "SessionPartition")

SessionPartition: TypeAlias = tuple[str | UUID, int]
"""A partition as requests name it: the topic's id since Fetch v13, and its name before; and the partition's index."""

_MAX_NAMES: Final = 100_000
_MAX_SESSIONS: Final = 10_000
_BY_ID: Final = 13  # the first version of Fetch with topic ids

_Session: TypeAlias = dict[SessionPartition, None]


class ObservedCluster:
    """The names of topics by id, and the partitions of the fetch sessions and share sessions of each broker."""

    def __init__(self) -> None:
        self._names: OrderedDict[UUID, str] = OrderedDict()
        self._sessions: OrderedDict[object, _Session] = OrderedDict()

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of a topic; None if no response had it."""
        return self._names.get(topic_id)

    def named(self, partition: SessionPartition) -> tuple[str | None, int]:
        """Return the name of a partition's topic, if it is known, and the partition's index."""
        topic, index = partition
        return (self.name_of(topic) if isinstance(topic, UUID) else topic), index

    def session(self, node: int, session_id: int) -> list[tuple[str | None, int]]:
        """Return the topics and indexes of the partitions in a fetch session (KIP-227); empty if it is unknown."""
        return [self.named(partition) for partition in self._sessions.get((node, session_id), ())]

    def share_session(self, node: int, group_id: str, member_id: str) -> list[tuple[UUID, int]]:
        """Return the topic ids and indexes of the partitions in a share session (KIP-932); empty if it is unknown."""
        session = self._sessions.get((node, group_id, member_id), ())
        return [(topic, index) for topic, index in session if isinstance(topic, UUID)]

    def partitions(self, node: int, request: Request[Any], version: int) -> list[SessionPartition]:
        """Return the partitions that a Fetch or ShareFetch reads: those in it, and those of its session."""
        if isinstance(request, FetchRequest):
            added, forgotten = _asked(request, version), _forgotten(request, version)
            known = self._sessions.get((node, request.session_id), {}) if request.session_epoch > 0 else {}
        elif isinstance(request, ShareFetchRequest):
            added, forgotten = _asked(request, _BY_ID), _forgotten(request, _BY_ID)
            key = (node, request.group_id or "", request.member_id or "")
            known = self._sessions.get(key, {}) if request.share_session_epoch > 0 else {}
        else:
            return []
        gone = set(forgotten)
        return [partition for partition in dict.fromkeys((*known, *added)) if partition not in gone]

    def learn(self, node: int, request: Request[Any], version: int, response: Response) -> None:
        """Record the topics and sessions in a request that was passed on and in the broker's response."""
        if isinstance(response, MetadataResponse | CreateTopicsResponse | DescribeTopicPartitionsResponse):
            for topic in response.topics:
                if topic.name and topic.topic_id != ZERO_UUID:
                    _store(self._names, topic.topic_id, topic.name, _MAX_NAMES)
        elif isinstance(request, FetchRequest) and isinstance(response, FetchResponse):
            partitions = self.partitions(node, request, version)
            self._sessions.pop((node, request.session_id), None)
            if response.session_id:
                _store(self._sessions, (node, response.session_id), dict.fromkeys(partitions), _MAX_SESSIONS)
        elif isinstance(request, ShareFetchRequest) and isinstance(response, ShareFetchResponse):
            partitions = self.partitions(node, request, version)
            key = (node, request.group_id or "", request.member_id or "")
            self._sessions.pop(key, None)
            if request.share_session_epoch >= 0 and not response.error_code:
                _store(self._sessions, key, dict.fromkeys(partitions), _MAX_SESSIONS)


def _store(table: "OrderedDict[Any, Any]", key: object, value: object, limit: int) -> None:
    """Store a value as the newest of the table, and remove the oldest beyond the limit."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > limit:
        table.popitem(last=False)


def _asked(request: FetchRequest | ShareFetchRequest, version: int) -> Iterator[SessionPartition]:
    if isinstance(request, FetchRequest):
        for topic in request.topics:
            for partition in topic.partitions:
                yield _key(topic, version), partition.partition
    else:
        for shared in request.topics:
            for part in shared.partitions:
                yield shared.topic_id, part.partition_index


def _forgotten(request: FetchRequest | ShareFetchRequest, version: int) -> Iterator[SessionPartition]:
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield _key(topic, version), index


def _key(topic: Any, version: int) -> str | UUID:
    key: str | UUID = topic.topic_id if version >= _BY_ID else topic.topic
    return key
