"""The rows about groups of all types."""

from aiokafkawire import (
    OffsetAndMetadata,
    StreamsGroupDescription,
    StreamsGroupMemberAssignment,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    StreamsTopicInfo,
    TopicPartition,
)
from aiokafkawire.admin.descriptions import GroupListing
from aiokafkawire.cli.groups.rows import (
    PartitionOwner,
    group_lag,
    listed_row,
    member_rows,
    offset_rows,
    owners_of,
    partition_lag,
    state_row,
)
from aiokafkawire.cli.shell.table import cell_text
from aiokafkawire.types import Address

A0, A1, R1 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("r", 1)
AT = Address("h", 9092)
TASKS = StreamsGroupMemberAssignment({"0": (0,), "1": (1,)}, {"0": (1,)}, {})
MEMBER = StreamsGroupMemberDescription(
    member_id="m",
    member_epoch=3,
    group_instance_id=None,
    client_id="me",
    client_host="/127.0.0.1",
    rack=None,
    topology_epoch=0,
    process_id="p",
    user_endpoint=None,
    client_tags={},
    task_offsets={},
    task_end_offsets={},
    assignment=TASKS,
    target_assignment=TASKS,
    is_classic=False,
)
STREAMS = StreamsGroupDescription(
    group_id="app",
    state="Stable",
    members=(MEMBER,),
    coordinator=AT,
    authorized_operations=None,
    group_epoch=3,
    assignment_epoch=3,
    topology_epoch=0,
    subtopologies=(
        StreamsGroupSubtopologyDescription("0", ("a",), ("r",), (), ()),
        StreamsGroupSubtopologyDescription("1", (), (), (), (StreamsTopicInfo("r", 2, 1, {}),)),
    ),
    assignor=None,
)


def test_an_active_task_reads_the_partitions_of_its_topics() -> None:
    owner = PartitionOwner("m", "me", "/127.0.0.1")
    assert owners_of(STREAMS) == {A0: owner, R1: owner}
    rows = offset_rows("app", "streams", {A1: OffsetAndMetadata(4, "note", 2)}, {A0: 5, A1: 9}, owners_of(STREAMS))
    assert [
        (row["topic"], row["partition"], row["committed_offset"], row["log_end_offset"], row["lag"], row["member_id"])
        for row in rows
    ] == [
        ("a", 0, None, 5, None, "m"),
        ("a", 1, 4, 9, 5, None),
        ("r", 1, None, None, None, "m"),
    ]
    assert (rows[1]["metadata"], rows[1]["leader_epoch"]) == ("note", 2)


def test_the_members_and_the_state_of_a_streams_group() -> None:
    (row,) = member_rows(STREAMS)
    assert (row["assignment"], row["standby_tasks"], row["partitions"]) == ({"0": [0], "1": [1]}, {"0": [1]}, 2)
    assert [cell_text(row[key]) for key in ("assignment", "warmup_tasks")] == ["0:0;1:1", "-"]
    state = state_row(STREAMS)
    assert (state["group_type"], state["members"], state["group_epoch"], state["assignor"]) == ("streams", 1, 3, None)


def test_a_lag_that_is_not_known_is_none_and_never_negative() -> None:
    assert [partition_lag(3, 10), partition_lag(12, 10), partition_lag(None, 10), partition_lag(3, None)] == [
        7,
        0,
        None,
        None,
    ]
    assert group_lag([3, None, 4]) == 7
    assert group_lag([None]) is None
    assert group_lag([]) is None


def test_groups_of_old_brokers_are_classic() -> None:
    row = listed_row(GroupListing("g", "", None, None, AT))
    assert row == {
        "group_id": "g",
        "group_type": "classic",
        "protocol_type": None,
        "state": None,
        "coordinator": "h:9092",
    }
