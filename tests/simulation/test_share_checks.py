"""The checks of share groups can fail."""

import re
from collections.abc import Callable

import pytest
from simulation.checks import Logs
from simulation.share_checks import GAP, Delivery, ShareWatch

from aiokafkawire import Acknowledge, TopicPartition

A0 = TopicPartition("a", 0)
LOGS: Logs = {A0: [(0, b"x"), (1, b"y")]}
LOCK = 5.0


class Group:
    """A share group of two members on one partition, and its time."""

    def __init__(self, limit: int = 3) -> None:
        self.seconds = 0.0
        self.heard = list[str]()
        self.watch = ShareWatch(LOCK, limit, lambda: self.seconds, self.heard.append)

    def delivers(self, offset: int, member: str = "one", count: int = 1) -> Delivery:
        """The leader delivers a record, and the user gets it."""
        self.watch.acquire(A0, offset, member, count, 1)
        delivery = self.hands_out(offset, member, count)
        assert delivery is not None
        return delivery

    def hands_out(self, offset: int, member: str = "one", count: int = 1, value: bytes = b"") -> Delivery | None:
        value = value or LOGS[A0][offset][1] or b""
        return self.watch.hand_out(member, A0, offset, count, 1, value)

    def takes(self, delivery: Delivery, kind: Acknowledge) -> None:
        """The user acknowledges a record, and the leader takes that."""
        delivery.wanted.append(kind)
        self.watch.acknowledge(A0, delivery.offset, delivery.member, kind)
        self.watch.committed(delivery, kind)


@pytest.fixture
def group() -> Group:
    """A group that has accepted one of two records."""
    group = Group()
    group.takes(group.delivers(0), Acknowledge.ACCEPT)
    return group


def finishes(group: Group) -> None:
    group.takes(group.delivers(1, "two"), Acknowledge.REJECT)
    group.watch.check(LOGS, LOGS)


def released(group: Group) -> None:
    group.takes(group.delivers(1), Acknowledge.RELEASE)
    group.takes(group.delivers(1, "two", 2), Acknowledge.ACCEPT)
    group.watch.check(LOGS, LOGS)


def lock_ends(group: Group) -> None:
    group.delivers(1)
    group.seconds += LOCK
    group.takes(group.delivers(1, "two", 2), Acknowledge.ACCEPT)
    group.watch.check(LOGS, LOGS)


def renewed(group: Group) -> None:
    delivery = group.delivers(1)
    for _ in range(3):
        group.seconds += LOCK - 1
        group.takes(delivery, Acknowledge.RENEW)
    group.takes(delivery, Acknowledge.ACCEPT)
    group.watch.check(LOGS, LOGS)


def led_anew(group: Group) -> None:
    group.delivers(1)
    group.watch.lead_anew(A0)
    group.takes(group.delivers(1, "two", 1), Acknowledge.ACCEPT)
    group.watch.check(LOGS, LOGS)


def session_ends(group: Group) -> None:
    group.delivers(1)
    group.watch.end_session("one", 2, [A0], "session")
    assert group.watch.unfinished(LOGS)
    group.watch.end_session("one", 1, [A0], "session")
    group.takes(group.delivers(1, "two", 2), Acknowledge.ACCEPT)
    group.watch.check(LOGS, LOGS)


def limit_is_reached(group: Group) -> None:
    for count in (1, 2, 3):
        group.delivers(1, count=count)
        assert group.watch.unfinished(LOGS)
        group.seconds += LOCK
    group.watch.check(LOGS, LOGS)


@pytest.mark.parametrize("happens", [finishes, released, lock_ends, renewed, led_anew, session_ends, limit_is_reached])
def test_a_share_group_that_works_well_is_right(group: Group, happens: Callable[[Group], None]) -> None:
    happens(group)
    assert not group.heard


def one_too_many(group: Group) -> None:
    for count in (1, 2, 3, 4):
        group.delivers(1, count=count)
        group.seconds += LOCK


def shared_while_locked(group: Group) -> None:
    group.delivers(1)
    group.seconds += LOCK - 0.01
    group.delivers(1, "two", 2)


def counted_twice(group: Group) -> None:
    group.takes(group.delivers(1), Acknowledge.RELEASE)
    group.delivers(1, "two", 3)


def not_counted(group: Group) -> None:
    group.takes(group.delivers(1), Acknowledge.RELEASE)
    group.delivers(1, "two", 1)


def counted_too_far_by_a_new_leader(group: Group) -> None:
    group.takes(group.delivers(1), Acknowledge.RELEASE)
    group.watch.lead_anew(A0)
    group.delivers(1, "two", 3)


def acknowledged_late(group: Group) -> None:
    delivery = group.delivers(1)
    group.seconds += LOCK + 0.01
    group.takes(delivery, Acknowledge.ACCEPT)


def handed_out_late(group: Group) -> None:
    group.watch.acquire(A0, 1, "one", 1, 1)
    group.seconds += LOCK
    group.hands_out(1)


def handed_out_twice(group: Group) -> None:
    group.delivers(1)
    group.hands_out(1)


def altered(group: Group) -> None:
    group.watch.acquire(A0, 1, "one", 1, 1)
    delivery = group.hands_out(1, value=b"z")
    assert delivery is not None
    group.takes(delivery, Acknowledge.ACCEPT)


def taken_for_a_gap(group: Group) -> None:
    group.watch.acquire(A0, 1, "one", 1, 1)
    group.watch.acknowledge(A0, 1, "one", GAP)


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (lambda group: None, "1 records are not finished, such as ['a-0:1, never delivered']"),
        (lambda group: group.delivers(1), "a-0:1, delivery 1 to one, None"),
        (lambda group: group.delivers(0, "two", 2), "a-0:0, delivery 2 to two: it was finished before"),
        (one_too_many, "a-0:1, delivery 4 to one: the limit is 3"),
        (shared_while_locked, "a-0:1, delivery 2 to two: a-0:1, delivery 1 to one holds until 5.000"),
        (counted_twice, "a-0:1, delivery 3 to two: the leader has to count 2"),
        (not_counted, "a-0:1, delivery 1 to two: the leader has to count 2"),
        (counted_too_far_by_a_new_leader, "a-0:1, delivery 3 to two: a new leader may count up to 2"),
        (acknowledged_late, "a-0:1, delivery 1 to one: one acknowledges it (1) after its lock"),
        (
            lambda group: group.watch.acknowledge(A0, 1, "one", Acknowledge.ACCEPT),
            "one acknowledges a-0:1, which was not delivered",
        ),
        (
            lambda group: group.takes(as_if_of_another(group), Acknowledge.ACCEPT),
            "a-0:1, delivery 1 to one: two acknowledges it (1), whose it is not",
        ),
        (
            lambda group: group.watch.acknowledge(A0, group.delivers(1).offset, "one", Acknowledge.ACCEPT),
            "a-0:1, delivery 1 to one: one acknowledges it (1), and its user has said []",
        ),
        (
            lambda group: group.watch.committed(group.delivers(1), Acknowledge.ACCEPT),
            "a-0:1, delivery 1 to one: ACCEPT was committed, and taken were []",
        ),
        (handed_out_late, "one was given a-0:1, delivery 1 of broker 1, too late: its lock has ended, at 5.000"),
        (handed_out_twice, "one was given a-0:1, delivery 1 of broker 1, which it has not acquired"),
        (lambda group: group.hands_out(1), "one was given a-0:1, delivery 1 of broker 1, which it has not acquired"),
        (altered, "another record was handed out for a-0:1"),
        (taken_for_a_gap, "a-0:1, delivery 1 to one was taken for a gap"),
    ],
)
def test_what_is_wrong_with_a_share_group_is_found(group: Group, happens: Callable[[Group], object], told: str) -> None:
    happens(group)
    with pytest.raises(AssertionError, match=re.escape(told)):
        group.watch.check(LOGS, LOGS)
    assert group.heard == group.watch.wrong


def as_if_of_another(group: Group) -> Delivery:
    """The delivery to one member, as if it were the other's."""
    delivery = group.delivers(1)
    return Delivery(A0, 1, "two", delivery.count, delivery.node, delivery.lock_end)


@pytest.mark.parametrize("is_handed_out", [False, True])
def test_an_acknowledgement_counts_for_the_same_member_until_it_has_the_next_delivery(
    group: Group, is_handed_out: bool
) -> None:
    first = group.delivers(1)
    group.watch.end_session("one", 1, [A0], "session")
    group.watch.acquire(A0, 1, "one", 2, 1)
    if is_handed_out:
        group.hands_out(1, count=2)
    first.wanted.append(Acknowledge.ACCEPT)
    group.watch.acknowledge(A0, 1, "one", Acknowledge.ACCEPT)
    wrong = ["a-0:1, delivery 2 to one: one acknowledges it (1), and its user has said []"]
    assert group.watch.wrong == (wrong if is_handed_out else [])


def test_a_record_of_an_aborted_transaction_is_not_handed_out(group: Group) -> None:
    group.watch.acquire(A0, 1, "one", 1, 1)
    due: Logs = {A0: LOGS[A0][:1]}
    group.watch.check(LOGS, due)
    group.hands_out(1)
    with pytest.raises(AssertionError, match="a-0:1 was handed out, of an aborted transaction"):
        group.watch.check(LOGS, due)
