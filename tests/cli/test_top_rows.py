"""Rows of ``aiokafkawire top``: rates, lags, trends, order and filter, without a cluster."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from aiokafkawire import TopicPartition
from aiokafkawire.cli.top.columns import BROKERS, GROUPS, TOPICS, big_number, decimal, fit_columns, select_rows
from aiokafkawire.cli.top.detail_rows import LAGS, MEMBERS, RECORDS
from aiokafkawire.cli.top.layout import BrokerLayout, Layout, TopicLayout, layout_is_due, layout_of
from aiokafkawire.cli.top.plain_output import json_line, plain_tables
from aiokafkawire.cli.top.rows import History, lag_of_group
from aiokafkawire.cli.top.sample import Sample, SampledGroup
from aiokafkawire.cli.top.spark_line import spark_line
from aiokafkawire.cluster.metadata import Node
from aiokafkawire.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aiokafkawire.types import Address

ORDERS = [TopicPartition("orders", index) for index in range(3)]
LOG = TopicPartition("log", 0)


def partition(index: int, leader: int, replicas: list[int], in_sync: list[int]) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=0, partition_index=index, leader_id=leader, replica_nodes=replicas, isr_nodes=in_sync
    )


def metadata() -> MetadataResponse:
    """Two brokers; broker 3 holds replicas and is not in service."""
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=1, host="a", port=9092, rack="west"),
            MetadataResponseBroker(node_id=2, host="b", port=9092, rack=None),
        ],
        cluster_id="c",
        controller_id=2,
        topics=[
            MetadataResponseTopic(
                error_code=0,
                name="orders",
                partitions=[
                    partition(0, 1, [1, 2], [1, 2]),
                    partition(1, 2, [2, 3], [2]),
                    partition(2, -1, [3], [3]),
                ],
            ),
            MetadataResponseTopic(error_code=0, name="log", partitions=[partition(0, 1, [1], [1])]),
        ],
    )


def layout() -> Layout:
    return layout_of(metadata(), lambda _: True, 2)


def sample(at: float, ends: dict[TopicPartition, int], *groups: SampledGroup, **fields: Any) -> Sample:
    found = {group.group_id: group for group in groups}
    return Sample(at, 1_700_000_000_000 + int(at * 1000), fields.pop("layout", layout()), ends, found, **fields)


def history(*samples: Sample) -> History:
    made = History()
    for one in samples:
        made.add(one)
    return made


def group(name: str, committed: dict[TopicPartition, int], **fields: Any) -> SampledGroup:
    return SampledGroup(name, 1, committed=committed, **{"state": "Stable", "members": 1, **fields})


# --- the layout ------------------------------------------------------------------------------------------------------


def test_the_layout_counts_the_partitions_of_each_broker_and_topic() -> None:
    found = layout()
    assert found.brokers == {
        1: BrokerLayout(leads=2, under_replicated=0, replicas=2, in_sync=2),
        2: BrokerLayout(leads=1, under_replicated=1, replicas=2, in_sync=2),
        3: BrokerLayout(leads=0, under_replicated=0, replicas=2, in_sync=1),
    }
    assert found.topics == {"orders": TopicLayout(3, 1, 1), "log": TopicLayout(1, 0, 0)}
    assert found.leaders == {ORDERS[0]: 1, ORDERS[1]: 2, LOG: 1}
    assert found.nodes == {1: Node(1, Address("a", 9092), "west"), 2: Node(2, Address("b", 9092), None)}


def test_a_pattern_hides_topics_and_keeps_their_leaders() -> None:
    found = layout_of(metadata(), lambda name: name == "log", None)
    assert list(found.topics) == ["log"]
    assert found.leaders[ORDERS[0]] == 1
    assert found.brokers[1].leads == 2


@pytest.mark.parametrize(
    ("partitions", "age", "outdated", "due"),
    [
        (10, 0.0, False, True),
        (5_000, 29.0, False, False),
        (5_000, 30.0, False, True),
        (5_000, 4.0, True, False),
        (5_000, 5.0, True, True),
    ],
)
def test_a_large_layout_is_renewed_rarely(partitions: int, age: float, outdated: bool, due: bool) -> None:
    large = attrs.evolve(layout(), leaders={TopicPartition("t", index): 1 for index in range(partitions)})
    assert layout_is_due(large, age, outdated=outdated) is due


# --- rates -----------------------------------------------------------------------------------------------------------


def test_rates_are_the_growth_of_end_offsets_over_the_time_between_two_samples() -> None:
    first = sample(10.0, {ORDERS[0]: 100, ORDERS[1]: 50, LOG: 7})
    made = history(first, sample(12.0, {ORDERS[0]: 300, ORDERS[1]: 60, LOG: 7}))
    assert {row.name: row.rate for row in made.topic_rows()} == {"orders": 105.0, "log": 0.0}
    assert {row.node_id: row.rate for row in made.broker_rows()} == {1: 100.0, 2: 5.0, 3: None}
    assert made.seconds == 2.0


def test_there_is_no_rate_before_the_second_sample() -> None:
    made = history(sample(10.0, {LOG: 7}))
    assert [row.rate for row in made.topic_rows()] == [None, None]
    assert made.seconds is None


def test_a_topic_that_was_created_again_has_no_negative_rate() -> None:
    made = history(sample(1.0, {LOG: 1_000}), sample(2.0, {LOG: 5}))
    assert {row.name: row.rate for row in made.topic_rows()}["log"] == 0.0


def test_a_partition_without_an_end_in_one_sample_is_left_out_and_counted_as_unread() -> None:
    made = history(sample(1.0, {ORDERS[0]: 10}), sample(2.0, {ORDERS[0]: 20, ORDERS[1]: 900}))
    (orders,) = [row for row in made.topic_rows() if row.name == "orders"]
    assert (orders.rate, orders.unread) == (10.0, 0)
    made.add(sample(3.0, {ORDERS[0]: 30}))
    (orders,) = [row for row in made.topic_rows() if row.name == "orders"]
    assert (orders.rate, orders.unread) == (10.0, 1)
    assert TOPICS.error(orders) == "no end offsets of 1 of 3 partitions"


def test_a_broker_shows_its_error_and_one_that_is_gone_says_so() -> None:
    made = history(sample(1.0, {}, broker_errors={2: "ConnectionLost: refused"}))
    rows = made.broker_rows()
    assert [(row.node_id, row.error) for row in rows] == [
        (1, None),
        (2, "ConnectionLost: refused"),
        (3, "not in service"),
    ]
    assert [row.is_controller for row in rows] == [False, True, False]
    assert rows[2].address is None


# --- lag -------------------------------------------------------------------------------------------------------------


def test_the_lag_is_the_sum_over_partitions_and_never_negative() -> None:
    lag = lag_of_group(group("g", {ORDERS[0]: 90, ORDERS[1]: 70}), {ORDERS[0]: 100, ORDERS[1]: 60})
    assert lag == (10, 0)


def test_partitions_without_an_end_are_unknown() -> None:
    assert lag_of_group(group("g", {ORDERS[0]: 90, LOG: 1}), {ORDERS[0]: 100}) == (10, 1)
    assert lag_of_group(group("g", {LOG: 1}), {}) == (None, 1)
    assert lag_of_group(group("g", {}), {}) == (None, 0)


def test_the_lag_that_brokers_report_of_share_groups_is_used() -> None:
    assert lag_of_group(group("g", {LOG: 10}, known_lag={LOG: 3}), {LOG: 100}) == (3, 0)


def test_the_trend_has_the_lag_of_the_last_samples() -> None:
    made = History()
    for number in range(30):
        made.add(sample(float(number), {LOG: 100 + number}, group("g", {LOG: 100})))
    (row,) = made.group_rows()
    assert row.trend == tuple(range(6, 30))
    assert (row.lag, row.lag_rate) == (29, 1.0)


def test_a_group_that_comes_back_begins_a_new_trend() -> None:
    one = group("g", {LOG: 1})
    made = history(sample(1.0, {LOG: 2}, one), sample(2.0, {LOG: 3}), sample(3.0, {LOG: 4}, one))
    assert made.group_rows()[0].trend == (3,)
    assert made.group_rows()[0].lag_rate is None


def test_a_group_that_cannot_be_described_keeps_its_row() -> None:
    made = history(sample(1.0, {}, group("g", {}, members=None, error="GroupAuthorizationFailed")))
    (row,) = made.group_rows()
    assert (row.members, row.lag, row.error) == (None, None, "GroupAuthorizationFailed")
    assert [column.text(row) for column in GROUPS.columns][3:5] == ["-", "-"]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([0, 0, 0], "  ▁▁▁"),
        ([0, 7], "   ▁█"),
        ([1, None, 8], "  ▁ █"),
        ([1000, 1001, 1000], "  ▁▁▁"),
        ([], "     "),
        ([None], "     "),
        (list(range(9, -1, -1)), "█▆▅▃▁"),
    ],
)
def test_spark_lines(values: list[float | None], line: str) -> None:
    assert spark_line(values, 5) == line


# --- order and filter ------------------------------------------------------------------------------------------------


def rows_of_topics() -> History:
    names = {"b": 10, "a": 10, "c": 500, "Orders": 3}
    topics = {name: TopicLayout(1, 0, 0) for name in (*names, "unread")}
    known = attrs.evolve(layout(), topics=topics)
    ends = {TopicPartition(name, 0): end for name, end in names.items()}
    before = sample(0.0, dict.fromkeys(ends, 0), layout=known)
    return history(before, sample(1.0, ends, layout=known))


def test_topics_are_sorted_by_rate_then_by_name_and_those_without_one_are_last() -> None:
    rows = rows_of_topics().topic_rows()
    assert [row.name for row in select_rows(rows, TOPICS)] == ["c", "a", "b", "Orders", "unread"]
    assert [row.name for row in select_rows(rows, TOPICS, descending=False)] == ["Orders", "a", "b", "c", "unread"]
    assert [row.name for row in select_rows(rows, TOPICS, sorted_by=0)] == ["Orders", "a", "b", "c", "unread"]


def test_a_filter_ignores_case() -> None:
    rows = rows_of_topics().topic_rows()
    assert [row.name for row in select_rows(rows, TOPICS, text="oR")] == ["Orders"]
    assert select_rows(rows, TOPICS, text="nothing") == []


@pytest.mark.parametrize("kind", [BROKERS, TOPICS, GROUPS])
def test_every_table_fits_into_80_columns(kind: Any) -> None:
    shown = fit_columns(kind.columns, 79)
    assert list(shown) == list(range(len(kind.columns)))
    assert sum(width + 2 for width in shown.values()) == 79
    assert min(shown.values()) > 4


@pytest.mark.parametrize(
    ("kind", "titles"),
    [
        (BROKERS, ["NODE", "ADDRESS", "UNDER"]),
        (TOPICS, ["TOPIC", "RECORDS/S", "UNDER"]),
        (GROUPS, ["GROUP", "LAG"]),
        (LAGS, ["PARTITION", "LAG"]),
        (MEMBERS, ["MEMBER"]),
        (RECORDS, ["PART", "OFFSET", "VALUE"]),
    ],
)
def test_a_narrow_terminal_shows_what_matters_most(kind: Any, titles: list[str]) -> None:
    shown = fit_columns(kind.columns, 39)
    assert [kind.columns[index].title for index in shown] == titles
    assert sum(width + 2 for width in shown.values()) == 39
    assert fit_columns(kind.columns, 1)


def test_every_column_sorts_rows_with_and_without_values() -> None:
    made = history(
        sample(1.0, {LOG: 5}, group("g", {LOG: 1}), group("h", {}, members=None)),
        sample(2.0, {LOG: 9}, group("g", {LOG: 1}), group("h", {}, members=None)),
    )
    tables: list[tuple[Any, list[Any]]] = [
        (BROKERS, made.broker_rows()),
        (TOPICS, made.topic_rows()),
        (GROUPS, made.group_rows()),
    ]
    for kind, rows in tables:
        for index in range(len(kind.columns)):
            assert len(select_rows(rows, kind, sorted_by=index)) == len(rows)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"),
        (0, "0"),
        (1_234_567, "1,234,567"),
        (12_345_678, "12.3M"),
        (12_345_678_901, "12.3G"),
        (2**63 - 1, "9223P"),
    ],
)
def test_big_numbers_take_nine_characters_at_most(number: int | None, text: str) -> None:
    assert big_number(number) == text
    assert len(text) <= 9


def test_small_rates_have_a_digit_after_the_point() -> None:
    assert [decimal(rate) for rate in (0, 0.25, 9.94, 10.4, None)] == ["0", "0.2", "9.9", "10", "-"]


# --- plain output ----------------------------------------------------------------------------------------------------


def samples() -> History:
    lagging = group("billing", {ORDERS[0]: 90, ORDERS[1]: 40})
    failed = group("secret", {}, members=None, state="", error="GroupAuthorizationFailed")
    first = sample(10.0, {ORDERS[0]: 100, ORDERS[1]: 50, LOG: 7}, lagging, failed)
    return history(first, sample(12.0, {ORDERS[0]: 300, ORDERS[1]: 60, LOG: 7}, lagging, failed))


def test_plain_tables() -> None:
    assert plain_tables(samples()) == (
        "NODE  ADDRESS         RACK  LEADS  UNDER  IN SYNC  RECORDS/S\n"
        "   1  a:9092          west      2      0      2/2        100\n"
        "  2*  b:9092          -         1      1      2/2        5.0\n"
        "   3  not in service  -         0      0      1/2          -\n"
        "\n"
        "TOPIC   RECORDS/S  PARTITIONS  UNDER  NO LEADER\n"
        "orders        105           3      1          1\n"
        "log             0           1      0          0\n"
        "\n"
        "GROUP    STATE   TYPE     MEMBERS  LAG  TREND\n"
        "billing  Stable  classic        1  230          ▁█\n"
        "secret   -       classic        -    -\n"
        "secret: GroupAuthorizationFailed\n"
    )


def test_a_controller_that_is_no_broker_is_named() -> None:
    made = history(sample(1.0, {}, layout=attrs.evolve(layout(), controller_id=3000)))
    assert "\ncontroller: 3000\n\nTOPIC" in plain_tables(made)


def test_json_has_all_fields() -> None:
    found = json.loads(json_line(samples()))
    assert (found["cluster_id"], found["controller_id"], found["seconds"]) == ("c", 2, 2.0)
    assert found["timestamp"] == 1_700_000_012_000
    assert found["brokers"][0] == {
        "node_id": 1,
        "address": "a:9092",
        "rack": "west",
        "is_controller": False,
        "leads": 2,
        "under_replicated": 0,
        "replica_count": 2,
        "in_sync_count": 2,
        "rate": 100.0,
        "error": None,
    }
    assert found["topics"][0] == {
        "topic": "orders",
        "partitions": 3,
        "rate": 105.0,
        "under_replicated": 1,
        "leaderless": 1,
        "unread": 0,
    }
    assert found["groups"][0] == {
        "group_id": "billing",
        "state": "Stable",
        "group_type": "classic",
        "members": 1,
        "lag": 230,
        "lag_rate": 105.0,
        "unknown": 0,
        "error": None,
    }
