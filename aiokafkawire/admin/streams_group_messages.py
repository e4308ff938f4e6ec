"""Descriptions of streams groups from the brokers' responses (KIP-1071)."""

from collections.abc import Iterable

from ..errors import KafkaError
from ..protocol.messages.streams_group import (
    Assignment,
    DescribedGroup,
    Member,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseSubtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
)
from ..types import Address
from .group_descriptions import authorized_operations
from .response_errors import error_of
from .streams_group_descriptions import (
    StreamsGroupDescription,
    StreamsGroupMemberAssignment,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    StreamsTopicInfo,
)

__all__ = ("streams_group_description", "streams_group_outcomes")


def streams_group_outcomes(response: StreamsGroupDescribeResponse) -> dict[str, DescribedGroup | KafkaError]:
    """Return the group or the error of each group in a response."""
    found: dict[str, DescribedGroup | KafkaError] = {}
    for group in response.groups:
        what = f"StreamsGroupDescribe of group {group.group_id!r}"
        found[group.group_id] = error_of(group.error_code, what, group.error_message) or group
    return found


def streams_group_description(group: DescribedGroup, coordinator: Address) -> StreamsGroupDescription:
    """Return the description of a group."""
    topology = group.topology
    subtopologies = [] if topology is None else topology.subtopologies or []
    return StreamsGroupDescription(
        group.group_id,
        group.group_state,
        tuple(_member(member) for member in group.members),
        coordinator,
        authorized_operations(group.authorized_operations),
        group.group_epoch,
        group.assignment_epoch,
        None if topology is None else topology.epoch,
        tuple(_subtopology(subtopology) for subtopology in subtopologies),
        group.assignor_name,
    )


def _member(member: Member) -> StreamsGroupMemberDescription:
    endpoint = member.user_endpoint
    return StreamsGroupMemberDescription(
        member.member_id,
        member.member_epoch,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rack_id,
        member.topology_epoch,
        member.process_id,
        None if endpoint is None else Address(endpoint.host, endpoint.port),
        {tag.key: tag.value for tag in member.client_tags},
        _offsets(member.task_offsets),
        _offsets(member.task_end_offsets),
        _assignment(member.assignment),
        _assignment(member.target_assignment),
        member.is_classic,
    )


def _offsets(offsets: Iterable[TaskOffset]) -> dict[tuple[str, int], int]:
    return {(task.subtopology_id, task.partition): task.offset for task in offsets}


def _assignment(assignment: Assignment) -> StreamsGroupMemberAssignment:
    return StreamsGroupMemberAssignment(
        _tasks(assignment.active_tasks), _tasks(assignment.standby_tasks), _tasks(assignment.warmup_tasks)
    )


def _tasks(tasks: Iterable[TaskIds]) -> dict[str, tuple[int, ...]]:
    return {task.subtopology_id: tuple(sorted(task.partitions)) for task in tasks}


def _subtopology(subtopology: StreamsGroupDescribeResponseSubtopology) -> StreamsGroupSubtopologyDescription:
    return StreamsGroupSubtopologyDescription(
        subtopology.subtopology_id,
        tuple(sorted(subtopology.source_topics)),
        tuple(sorted(subtopology.repartition_sink_topics)),
        tuple(_topic(topic) for topic in subtopology.state_changelog_topics),
        tuple(_topic(topic) for topic in subtopology.repartition_source_topics),
    )


def _topic(topic: TopicInfo) -> StreamsTopicInfo:
    configs = {config.key: config.value for config in topic.topic_configs}
    return StreamsTopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)
