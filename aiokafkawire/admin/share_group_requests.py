"""The admin's requests about share groups and their offsets (KIP-932)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import (
    KafkaError,
    RequestTimeout,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    UnsupportedVersionAnswered,
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
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
)
from ..protocol.schema import Request, Response
from ..types import CoordinatorType, TopicPartition
from .concurrent_outcomes import timed_out
from .coordinator_outcomes import ask_coordinators, with_coordinators
from .descriptions import ShareGroupDescription, SharePartitionOffsetInfo
from .group_requests import delete_of_type
from .outcomes import Outcomes
from .repeats import Repeats
from .response_errors import raise_for
from .share_group_descriptions import (
    altered_offsets,
    check_described,
    check_offsets,
    deleted_offsets,
    offsets_by_group,
    offsets_in,
    share_group_description,
    share_group_outcomes,
)

__all__ = (
    "alter_offsets",
    "delete_offsets",
    "delete_share_groups",
    "describe_share_groups",
    "list_offsets",
    "list_offsets_of_groups",
)

R = TypeVar("R", bound=Response)

_LANE: Final = "admin"
_NEEDS: Final = "share groups need brokers since 4.2, or 4.1 with the feature share.version (KIP-932)"


async def describe_share_groups(
    cluster: Cluster, group_ids: Collection[str], deadline: Deadline, *, operations: bool
) -> Outcomes[str, ShareGroupDescription]:
    """Ask the groups' coordinators for descriptions; return the outcome of each group.

    Raise UnsupportedVersion if all coordinators are too old.
    """

    def request(group_ids: list[str]) -> ShareGroupDescribeRequest:
        return ShareGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=operations)

    found: Outcomes[str, DescribedGroup] = await ask_coordinators(
        cluster,
        CoordinatorType.GROUP,
        group_ids,
        deadline,
        request=request,
        outcomes=share_group_outcomes,
        needs=_NEEDS,
    )

    return await with_coordinators(
        cluster,
        CoordinatorType.GROUP,
        found,
        deadline,
        lambda group, node: share_group_description(group, node.address),
    )


async def delete_share_groups(cluster: Cluster, group_ids: Collection[str], deadline: Deadline) -> Outcomes[str, None]:
    """Delete those of the groups that are share groups; return None or the error for each group."""

    async def describe(some: list[str]) -> Outcomes[str, ShareGroupDescription]:
        return await describe_share_groups(cluster, some, deadline, operations=False)

    return await delete_of_type(cluster, group_ids, deadline, describe)


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


async def list_offsets_of_groups(
    cluster: Cluster, group_ids: Collection[str], deadline: Deadline
) -> Outcomes[str, dict[TopicPartition, SharePartitionOffsetInfo]]:
    """Ask each coordinator for all offsets of its groups; return the offsets or the error of each group.

    Raise UnsupportedVersion if all coordinators are too old.
    """

    def request(some: list[str]) -> Request[DescribeShareGroupOffsetsResponse]:
        groups = [DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None) for group_id in some]
        return DescribeShareGroupOffsetsRequest(groups=groups)

    return await ask_coordinators(
        cluster,
        CoordinatorType.GROUP,
        group_ids,
        deadline,
        request=request,
        outcomes=offsets_by_group,
        needs=_NEEDS,
    )


async def _check_exists(cluster: Cluster, group_id: str, deadline: Deadline) -> None:
    request = ShareGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    try:
        await _ask(cluster, group_id, request, deadline, partial(check_described, group_id))
    except TopicAuthorizationFailed:
        return  # the group exists


async def alter_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int], deadline: Deadline
) -> Outcomes[TopicPartition, int]:
    """Set the offsets of a group without members; return the offset or the error of each partition.

    Raise as :meth:`Admin.alter_share_group_offsets` if the error is about the whole group, or there is only one
    partition.
    """
    if not offsets:
        return {}
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
    answered: Outcomes[TopicPartition, int] = {}

    def check(response: AlterShareGroupOffsetsResponse) -> None:
        answered.clear()
        answered.update(altered_offsets(group_id, offsets, response))
        errors = [outcome for outcome in answered.values() if isinstance(outcome, KafkaError)]
        if errors:
            raise min(errors, key=lambda error: getattr(error, "retriable", False))

    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    try:
        # A coordinator knows a new topic a moment later, so a missing partition is retried like any retriable error.
        await _ask(cluster, group_id, request, deadline, check)
    except KafkaError as failure:
        if len(offsets) == 1 or not answered:
            raise
        return timed_out(answered, deadline) if isinstance(failure, RequestTimeout) else answered
    return answered


async def delete_offsets(
    cluster: Cluster, group_id: str, topics: Collection[str], deadline: Deadline
) -> Outcomes[str, None]:
    """Delete the offsets of a group without members; return None or the error for each topic.

    Raise as :meth:`Admin.delete_share_group_offsets` if the error is about the whole group.
    """
    names = list(dict.fromkeys(topics))
    if not names:
        return {}
    what = f"DeleteShareGroupOffsets of group {group_id!r}"

    def check(response: DeleteShareGroupOffsetsResponse) -> None:
        raise_for(response.error_code, what, response.error_message)

    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    )
    repeats = Repeats(UnknownTopicOrPartition)
    response = await _ask(cluster, group_id, request, deadline, check, repeats.unanswered)
    deleted = deleted_offsets(group_id, names, response)
    return {name: repeats.explained(outcome) for name, outcome in deleted.items()}


# --- requests ------------------------------------------------------------------------------------------------------


async def _ask(
    cluster: Cluster,
    group_id: str,
    request: Request[R],
    deadline: Deadline,
    check: Callable[[R], None],
    unanswered: Callable[[KafkaError], None] = lambda _: None,
) -> R:
    """Send a request to a group's coordinator. Raise UnsupportedVersion if it does not support share groups."""
    with _explained():
        return await cluster.ask_coordinator(
            CoordinatorType.GROUP, group_id, request, deadline, lane=_LANE, check=check, unanswered=unanswered
        )


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (UnsupportedVersion, UnsupportedVersionAnswered) as refused:
        raise UnsupportedVersion(f"{_NEEDS}: {refused}") from None
