"""The state of a share partition, without a broker."""

from __future__ import annotations

from typing import Any

import pytest

from aiokafkawire.errors import ErrorCode
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.share.acknowledgements import AcknowledgedRange
from aiokafkawire.testing.share.acquisition import Acquisition, BatchOffsets
from aiokafkawire.testing.share.in_flight import DeliveryState
from aiokafkawire.testing.share.share_partition import SharePartition

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
LIMIT = 5


def acquire(
    partition: SharePartition, *batches: tuple[int, int], member: str = "a", deadline: float = 10, **fields: Any
) -> list[tuple[int, int, int]]:
    fields = {"max_records": 500, "batch_size": 500, "delivery_limit": LIMIT, **fields}
    in_flight = {"max_in_flight": fields.pop("max_in_flight")} if "max_in_flight" in fields else {}
    wanted = Acquisition(member_id=member, deadline=deadline, **fields)
    read = [BatchOffsets(*batch) for batch in batches]
    return [(found.first, found.last, found.delivery_count) for found in partition.acquire(wanted, read, **in_flight)]


def acknowledge(partition: SharePartition, *acks: tuple[int, ...], member: str = "a", deadline: float = 20) -> None:
    parts = [AcknowledgedRange(first, last, types) for first, last, *types in acks]
    partition.acknowledge(member, parts, LIMIT, deadline)


def refusal(partition: SharePartition, *acks: tuple[int, ...], member: str = "a") -> tuple[ErrorCode, str | None]:
    before = [(record.state, record.member_id) for record in partition]
    with pytest.raises(ApiError) as refused:
        acknowledge(partition, *acks, member=member)
    assert [(record.state, record.member_id) for record in partition] == before
    return refused.value.code, refused.value.message


def states(partition: SharePartition) -> str:
    letters = {
        DeliveryState.AVAILABLE: "v",
        DeliveryState.ACQUIRED: "q",
        DeliveryState.ACKNOWLEDGED: "k",
        DeliveryState.ARCHIVED: "x",
    }
    return "".join(letters[record.state] for record in partition)


def test_new_records_are_acquired_to_the_end_of_a_batch() -> None:
    partition = SharePartition(0)
    assert acquire(partition, (0, 4), (5, 9), max_records=3) == [(0, 4, 1)]
    assert (partition.start_offset, partition.end_offset, partition.next_offset) == (0, 5, 5)
    assert acquire(partition, (5, 9), max_records=3, member="b") == [(5, 9, 1)]


def test_a_record_limit_ends_within_a_batch() -> None:
    partition = SharePartition(1)
    assert acquire(partition, (1, 5), (6, 10), max_records=3, record_limit=True) == [(1, 3, 1)]
    assert acquire(partition, (1, 5), (6, 10), max_records=3, batch_size=2, record_limit=True) == [(4, 5, 1), (6, 6, 1)]
    acknowledge(partition, (1, 3, RELEASE))
    assert acquire(partition, (1, 5), max_records=2, record_limit=True) == [(1, 2, 2)]


@pytest.mark.parametrize(
    ("batch_size", "expected"),
    [(1, [(0, 1), (2, 3), (4, 5)]), (3, [(0, 3), (4, 5)]), (4, [(0, 3), (4, 5)]), (5, [(0, 5)])],
)
def test_acquired_ranges_have_a_size_and_end_with_batches(batch_size: int, expected: list[tuple[int, int]]) -> None:
    found = acquire(SharePartition(0), (0, 1), (2, 3), (4, 5), batch_size=batch_size)
    assert [(first, last) for first, last, _ in found] == expected


def test_a_fetch_begins_in_the_middle_of_a_batch() -> None:
    assert acquire(SharePartition(2), (0, 4)) == [(2, 4, 1)]


def test_a_gap_of_the_log_is_not_acquired_before_the_first_record() -> None:
    partition = SharePartition(0)
    assert acquire(partition, (7, 9)) == [(7, 9, 1)]
    assert (partition.start_offset, partition.end_offset) == (7, 10)


def test_nothing_is_acquired_of_nothing() -> None:
    partition = SharePartition(0)
    assert acquire(partition) == acquire(partition, (0, 4), max_records=0) == []


def test_records_in_flight_are_limited() -> None:
    partition = SharePartition(0)
    assert acquire(partition, (0, 4), (5, 9), max_in_flight=4) == [(0, 4, 1)]
    assert acquire(partition, (5, 9), max_in_flight=4) == []
    acknowledge(partition, (0, 4, RELEASE))
    assert acquire(partition, (0, 4), (5, 9), max_in_flight=4) == [(0, 4, 2)]


def test_every_type_of_acknowledgement() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 5))
    acknowledge(partition, (0, 4, ACCEPT, RELEASE, REJECT, GAP, RENEW))
    assert states(partition) == "kvxxqq"
    assert (partition.start_offset, partition.next_offset) == (1, 1)
    assert partition.next_deadline == 10
    assert partition.expire(10, LIMIT)
    assert states(partition) == "kvxxqv"
    assert (partition.expire(19, LIMIT), partition.next_deadline) == (False, 20)


def test_one_type_stands_for_the_whole_range() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 1), batch_size=1)
    acquire(partition, (2, 4), batch_size=1)
    acknowledge(partition, (0, 3, ACCEPT))
    assert (partition.start_offset, states(partition)) == (4, "kkq")
    acknowledge(partition, (4, 4, ACCEPT))
    assert (partition.start_offset, partition.end_offset, states(partition)) == (5, 5, "")


def test_what_is_done_already_is_not_refused() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 4))
    acknowledge(partition, (0, 1, ACCEPT))
    acknowledge(partition, (0, 1, ACCEPT))
    acknowledge(partition, (0, 4, ACCEPT))
    assert partition.start_offset == 5


def test_only_the_owner_acknowledges_what_it_has_acquired() -> None:
    partition = SharePartition(0)
    invalid, wrong = ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST
    assert refusal(partition, (0, 0, ACCEPT))[0] == invalid
    acquire(partition, (0, 4))
    assert refusal(partition, (0, 4, ACCEPT), member="b") == (invalid, "Member is not the owner of batch record")
    assert refusal(partition, (0, 9, ACCEPT))[0] == refusal(partition, (7, 9, ACCEPT))[0] == wrong
    assert refusal(partition, (0, 1, 7))[0] == wrong
    assert refusal(partition, (0, 1, ACCEPT), (1, 2, ACCEPT))[0] == invalid
    acknowledge(partition, (1, 1, RELEASE))
    assert refusal(partition, (0, 1, ACCEPT)) == (
        invalid,
        "The offset cannot be acknowledged. The offset is not acquired.",
    )
    assert refusal(partition, (0, 0, ACCEPT), member="b") == (invalid, "Member is not the owner of offset")
    partition.release_member("a", LIMIT)
    assert states(partition) == "vvvvv"


def test_released_batches_are_refused_as_a_whole() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 4))
    partition.release_member("a", LIMIT)
    message = "The batch cannot be acknowledged. The batch is not in the acquired state."
    assert refusal(partition, (0, 4, ACCEPT)) == (ErrorCode.INVALID_RECORD_STATE, message)


def test_a_member_s_release_leaves_others_alone() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 1), member="a")
    acquire(partition, (2, 3), member="b")
    partition.release_member("a", LIMIT)
    assert states(partition) == "vvqq"
    assert acquire(partition, (0, 1), (2, 3), (4, 5), member="c") == [(0, 1, 2), (4, 5, 1)]


def test_locks_end_at_their_time() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 1), deadline=10)
    acquire(partition, (2, 3), deadline=12)
    assert partition.next_deadline == 10
    assert not partition.expire(9.9, LIMIT)
    assert partition.expire(10, LIMIT)
    assert (states(partition), partition.next_deadline) == ("vvqq", 12)


def test_failing_records_come_with_fewer_others_and_at_last_alone() -> None:
    partition = SharePartition(1)
    deliveries = []
    for _ in range(7):
        (found,) = acquire(partition, (1, 12))
        deliveries.append(found)
        acknowledge(partition, (*found[:2], RELEASE))
    assert deliveries == [(1, 12, 1), (1, 12, 2), (1, 12, 3), (1, 6, 4), (1, 1, 5), (2, 2, 5), (3, 3, 5)]
    assert (partition.start_offset, states(partition)[:4]) == (4, "xxxv")


def test_a_failing_batch_holds_back_later_batches() -> None:
    partition = SharePartition(0)
    for _ in range(3):
        acquire(partition, (0, 7), (8, 11), batch_size=1)
        partition.release_member("a", LIMIT)
    assert acquire(partition, (0, 7), (8, 11)) == [(0, 3, 4)]


def test_a_log_that_starts_later_archives_what_is_before() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 3))
    acquire(partition, (4, 7), member="b")
    acknowledge(partition, (4, 7, RELEASE), member="b")
    partition.log_started_at(6)
    assert (partition.start_offset, states(partition)) == (6, "qqqqxxvv")
    acknowledge(partition, (0, 3, ACCEPT))
    partition.expire(10, LIMIT)
    assert (partition.next_offset, states(partition)) == (6, "xxvv")
    partition.log_started_at(20)
    assert (partition.start_offset, partition.end_offset, states(partition)) == (20, 20, "")


def test_released_records_that_compaction_removes_are_archived() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 1), (2, 3), (4, 5), batch_size=1)
    acknowledge(partition, (0, 3, RELEASE))
    assert acquire(partition, (2, 3), (4, 5)) == [(2, 3, 2)]
    assert (partition.start_offset, states(partition)) == (2, "qqqq")
    acknowledge(partition, (2, 3, RELEASE))
    assert acquire(partition, (7, 8)) == [(7, 8, 1)]
    acknowledge(partition, (4, 5, ACCEPT), (6, 8, ACCEPT))
    assert (partition.start_offset, partition.end_offset) == (9, 9)


def test_aborted_offsets_are_archived() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 3))
    partition.archive({1, 2})
    assert states(partition) == "qxxq"
    acknowledge(partition, (0, 0, ACCEPT))
    assert partition.start_offset == 3


def test_a_new_leader_knows_what_was_stored() -> None:
    partition = SharePartition(0)
    acquire(partition, (0, 3))
    acknowledge(partition, (0, 3, ACCEPT, RELEASE, RELEASE, REJECT))
    assert acquire(partition, (0, 3), (4, 5)) == [(1, 2, 2), (4, 5, 1)]
    partition.led_anew(6)
    assert (partition.start_offset, partition.end_offset, states(partition)) == (1, 4, "vvx")
    assert acquire(partition, (0, 3), (4, 5)) == [(1, 2, 2), (4, 5, 1)]
    partition.led_anew(2)
    assert (partition.start_offset, partition.end_offset) == (1, 2)


def test_the_stored_start_stays_one_change_behind() -> None:
    partition = SharePartition(0)
    stored = [(partition.stored_start, partition.stored_done)]
    acquire(partition, (0, 3))
    for first, last in ((0, 1), (3, 3)):
        acknowledge(partition, (first, last, ACCEPT))
        stored.append((partition.stored_start, partition.stored_done))
    assert stored == [(None, 0), (0, 2), (2, 1)]
