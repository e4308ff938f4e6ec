"""What ``aiokafkawire top`` shows of a group and of records, and that no text can harm the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from aiokafkawire import TopicPartition
from aiokafkawire.admin.descriptions import GroupMember
from aiokafkawire.cli.shell.safe_text import safe_bytes, safe_text
from aiokafkawire.cli.top.detail_rows import (
    LAGS,
    MEMBERS,
    RECORDS,
    LagRow,
    RecordRow,
    newest_ranges,
    record_text,
    rows_of_lag,
    rows_of_members,
)

T = [TopicPartition("t", index) for index in range(4)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain äöü 日本 😀", "plain äöü 日本 😀"),
        ("two\nlines\tand\rmore", r"two\nlines\tand\rmore"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("abc\u202edef\u200b\ufeff", r"abc\u202edef\u200b\ufeff"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud800", r"\ud800"),
        ("a\u2028b", r"a\u2028b"),
    ],
)
def test_what_a_terminal_might_obey_or_hide_is_escaped(text: str, shown: str) -> None:
    assert safe_text(text) == shown
    assert safe_text(text).isprintable()


def test_long_text_is_cut() -> None:
    assert safe_text("x" * 300, 10) == "x" * 9 + "…"
    assert safe_text("x" * 10, 10) == "x" * 10
    assert safe_text("\n" * 6, 10) == r"\n\n\n\n\…"
    assert len(safe_bytes(b"\xff" * 10_000, 20)) == 20


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, "null"),
        (b"", ""),
        ('{"a": "ä"}'.encode(), '{"a": "ä"}'),
        (b"\x00\x01\xff\xfe", r"\x00\x01\xff\xfe"),
        (b"[red]not markup[/red]", "[red]not markup[/red]"),
    ],
)
def test_bytes_are_text_where_they_are_utf_8(data: bytes | None, shown: str) -> None:
    assert safe_bytes(data) == shown


def test_bytes_that_are_cut_end_with_an_ellipsis() -> None:
    assert safe_bytes(b"\x00" * 5_000, 50).endswith("…")
    assert safe_bytes("ä".encode() * 5_000, 50) == "ä" * 49 + "…"


# --- groups ----------------------------------------------------------------------------------------------------------


def member(client_id: str, *assignment: TopicPartition) -> GroupMember:
    return GroupMember(f"{client_id}-1", None, client_id, "/10.0.0.1", assignment)


def test_partitions_of_a_group_have_their_lag_and_owner() -> None:
    rows = rows_of_lag({T[0]: 5, T[2]: 8, T[3]: 1}, {T[3]: 7}, {T[0]: 9, T[1]: 4, T[3]: 50}, [member("a", T[0], T[1])])
    assert rows == (
        LagRow(T[0], 5, 9, 4, "a"),
        LagRow(T[1], None, 4, None, "a"),
        LagRow(T[2], 8, None, None, None),
        LagRow(T[3], 1, 50, 7, None),
    )


def test_members_are_sorted_by_client() -> None:
    rows = rows_of_members([member("b", T[0]), member("a", T[1], T[2])])
    assert [(row.client_id, row.partitions) for row in rows] == [("a", 2), ("b", 1)]


def test_names_of_clients_are_escaped() -> None:
    (row,) = rows_of_members([member("\x1b[2J")])
    assert all(column.text(row).isprintable() for column in MEMBERS.columns)
    (lag,) = rows_of_lag({}, {}, {}, [member("\x1b[2J", T[0])])
    assert all(column.text(lag).isprintable() for column in LAGS.columns)


# --- records ---------------------------------------------------------------------------------------------------------


def test_as_many_records_are_read_of_each_partition() -> None:
    begins, ends = {T[0]: 0, T[1]: 95, T[2]: 7}, {T[0]: 100, T[1]: 100, T[2]: 7}
    assert newest_ranges(begins, ends, 20) == ({T[0]: 90, T[1]: 95}, {T[0]: 100, T[1]: 100})


def test_of_many_partitions_only_some_are_read() -> None:
    starts, _ = newest_ranges(dict.fromkeys(T, 0), dict.fromkeys(T, 10), 2)
    assert starts == {T[0]: 9, T[1]: 9}


def test_nothing_is_read_of_an_empty_topic() -> None:
    assert newest_ranges({T[0]: 5}, {T[0]: 5}, 20) == ({}, {})


def record(**fields: Any) -> RecordRow:
    values = {
        "partition": 1,
        "offset": 42,
        "timestamp": 1_700_000_000_123,
        "key": b"k",
        "value": b"v\x1b",
        "key_size": 1,
        "value_size": 2,
        "headers": (),
    }
    return RecordRow(**{**values, **fields})


def test_a_record_is_shown_in_a_row() -> None:
    assert [column.text(record()) for column in RECORDS.columns] == ["1", "42", "22:13:20.123", "k", r"v\x1b"]


def test_all_of_a_record_is_shown() -> None:
    shown = record_text(
        record(key=None, value=b"v" * 4096, value_size=9_000, headers=(("trace\n", b"\x00"), ("e", None)))
    )
    assert shown == (
        "partition 1, offset 42, 2023-11-14 22:13:20.123\n"
        "key     null\n"
        r"header  trace\n: \x00" + "\n"
        "header  e: null\n"
        f"value   {'v' * 4096} (4,096 of 9,000 bytes)"
    )


@pytest.mark.parametrize(("timestamp", "shown"), [(-1, "-"), (2**62, f"{2**62} ms")])
def test_a_timestamp_that_is_no_time_is_no_error(timestamp: int, shown: str) -> None:
    assert RECORDS.columns[2].text(record(timestamp=timestamp)) == shown
