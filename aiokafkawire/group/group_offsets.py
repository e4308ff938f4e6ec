"""Commits and fetches a group's offsets."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, Protocol
from uuid import UUID

import anyio

from ..cluster.cluster import Cluster
from ..cluster.connection_pool import CONTROL
from ..cluster.metadata import Snapshot
from ..cluster.request_variants import in_newest_form
from ..cluster.retry import Backoff, Deadline
from ..errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    RequestTimeout,
    StaleMemberEpoch,
    UnknownMemberId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    broker_error,
)
from ..protocol.messages.group_offsets import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchResponse
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Request, Versions
from ..types import CoordinatorType, GroupMetadata, OffsetAndMetadata, TopicPartition, normalize_offsets
from .offset_commit_messages import (
    TopicIdsOutdated,
    commit_errors,
    commit_request,
    commit_versions,
    goes_to_zookeeper,
    raise_gravest,
)
from .offset_fetch_messages import (
    Found,
    all_fetched,
    check_fetched,
    fetch_forms,
    fetched_offsets,
    only_committed,
)
from .offsets_in_zookeeper import commit_to_zookeeper, fetch_from_zookeeper

__all__ = ("NOT_ENTITLED", "GroupOffsets")

NOT_ENTITLED: Final = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
"""The errors of a commit under a membership that has ended, under an epoch that has, or during a rebalance."""

_NO_IDS: Final[Mapping[str, UUID]] = MappingProxyType({})


class FetchingMember(Protocol):
    """The member for which offsets are fetched."""

    @property
    def fetching_group(self) -> GroupMetadata | None:
        """The membership in a consumer group (KIP-848), under which offsets are fetched; None without one."""

    async def wait_for_heartbeat(self, group: GroupMetadata, error: BrokerError, deadline: Deadline) -> None:
        """Wait until a heartbeat has shown what has become of the membership ``group``, after this error."""


class GroupOffsets:
    """The offsets of one group. Requests to its coordinator use the connections of ``lane``."""

    def __init__(self, cluster: Cluster, group_id: str, lane: str = CONTROL) -> None:
        self._cluster, self._lane = cluster, lane
        self.group_id: str = group_id
        self._lock = anyio.Lock()
        self.on_result: Callable[[KafkaError | None], None] = lambda _: None
        """Receives the error of each failed request to the coordinator, and None after a response."""
        self.member: FetchingMember | None = None
        """The member that fetches the offsets, if it has joined the group."""
        self.on_commit: Callable[[Mapping[TopicPartition, OffsetAndMetadata]], None] | None = None
        """Receives the offsets of each commit that the coordinator has accepted."""

    async def close(self) -> None:
        """Close the connections of the lane."""
        await self._cluster.brokers.close_lanes(self._lane)

    async def acquire(self, deadline: Deadline) -> None:
        """Wait for other commits to end, so that no retry overtakes a later commit; call :meth:`release` afterwards.

        Raises:
            RequestTimeout: another commit was in progress until the deadline.
        """
        with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
            await self._lock.acquire()
            return
        raise RequestTimeout(f"a commit before this one took longer than {deadline.allowed:g} s")

    def release(self) -> None:
        """Let the next commit begin."""
        self._lock.release()

    @property
    def is_awaited(self) -> bool:
        """Whether another commit waits for the one in progress."""
        return self._lock.statistics().tasks_waiting > 0

    # --- committing ------------------------------------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        deadline: Deadline,
        *,
        group: GroupMetadata | None = None,
        retention_ms: int | None = None,
        skip_deleted: bool = False,
        newer: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]] | None = None,
        patience: float = math.inf,
        answered: Callable[[Mapping[TopicPartition, BrokerError | None]], None] = lambda _: None,
        topic_ids: Mapping[str, UUID] = _NO_IDS,
    ) -> frozenset[TopicPartition]:
        """Commit these offsets; return the partitions that were left out as ``skip_deleted`` says.

        If the call raises, some of the offsets may have been committed.

        Args:
            offsets: the offsets of the next records to read.
            deadline: ends the retries.
            group: the membership to commit under; by default none, which only a group without members accepts.
            retention_ms: for how long the broker keeps the offsets, instead of ``offsets.retention.minutes``; brokers
                support it from 0.9 on.
            skip_deleted: ignore partitions that have been deleted, also those whose topics were created again.
            newer: returns newer offsets of the same partitions, which each retry sends instead of ``offsets``.
            patience: the seconds to wait for a response, doubled for each retry. Retries use a new connection: a
                coordinator that waits for its replicas has accepted the commit, but reads no later request of the same
                connection. Other requests on the closed connection fail, and have to be retried.
            answered: called with each response: the error of each partition, or None.
            topic_ids: the ids of the topics that the offsets belong to, as far as the caller knows; the metadata may
                have newer ones, or lack the topics. Offsets of other topics belong to whichever topic has the name.

        Raises:
            UsageError: a partition or offset is invalid, or a static member gives ``retention_ms``.
            RequestTimeout: the deadline passed; the message has the last cause.
            UnknownMemberId: the group has members, and the committing client is not, or no longer, one of them.
            IllegalGeneration, RebalanceInProgress, FencedInstanceId: the membership may not commit.
            UnknownTopicId: a topic of ``topic_ids`` was deleted, and ``skip_deleted`` is not set.
            UnsupportedVersion: the broker is too old for static members, or for ``retention_ms``.
            KafkaError: another error that is not retriable.
        """
        given, group = normalize_offsets(offsets), group or GroupMetadata(self.group_id)
        ids, latest = _topic_ids(self._cluster, given, topic_ids), newer or (lambda: given)
        wanted, backoff = frozenset(given), self._cluster.backoff()

        def existing() -> Mapping[TopicPartition, OffsetAndMetadata]:
            return {partition: offset for partition, offset in latest().items() if partition in given}

        try:
            while given:
                check = partial(self._check_committed, group.group_id, given, skip_deleted, answered)
                try:
                    return wanted - await self._commit(group, existing, deadline, retention_ms, ids, check, patience)
                except TopicIdsOutdated as error:
                    snapshot = await self._newer_metadata(deadline)
                    known = given if skip_deleted else [at for at in given if at.topic in topic_ids]
                    gone = {at for at in known if snapshot.topic_id(at.topic) != ids[at.topic]}
                    if gone and not skip_deleted:
                        raise broker_error(ErrorCode.UNKNOWN_TOPIC_ID, str(error)) from None
                    given = {at: offset for at, offset in given.items() if at not in gone}
                    if len(known) < len(given):
                        ids = _NO_IDS  # which are of the topics that there are now
                    elif not gone:
                        await self._wait_for_coordinator(backoff, deadline, error)
            return wanted
        except UnsupportedVersion as error:
            if not goes_to_zookeeper(group, retention_ms):
                raise _explained(error, group, retention_ms) from None
            await commit_to_zookeeper(self._cluster, group, given, deadline, error)
            if self.on_commit is not None:
                self.on_commit(given)
            return wanted - frozenset(given)

    async def _commit(
        self,
        group: GroupMetadata,
        latest: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]],
        deadline: Deadline,
        retention_ms: int | None,
        ids: Mapping[str, UUID],
        check: Callable[[Mapping[str, UUID], OffsetCommitResponse], Collection[TopicPartition]],
        patience: float,
    ) -> frozenset[TopicPartition]:
        """Send the commit until the coordinator has confirmed it; return the confirmed partitions."""
        sent: Mapping[TopicPartition, OffsetAndMetadata] = {}
        confirmed: Collection[TopicPartition] = ()

        def request() -> OffsetCommitRequest:
            nonlocal sent
            sent = latest()
            return commit_request(group, sent, ids, retention_ms)

        def check_response(response: OffsetCommitResponse) -> None:
            nonlocal confirmed
            confirmed = check(ids, response)

        def failed(error: KafkaError) -> None:
            # A refused commit is a response.
            self.on_result(None if isinstance(error, BrokerError) and not error.retriable else error)

        await self._cluster.ask_coordinator(
            CoordinatorType.GROUP,
            group.group_id,
            request(),
            deadline,
            lane=self._lane,
            wanted=commit_versions(group, by_id=bool(ids), retention_ms=retention_ms),
            check=check_response,
            failed=failed,
            newer=request,
            patience=patience,
        )
        self.on_result(None)
        if self.on_commit is not None and confirmed:
            self.on_commit({partition: sent[partition] for partition in confirmed})
        return frozenset(confirmed)

    def _check_committed(
        self,
        group_id: str,
        given: Collection[TopicPartition],
        skip_deleted: bool,
        answered: Callable[[Mapping[TopicPartition, BrokerError | None]], None],
        ids: Mapping[str, UUID],
        response: OffsetCommitResponse,
    ) -> Collection[TopicPartition]:
        # An error leads to a metadata refresh, which the next response is checked against.
        deleted = [partition for partition in given if self._is_deleted(partition)] if skip_deleted else []
        errors = commit_errors(group_id, given, response, ids, deleted)
        answered(errors)
        raise_gravest(errors)
        return errors.keys()

    async def _newer_metadata(self, deadline: Deadline) -> Snapshot:
        """Wait for newer metadata; return what there is if none arrives in time."""
        seen = self._cluster.metadata.snapshot
        self._cluster.metadata.mark_stale(seen)
        with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
            return await self._cluster.metadata.wait_for_update(seen)
        return seen

    async def _wait_for_coordinator(self, backoff: Backoff, deadline: Deadline, error: KafkaError) -> None:
        """Wait before a request is repeated, since the coordinator may lag behind the metadata.

        Raises:
            RequestTimeout: the deadline has passed.
        """
        await anyio.sleep(min(backoff.next(), deadline.left(self._cluster.runtime.now())))
        if deadline.passed(self._cluster.runtime.now()):
            raise RequestTimeout(f"no success within {deadline.allowed:g} s: {error}") from error

    def _is_deleted(self, partition: TopicPartition) -> bool:
        topic = self._cluster.metadata.snapshot.topics.get(partition.topic)
        return topic is None or topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # --- looking up ------------------------------------------------------------------------------------

    async def committed(
        self,
        partitions: Collection[TopicPartition],
        deadline: Deadline,
        *,
        stable: bool = True,
        topic_ids: Mapping[str, UUID] = _NO_IDS,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition; None if there is none.

        With ``stable``, wait for transactions that are about to change the offsets (KIP-447). ``topic_ids`` are the ids
        of topics that were assigned by id, which the metadata may not have yet.

        Raises:
            RequestTimeout: the deadline passed; the message has the last cause.
            KafkaError: another error that is not retriable.
        """
        found = await self._fetch(partitions, deadline, partly=False, stable=stable, topic_ids=topic_ids)
        return {partition: offset for partition, offset in found.items() if not isinstance(offset, BrokerError)}

    async def look_up(
        self, partitions: Collection[TopicPartition], deadline: Deadline, topic_ids: Mapping[str, UUID] = _NO_IDS
    ) -> Found:
        """Return each partition's committed offset or error. Raises as :meth:`committed` if all partitions fail."""
        return await self._fetch(partitions, deadline, partly=True, stable=True, topic_ids=topic_ids)

    async def all_committed(
        self, deadline: Deadline, *, stable: bool = True
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return all committed offsets of the group, in one request (KIP-88); empty if the group does not exist.

        For brokers before 0.10.2, fetch the offsets of all partitions of the cluster. Raises as :meth:`committed`.
        """
        group_id = self.group_id

        def read(response: OffsetFetchResponse) -> Found:
            found = all_fetched(group_id, response)
            check_fetched(found)
            return found

        try:
            return only_committed(await self._ask(None, deadline, {}, read, stable=stable))
        except UnsupportedVersion:
            partitions = await _all_partitions(self._cluster, deadline)
        if not partitions:
            return {}
        found = await self._fetch(partitions, deadline, partly=True, stable=False)
        # A topic that was deleted meanwhile has no offsets.
        gone = [partition for partition, offset in found.items() if isinstance(offset, UnknownTopicOrPartition)]
        check_fetched({partition: offset for partition, offset in found.items() if partition not in gone})
        return only_committed(found)

    async def _fetch(
        self,
        partitions: Collection[TopicPartition],
        deadline: Deadline,
        *,
        partly: bool,
        stable: bool,
        topic_ids: Mapping[str, UUID] = _NO_IDS,
    ) -> Found:
        """Fetch offsets by topic id as far as possible: by its name, a new topic may have the offsets of an old one."""
        group_id, ids = self.group_id, _topic_ids(self._cluster, partitions, topic_ids)

        def read(response: OffsetFetchResponse) -> Found:
            found = fetched_offsets(group_id, partitions, response, ids)
            check_fetched(found, partly=partly)
            return found

        backoff = self._cluster.backoff()
        try:
            while True:
                try:
                    return await self._ask(partitions, deadline, ids, read, stable=stable)
                except TopicIdsOutdated as error:
                    await self._newer_metadata(deadline)
                    newer = _topic_ids(self._cluster, partitions)
                    if newer == ids:
                        await self._wait_for_coordinator(backoff, deadline, error)
                    ids = newer
        except UnsupportedVersion as error:
            return await fetch_from_zookeeper(self._cluster, group_id, partitions, deadline, error, partly=partly)

    async def _ask(
        self,
        partitions: Collection[TopicPartition] | None,
        deadline: Deadline,
        ids: Mapping[str, UUID],
        read: Callable[[OffsetFetchResponse], Found],
        *,
        stable: bool,
    ) -> Found:
        """Send OffsetFetch in the coordinator's newest version; retry if ``read`` raises a retriable error.

        If the coordinator finds the member's epoch outdated, or no longer knows the member, wait for the next
        heartbeat, and ask again.
        """
        backoff = self._cluster.backoff()

        async def ask(request: Request[OffsetFetchResponse], wanted: Versions) -> OffsetFetchResponse:
            return await self._cluster.ask_coordinator(
                CoordinatorType.GROUP,
                self.group_id,
                request,
                deadline,
                lane=self._lane,
                wanted=wanted,
                check=_checked(read),
            )

        while True:
            group = self.member.fetching_group if self.member is not None else None
            try:
                forms = fetch_forms(self.group_id, partitions, ids, stable=stable, member=group)
                return read(await in_newest_form(forms, ask))
            except (StaleMemberEpoch, UnknownMemberId) as error:
                if group is None or self.member is None:
                    raise
                await self.member.wait_for_heartbeat(group, error, deadline)
                if deadline.passed(self._cluster.runtime.now()):
                    raise RequestTimeout(f"no offsets were fetched within {deadline.allowed:g} s: {error}") from error
            await anyio.sleep(min(backoff.next(), deadline.left(self._cluster.runtime.now())))


async def _all_partitions(cluster: Cluster, deadline: Deadline) -> list[TopicPartition]:
    """Return all partitions of all topics that this client may see."""
    response = await cluster.ask_metadata(None, deadline)
    return [
        TopicPartition(topic.name, partition.partition_index)
        for topic in response.topics
        if topic.name is not None
        for partition in topic.partitions
    ]


def _topic_ids(
    cluster: Cluster, partitions: Iterable[TopicPartition], known: Mapping[str, UUID] = _NO_IDS
) -> Mapping[str, UUID]:
    """Return the ids of the partitions' topics; empty unless all are known, since a request has either ids or names."""
    snapshot = cluster.metadata.snapshot
    ids = {name: known.get(name) or snapshot.topic_id(name) for name in {partition.topic for partition in partitions}}
    return _NO_IDS if ZERO_UUID in ids.values() else ids


def _checked(read: Callable[[OffsetFetchResponse], Found]) -> Callable[[OffsetFetchResponse], None]:
    def check(response: OffsetFetchResponse) -> None:
        read(response)

    return check


def _explained(error: UnsupportedVersion, group: GroupMetadata, retention_ms: int | None) -> UnsupportedVersion:
    if retention_ms is not None:
        why = "retention_ms needs OffsetCommit v2-4, which brokers have since 0.9"
        return UnsupportedVersion(f"{why}: {error}")
    if group.group_instance_id is not None:
        return UnsupportedVersion(
            f"static members (group_instance_id) need OffsetCommit v7+, which brokers have since 2.3: {error}"
        )
    return error
