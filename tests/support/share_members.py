"""Members of share groups that say what a test lets them say, and what a broker answers."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, TypeAlias, cast
from uuid import UUID, uuid4

import anyio
import attrs

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from aiokafkawire.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeResponsePartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)
from aiokafkawire.protocol.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from aiokafkawire.records.batch import AnyReader, split
from aiokafkawire.testing.configs.types import ConfigKind

from .consumer_members import wait_for_configs
from .group_members import new_group
from .patience import PATIENCE
from .raw_client import RawClient

__all__ = (
    "ACCEPT",
    "GAP",
    "REJECT",
    "RELEASE",
    "RENEW",
    "Acks",
    "ShareMember",
    "acquired",
    "configure",
    "kafka_id",
    "new_share_group",
    "offsets_of",
)

_SET, _DELETE = range(2)
_CONFIGS = (
    "share_auto_offset_reset",
    "share_delivery_count_limit",
    "share_heartbeat_interval_ms",
    "share_isolation_level",
    "share_record_lock_duration_ms",
)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

Acks: TypeAlias = tuple[int, int, *tuple[int, ...]]
"""The first offset, the last offset, and one type for all of them or one for each."""


def kafka_id(number: UUID) -> str:
    """The id as Kafka's clients write it."""
    return urlsafe_b64encode(number.bytes).decode().rstrip("=")


@attrs.define
class ShareMember:
    """A member of a share group, over a connection of its own."""

    client: RawClient
    group: str
    member_id: str = attrs.field(factory=lambda: kafka_id(uuid4()))
    epoch: int = 0
    """The epoch of the membership, for the next heartbeat."""
    session: int = 0
    """The epoch of the share session, for the next fetch or acknowledgement."""
    version: int = 2
    assignment: list[tuple[UUID, int]] = attrs.field(factory=list)

    async def heartbeat(self, *topics: str, epoch: int | None = None, **fields: Any) -> ShareGroupHeartbeatResponse:
        """One heartbeat; the answer's epoch and assignment are kept."""
        known: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch if epoch is None else epoch,
            "subscribed_topic_names": list(topics) or None,
        }
        answer = await self.client.ask(ShareGroupHeartbeatRequest(**known | fields), 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assignment = [
                    (topic.topic_id, index)
                    for topic in answer.assignment.topic_partitions
                    for index in sorted(topic.partitions)
                ]
        return answer

    async def join(self, *topics: str, partitions: int = 1) -> None:
        """Join and wait until the assignment has as many partitions."""
        answer = await self.heartbeat(*topics, epoch=0)
        assert not answer.error_code, answer
        with anyio.fail_after(PATIENCE):
            while len(self.assignment) < partitions:
                assert not (await self.heartbeat()).error_code

    async def leave(self) -> ShareGroupHeartbeatResponse:
        return await self.heartbeat(epoch=-1)

    async def ask(
        self,
        topic: UUID | None,
        *acks: Acks,
        partitions: Sequence[int] = (0,),
        session: int | None = None,
        forget: Iterable[tuple[UUID, int]] = (),
        **fields: Any,
    ) -> ShareFetchResponse:
        """One ShareFetch, with acknowledgements for the first partition; no topic is nothing new."""
        topics = []
        if topic is not None:
            named = [FetchPartition(partition_index=index, acknowledgement_batches=[]) for index in partitions]
            named[0].acknowledgement_batches = _batches(acks)
            topics = [FetchTopic(topic_id=topic, partitions=named)]
        known: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "share_session_epoch": self.session if session is None else session,
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": topics,
            "forgotten_topics_data": [ForgottenTopic(topic_id=name, partitions=[index]) for name, index in forget],
        }
        request = ShareFetchRequest(**known | fields)
        answer = await self.client.ask(request, self.version)
        if not answer.error_code:
            self._next(request.share_session_epoch)
        return answer

    async def fetch(self, topic: UUID | None, *acks: Acks, **fields: Any) -> ShareFetchResponsePartitionData | None:
        """The first partition of a fetch's answer."""
        answer = await self.ask(topic, *acks, **fields)
        assert not answer.error_code, answer
        return answer.responses[0].partitions[0] if answer.responses else None

    async def acknowledgement(
        self, topic: UUID, *acks: Acks, partition: int = 0, session: int | None = None, **fields: Any
    ) -> ShareAcknowledgeResponse:
        """One ShareAcknowledge."""
        named = AcknowledgePartition(partition_index=partition, acknowledgement_batches=_batches(acks))
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.session if session is None else session,
            topics=[AcknowledgeTopic(topic_id=topic, partitions=[named])],
            **fields,
        )
        answer = await self.client.ask(request, self.version)
        if not answer.error_code:
            self._next(request.share_session_epoch)
        return answer

    async def acknowledge(self, topic: UUID, *acks: Acks, **fields: Any) -> ShareAcknowledgeResponsePartitionData:
        """The first partition of an acknowledgement's answer."""
        answer = await self.acknowledgement(topic, *acks, **fields)
        assert not answer.error_code, answer
        return answer.responses[0].partitions[0]

    async def fetched(self, topic: UUID, *acks: Acks, **fields: Any) -> list[tuple[int, int, int]]:
        """What a fetch acquires, as soon as it acquires something."""
        with anyio.fail_after(PATIENCE):
            while not (found := acquired(await self.fetch(topic, *acks, max_wait_ms=500, **fields))):
                acks = ()
        return found

    def _next(self, epoch: int) -> None:
        self.session = epoch + 1


def _batches(acks: Iterable[Acks]) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, *types in acks
    ]


def acquired(data: ShareFetchResponsePartitionData | None) -> list[tuple[int, int, int]]:
    """The acquired ranges: first offset, last offset, delivery count."""
    if data is None:
        return []
    assert ErrorCode(data.error_code) is ErrorCode.NONE, data
    return [(records.first_offset, records.last_offset, records.delivery_count) for records in data.acquired_records]


def offsets_of(data: ShareFetchResponsePartitionData | None) -> list[int]:
    """The offsets of all records that came along, acquired or not."""
    if data is None:
        return []
    found: list[int] = []
    for batch in split(memoryview(data.records or b"")):
        records = cast("AnyReader[bytes, bytes]", batch.records("", data.partition_index))
        found += [record.offset for record in records]
    return found


async def configure(client: RawClient, group: str, **configs: str | None) -> None:
    """Set configs of a group, and wait until they are known; delete those that are None; underscores stand for dots."""
    given = [
        IncrementalAlterConfigsRequestAlterableConfig(
            name=key.replace("_", "."), config_operation=_SET if value is not None else _DELETE, value=value
        )
        for key, value in configs.items()
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=ConfigKind.GROUP, resource_name=group, configs=given
    )
    answer = await client.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert not answer.responses[0].error_code, answer
    wanted = {config.name: config.value for config in given if config.value is not None}
    if wanted:
        await wait_for_configs(client, group, wanted)


async def new_share_group(client: RawClient) -> AsyncIterator[str]:
    """A name that no group has, whose coordinator is ready; at last the group's configs are deleted."""
    group = await new_group(client)
    yield group
    await configure(client, group, **dict.fromkeys(_CONFIGS))
