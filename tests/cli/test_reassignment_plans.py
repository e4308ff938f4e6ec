"""The planner of reassignments, and the JSON of its plans."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aiokafkawire import TopicPartition
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.reassign.leader_balance import balance_leaders
from aiokafkawire.cli.reassign.plan_file import parse_plan, plan_json
from aiokafkawire.cli.reassign.planner import plan_assignment
from aiokafkawire.errors import UsageError

Assigned = Mapping[TopicPartition, Sequence[int]]


class Case(NamedTuple):
    """Where partitions are, and the brokers that may hold them, with racks."""

    current: dict[TopicPartition, list[int]]
    racks: dict[int, str | None]


@st.composite
def cases(draw: st.DrawFn, *, racks: bool = True) -> Case:
    """Draw up to four topics, on brokers of which some go and some are new."""
    brokers = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6, unique=True))
    names: st.SearchStrategy[str | None] = st.sampled_from(["a", "b", "c"]) if racks else st.none()
    targets = {broker: draw(names) for broker in brokers}
    before = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6, unique=True))
    current = {}
    for topic in draw(st.sets(st.sampled_from(["t1", "t2", "t3", "t4"]), min_size=1)):
        factor = draw(st.integers(1, min(len(brokers), len(before))))
        for index in range(draw(st.integers(1, 12))):
            current[TopicPartition(topic, index)] = draw(st.permutations(before))[:factor]
    return Case(current, targets)


def spread(counts: Mapping[int, int], brokers: Mapping[int, object]) -> int:
    """Return the difference between the broker with the most and the one with the fewest."""
    numbers = [counts.get(broker, 0) for broker in brokers]
    return max(numbers) - min(numbers)


def of_topic(assigned: Assigned, topic: str | None, *, leaders: bool = False) -> Counter[int]:
    """Return the number of replicas, or of preferred leaders, of each broker, of a topic or of all."""
    return Counter(
        broker
        for partition, brokers in assigned.items()
        if topic in (None, partition.topic)
        for broker in (brokers[:1] if leaders else brokers)
    )


def topics_of(case: Case) -> set[str]:
    return {partition.topic for partition in case.current}


@given(cases())
def test_every_partition_keeps_its_number_of_replicas_on_distinct_brokers_that_may_hold_it(case: Case) -> None:
    planned = plan_assignment(*case)
    assert list(planned) == sorted(case.current)
    for partition, brokers in planned.items():
        assert len(brokers) == len(set(brokers)) == len(case.current[partition])
        assert set(brokers) <= set(case.racks)


@given(cases())
@example(Case({TopicPartition("t", 0): [1, 2]}, {1: "a", 2: "a", 3: "b"}))
@example(Case({TopicPartition("t", 0): [1, 2, 3, 4]}, {1: "a", 2: "a", 3: "a", 4: "a", 5: "b"}))
def test_replicas_are_spread_over_racks_as_evenly_as_their_brokers_permit(case: Case) -> None:
    sizes = Counter(case.racks.values())
    for brokers in plan_assignment(*case).values():
        counts = Counter(case.racks[broker] for broker in brokers)
        for rack, size in sizes.items():
            assert counts[rack] == size or counts[rack] >= max(counts.values()) - 1
        assert len(counts) == min(len(brokers), len(sizes))


@given(cases())
def test_a_plan_of_the_outcome_moves_nothing(case: Case) -> None:
    planned = plan_assignment(*case)
    assert plan_assignment(planned, case.racks) == planned


@given(cases(racks=False))
def test_without_racks_no_broker_has_two_replicas_more_than_another_of_a_topic_or_of_all(case: Case) -> None:
    planned = plan_assignment(*case)
    for topic in (*topics_of(case), None):
        assert spread(of_topic(planned, topic), case.racks) <= 1


@given(cases(racks=False))
def test_without_racks_no_broker_is_the_preferred_leader_of_two_partitions_more_of_a_topic(case: Case) -> None:
    planned = plan_assignment(*case)
    for topic in topics_of(case):
        assert spread(of_topic(planned, topic, leaders=True), case.racks) <= 1


@given(cases(racks=False))
def test_one_topic_moves_hardly_more_replicas_than_it_must(case: Case) -> None:
    topic = min(topics_of(case))
    current = {partition: brokers for partition, brokers in case.current.items() if partition.topic == topic}
    held = of_topic(current, None)
    low, more = divmod(sum(map(len, current.values())), len(case.racks))
    # As many as possible stay: ``more`` of the brokers keep one replica above the others.
    staying = sorted((held[broker] for broker in case.racks), reverse=True)
    stay = sum(min(count, low + (rank < more)) for rank, count in enumerate(staying))
    planned = plan_assignment(current, case.racks)
    moved = sum(len(set(brokers) - set(current[partition])) for partition, brokers in planned.items())
    must = sum(map(len, current.values())) - stay
    # The planner settles one partition after the other; the least number of moves would need all at once.
    assert must <= moved <= must + len(case.racks)


@given(cases(), st.integers(1, 6))
def test_another_replication_factor_removes_or_adds_replicas(case: Case, factor: int) -> None:
    if factor > len(case.racks):
        with pytest.raises(UsageError, match=f"shall have {factor} replicas: name more than"):
            plan_assignment(*case, replication_factor=factor)
        return
    planned = plan_assignment(*case, replication_factor=factor)
    assert {len(set(brokers)) for brokers in planned.values()} == {factor}
    assert plan_assignment(planned, case.racks) == planned


def test_a_balanced_topic_stays_as_it_is() -> None:
    current = {TopicPartition("t", index): [index % 3 + 1, (index + 1) % 3 + 1] for index in range(6)}
    planned = plan_assignment(current, dict.fromkeys((1, 2, 3)))
    assert {partition: list(brokers) for partition, brokers in planned.items()} == current


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    current = {TopicPartition("t", index): [index % 3 + 1, (index + 1) % 3 + 1] for index in range(12)}
    planned = plan_assignment(current, dict.fromkeys((1, 2, 3, 4)))
    assert of_topic(planned, None) == {1: 6, 2: 6, 3: 6, 4: 6}
    assert of_topic(planned, None, leaders=True) == {1: 3, 2: 3, 3: 3, 4: 3}
    assert sum(len(set(brokers) - set(current[partition])) for partition, brokers in planned.items()) == 6


def test_leaders_are_balanced_over_brokers_between() -> None:
    replicas = {TopicPartition("t", index): brokers for index, brokers in enumerate([[1, 2], [1, 2], [2, 3]])}
    balance_leaders(replicas)
    assert sorted(brokers[0] for brokers in replicas.values()) == [1, 2, 3]
    assert [sorted(brokers) for brokers in replicas.values()] == [[1, 2], [1, 2], [2, 3]]


def test_leaders_are_balanced_over_all_topics_when_each_topic_is() -> None:
    replicas = {TopicPartition(f"t{index}", 0): [1, 2] for index in range(4)}
    balance_leaders(replicas)
    assert sorted(brokers[0] for brokers in replicas.values()) == [1, 1, 2, 2]


def test_a_large_cluster_is_planned_in_seconds() -> None:
    current = {
        TopicPartition(f"t{n}", i): [(n + i + k) % 9 + 1 for k in range(3)] for n in range(200) for i in range(12)
    }
    planned = plan_assignment(current, {broker: f"rack-{broker % 3}" for broker in range(1, 13)})
    assert spread(of_topic(planned, None), dict.fromkeys(range(1, 13))) <= 3


# --- the file ------------------------------------------------------------------------------------------------------


def test_a_plan_is_the_json_of_kafka_reassign_partitions() -> None:
    text = plan_json({TopicPartition("t", 1): (2, 3), TopicPartition("t", 0): (1,)})
    assert text == (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any"]},'
        '{"topic":"t","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
    )
    plan = parse_plan(text)
    assert plan.targets == {TopicPartition("t", 0): (1,), TopicPartition("t", 1): (2, 3)}
    assert plan.log_dirs == {}


def test_a_plan_may_name_log_directories_or_leave_them_out() -> None:
    entry = {"topic": "t", "partition": 0, "replicas": [1, 2]}
    assert parse_plan(json.dumps({"partitions": [entry]})).log_dirs == {}
    named = parse_plan(json.dumps({"version": 1, "partitions": [{**entry, "log_dirs": ["any", "/data"]}]}))
    assert named.log_dirs == {("t", 0, 2): "/data"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON: "),
        ("[]", 'an object with a list "partitions"'),
        ('{"partitions": 1}', 'an object with a list "partitions"'),
        ('{"partitions": []}', "has no partitions"),
        ('{"version": 2, "partitions": [1]}', "has version 2, and must have 1"),
        ('{"partitions": [1]}', r"partitions\[0\] must be an object"),
        ('{"partitions": [{"topic": "t", "partition": true, "replicas": [1]}]}', r"partitions\[0\] must be"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', '"replicas" of t-0 must be a list'),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', '"replicas" of t-0 must be a list'),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "names a broker twice"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": []}]}', 'and 0 "log_dirs"'),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [1]}]}', "list of paths"),
    ],
)
def test_wrong_plans_are_refused(text: str, said: str) -> None:
    with pytest.raises(CommandFailed, match=said) as caught:
        parse_plan(text)
    assert caught.value.status == 2


def test_a_plan_that_has_a_partition_twice_is_refused() -> None:
    entry = {"topic": "t", "partition": 0, "replicas": [1]}
    with pytest.raises(CommandFailed, match="the plan has t-0 twice"):
        parse_plan(json.dumps({"partitions": [entry, entry]}))
