"""Descriptions of streams groups that the admin returns (KIP-1071)."""

from collections.abc import Mapping

import attrs

from ..types import Address

__all__ = (
    "StreamsGroupDescription",
    "StreamsGroupMemberAssignment",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "StreamsTopicInfo",
)


@attrs.frozen
class StreamsTopicInfo:
    """An internal topic of a Kafka Streams application.

    ``partitions`` and ``replication_factor`` are 0 if the topology leaves them to the coordinator or the brokers.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = attrs.field(hash=False)


@attrs.frozen
class StreamsGroupSubtopologyDescription:
    """A part of the application's topology: the topics that it reads, and its internal topics."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[StreamsTopicInfo, ...]
    repartition_source_topics: tuple[StreamsTopicInfo, ...]


@attrs.frozen
class StreamsGroupMemberAssignment:
    """The tasks of a member: for each subtopology the partitions whose records it processes.

    A standby task copies the state of an active one; a warm-up task becomes active once it has the state.
    """

    active_tasks: Mapping[str, tuple[int, ...]] = attrs.field(hash=False)
    standby_tasks: Mapping[str, tuple[int, ...]] = attrs.field(hash=False)
    warmup_tasks: Mapping[str, tuple[int, ...]] = attrs.field(hash=False)


@attrs.frozen
class StreamsGroupMemberDescription:
    """A member of a streams group.

    Attributes:
        member_id: the member's id.
        member_epoch: the assignment epoch that the member has reached.
        group_instance_id: identifies a static member; None for others.
        client_id: the client id of the member.
        client_host: the host that the member connects from.
        rack: the member's rack; None without one.
        topology_epoch: the epoch of the member's topology.
        process_id: the process, which may run several members.
        user_endpoint: where the process answers queries about its state (``application.server``); None if nowhere.
        client_tags: the tags of the process, for standby tasks on other racks.
        task_offsets: the offsets that the state of tasks has reached, by subtopology and partition.
        task_end_offsets: the ends of the tasks' changelogs, by subtopology and partition.
        assignment: the member's tasks.
        target_assignment: the tasks that the member will have when the group is stable.
        is_classic: whether the member still uses the classic protocol.
    """

    member_id: str
    member_epoch: int
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack: str | None
    topology_epoch: int
    process_id: str
    user_endpoint: Address | None
    client_tags: Mapping[str, str] = attrs.field(hash=False)
    task_offsets: Mapping[tuple[str, int], int] = attrs.field(hash=False)
    task_end_offsets: Mapping[tuple[str, int], int] = attrs.field(hash=False)
    assignment: StreamsGroupMemberAssignment
    target_assignment: StreamsGroupMemberAssignment
    is_classic: bool


@attrs.frozen
class StreamsGroupDescription:
    """A streams group (KIP-1071): the members of a Kafka Streams application, and its topology.

    Attributes:
        group_id: the group's id, which is the application's.
        state: "Stable", "Empty", "Assigning", "Reconciling" or "NotReady", the latter while topics are missing.
        members: the members.
        coordinator: the address of the group's coordinator.
        authorized_operations: the ACL operations that this client may perform on the group, such as "READ" (KIP-430);
            None if they were not requested.
        group_epoch: rises whenever members, the topology or its topics change.
        assignment_epoch: the group epoch of the last assignment.
        topology_epoch: the epoch of the topology; None without a topology.
        subtopologies: the parts of the topology; empty while its topics are missing.
        assignor: the coordinator's assignor (KIP-1357, brokers since 4.4); None if the broker does not name it.
    """

    group_id: str
    state: str
    members: tuple[StreamsGroupMemberDescription, ...]
    coordinator: Address
    authorized_operations: frozenset[str] | None
    group_epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    subtopologies: tuple[StreamsGroupSubtopologyDescription, ...]
    assignor: str | None
