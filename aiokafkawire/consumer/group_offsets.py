"""Commits a group's offsets and looks them up: asks the group's coordinator."""

from collections.abc import Collection, Mapping
from functools import partial

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import BrokerError, UnsupportedVersion
from ..protocol.messages.group_offsets import OffsetFetchResponse
from ..types import CoordinatorType, GroupMetadata, OffsetAndMetadata, TopicPartition, given_offsets
from .commits import (
    COMMIT_VERSIONS,
    Found,
    check_committed,
    check_fetched,
    commit_request,
    fetch_questions,
    fetched_offsets,
)

__all__ = ("GroupOffsets",)


class GroupOffsets:
    """The offsets of one group."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self._cluster = cluster
        self.group: GroupMetadata = GroupMetadata(group_id)
        """Who commits: nobody's member, until this client joins groups."""

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], deadline: Deadline) -> None:
        """Commit these offsets; it may be that only some are, if it raises.

        Raises:
            UsageError: a partition is none, or has no offset.
            RequestTimeout: not in time; the message has the last cause.
            UnknownMemberId: the group has members, and they commit.
            KafkaError: another error that no retry mends.
        """
        given = given_offsets(offsets)
        await self._cluster.ask_coordinator(
            CoordinatorType.GROUP,
            self.group.group_id,
            commit_request(self.group, given),
            deadline,
            wanted=COMMIT_VERSIONS,
            check=partial(check_committed, self.group.group_id, given),
        )

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What is committed for each partition, None for nothing; waits for transactions that are about to change it.

        Raises:
            RequestTimeout: not in time; the message has the last cause.
            KafkaError: an error that no retry mends.
        """
        found = await self._fetch(partitions, deadline, partly=False)
        return {where: one for where, one in found.items() if not isinstance(one, BrokerError)}

    async def look_up(self, partitions: Collection[TopicPartition], deadline: Deadline) -> Found:
        """As :meth:`committed`, but one partition that has an error instead holds up no other."""
        return await self._fetch(partitions, deadline, partly=True)

    async def _fetch(self, partitions: Collection[TopicPartition], deadline: Deadline, *, partly: bool) -> Found:
        group_id = self.group.group_id

        def check(response: OffsetFetchResponse) -> None:
            check_fetched(fetched_offsets(group_id, partitions, response), partly=partly)

        refused: UnsupportedVersion | None = None
        for request, wanted in fetch_questions(group_id, partitions):
            try:
                response = await self._cluster.ask_coordinator(
                    CoordinatorType.GROUP, group_id, request, deadline, wanted=wanted, check=check
                )
            except UnsupportedVersion as older:
                refused = older
            else:
                return fetched_offsets(group_id, partitions, response)
        assert refused is not None  # there is a question
        raise refused
