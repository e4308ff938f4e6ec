"""The admin's requests about share groups and their offsets (KIP-932)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import (
    ErrorCode,
    TopicAuthorizationFailed,
    UnsupportedVersion,
    UnsupportedVersionAnswered,
    WireError,
    broker_error,
)
from ..group.consumer_protocol import by_topic
from ..protocol.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DescribedGroup,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    ShareGroupDescribeRequest,
)
from ..protocol.schema import Request, Response
from ..types import CoordinatorType, TopicPartition
from .descriptions import ShareGroupDescription, SharePartitionOffsetInfo
from .group_offsets import by_coordinator
from .group_requests import delete_groups
from .share_group_descriptions import (
    check_described,
    check_offsets,
    described_groups,
    offsets_in,
    share_group_description,
)

__all__ = ("alter_offsets", "delete_offsets", "delete_share_groups", "describe_share_groups", "list_offsets")

R = TypeVar("R", bound=Response)

_LANE: Final = "admin"
_NEEDS: Final = "share groups need brokers since 4.2, or 4.1 with the feature share.version (KIP-932)"


async def describe_share_groups(
    cluster: Cluster, group_ids: Collection[str], deadline: Deadline, *, operations: bool
) -> dict[str, ShareGroupDescription]:
    """Ask the groups' coordinators for descriptions. Raise as :meth:`Admin.describe_share_groups`."""

    def question(group_ids: list[str]) -> ShareGroupDescribeRequest:
        return ShareGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=operations)

    requested = list(dict.fromkeys(group_ids))
    found: dict[str, DescribedGroup] = {}
    for together in await by_coordinator(cluster, requested, deadline) if len(requested) > 1 else []:
        found |= described_groups(await _ask(cluster, together[0], question(together), deadline, lambda _: None))
    descriptions = {}
    for group_id in requested:
        # Retry a group on its own if its coordinator has moved or answered with an error.
        if group_id not in found:
            check = partial(check_described, group_id)
            found |= described_groups(await _ask(cluster, group_id, question([group_id]), deadline, check))
        node = await cluster.coordinator(CoordinatorType.GROUP, group_id, deadline)
        descriptions[group_id] = share_group_description(found[group_id], node.address)
    return descriptions


async def delete_share_groups(cluster: Cluster, group_ids: Collection[str], deadline: Deadline) -> None:
    """Delete groups, if all of them are share groups. Raise as :meth:`Admin.delete_share_groups`."""
    # DeleteGroups deletes groups of any type.
    await describe_share_groups(cluster, group_ids, deadline, operations=False)
    await delete_groups(cluster, group_ids, deadline)


# --- offsets -------------------------------------------------------------------------------------------------------


async def list_offsets(
    cluster: Cluster, group_id: str, partitions: Collection[TopicPartition] | None, deadline: Deadline
) -> dict[TopicPartition, SharePartitionOffsetInfo]:
    """Return a group's offsets of ``partitions``, or of all for None. Raise as :meth:`Admin.list_share_group_offsets`.

    The request is for all partitions, since Kafka 4.3 never answers a request for a partition that does not exist.
    Brokers answer without an error if there is no such group, so an empty response leads to a second request.
    """
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[group])
    response = await _ask(cluster, group_id, request, deadline, partial(check_offsets, group_id))
    offsets = offsets_in(group_id, response)
    if not offsets:
        await _check_exists(cluster, group_id, deadline)
    if partitions is None:
        return offsets
    requested = set(partitions)
    return {partition: offset for partition, offset in offsets.items() if partition in requested}


async def _check_exists(cluster: Cluster, group_id: str, deadline: Deadline) -> None:
    request = ShareGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    try:
        await _ask(cluster, group_id, request, deadline, partial(check_described, group_id))
    except TopicAuthorizationFailed:
        return  # the group exists


async def alter_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int], deadline: Deadline
) -> None:
    """Set the offsets of a group without members. Raise as :meth:`Admin.alter_share_group_offsets`."""
    if not offsets:
        return
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(
                    partition_index=index, start_offset=offsets[TopicPartition(name, index)]
                )
                for index in indexes
            ],
        )
        for name, indexes in by_topic(offsets).items()
    ]
    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    # A coordinator knows a new topic a moment later, so a missing partition is retried like any retriable error.
    await _ask(cluster, group_id, request, deadline, partial(_check_altered, group_id, offsets))


def _check_altered(
    group_id: str, offsets: Mapping[TopicPartition, int], response: AlterShareGroupOffsetsResponse
) -> None:
    what = f"AlterShareGroupOffsets of group {group_id!r}"
    _raise_for(response.error_code, what, response.error_message)
    answers = {
        TopicPartition(topic.topic_name, answer.partition_index): answer
        for topic in response.responses
        for answer in topic.partitions
    }
    for partition in offsets:
        if partition not in answers:
            raise WireError(f"the response to {what} lacks the requested {partition}")
        _raise_for(answers[partition].error_code, f"{what} for {partition}", answers[partition].error_message)


async def delete_offsets(cluster: Cluster, group_id: str, topics: Collection[str], deadline: Deadline) -> None:
    """Delete the offsets of a group without members. Raise as :meth:`Admin.delete_share_group_offsets`."""
    names = list(dict.fromkeys(topics))
    if not names:
        return
    what = f"DeleteShareGroupOffsets of group {group_id!r}"

    def check(response: DeleteShareGroupOffsetsResponse) -> None:
        _raise_for(response.error_code, what, response.error_message)

    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    )
    response = await _ask(cluster, group_id, request, deadline, check)
    answers = {topic.topic_name: topic for topic in response.responses}
    for name in names:
        if name not in answers:
            raise WireError(f"the response to {what} lacks the requested topic {name!r}")
        _raise_for(answers[name].error_code, f"{what} for topic {name!r}", answers[name].error_message)


# --- requests ------------------------------------------------------------------------------------------------------


async def _ask(
    cluster: Cluster, group_id: str, request: Request[R], deadline: Deadline, check: Callable[[R], None]
) -> R:
    """Send a request to a group's coordinator. Raise UnsupportedVersion if it does not support share groups."""
    with _explained():
        return await cluster.ask_coordinator(
            CoordinatorType.GROUP, group_id, request, deadline, lane=_LANE, check=check
        )


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (UnsupportedVersion, UnsupportedVersionAnswered) as refused:
        raise UnsupportedVersion(f"{_NEEDS}: {refused}") from None


def _raise_for(code: int, request: str, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise broker_error(code, f"{request}: {message}" if message else request)
