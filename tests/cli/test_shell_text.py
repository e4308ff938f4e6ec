"""The pure parts of the shell: tables, points, formats, templates, filters and lines."""

import itertools
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire import OffsetSpec
from aiokafkawire.cli.error_text import error_text
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.records.filters import make_filter
from aiokafkawire.cli.records.formats import Record, hex_formatter, json_formatter, plain_formatter
from aiokafkawire.cli.records.lines import LineSplitter, decode_json, split_keys
from aiokafkawire.cli.records.points import BeforeEnd, parse_point, parse_time
from aiokafkawire.cli.records.templates import template_formatter, unescape
from aiokafkawire.cli.shell.meter import Meter
from aiokafkawire.cli.shell.table import table
from aiokafkawire.cli.shell.times import iso_time
from aiokafkawire.errors import KafkaError
from aiokafkawire.records.batch import ConsumerRecord

NOW = 1_795_000_000_000


def record(
    value: bytes | None = b"v",
    key: bytes | None = b"k",
    headers: Sequence[tuple[str, bytes | None]] = (),
    timestamp: int = 1_000,
    offset: int = 7,
) -> Record:
    return ConsumerRecord(
        "orders", 2, offset, raw_key=key, raw_value=value, headers=tuple(headers), timestamp=timestamp
    )


# --- tables ----------------------------------------------------------------------------------------------------------


def test_columns_are_aligned_and_numbers_to_the_right() -> None:
    rows = [("orders", 0, None, (1, 2)), ("b", 10, True, ())]
    assert table(("TOPIC", "N", "FLAG", "ISR"), rows) == (
        "TOPIC    N  FLAG  ISR\norders   0  -     1,2\nb       10  yes   -\n"
    )


def test_a_table_without_rows_has_its_heading() -> None:
    assert table(("TOPIC", "N"), []) == "TOPIC  N\n"


def test_wide_characters_take_two_columns() -> None:
    assert table(("NAME", "N"), [("東京", 1), ("abc", 2)]) == "NAME  N\n東京  1\nabc   2\n"


# --- points ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("beginning", OffsetSpec.EARLIEST),
        ("latest", OffsetSpec.LATEST),
        ("42", 42),
        ("-10", BeforeEnd(10)),
        ("90s", OffsetSpec.at(NOW - 90_000)),
        ("1.5h", OffsetSpec.at(NOW - 5_400_000)),
        ("@123", OffsetSpec.at(123)),
        ("2026-11-23T17:30:00+00:00", OffsetSpec.at(1_795_455_000_000)),
        ("2026-11-23", OffsetSpec.at(round(datetime(2026, 11, 23).timestamp() * 1000))),
    ],
)
def test_points_are_offsets_times_and_ends(text: str, point: object) -> None:
    assert parse_point("--from", text, NOW) == point


@pytest.mark.parametrize("text", ["", "yesterday", "--3", "5y", "1e3", "2026-13-01", "9" * 19])
def test_what_is_no_point_is_wrong_usage(text: str) -> None:
    with pytest.raises(CommandFailed, match=r"--from: .* is no point in a topic; write 'beginning'") as refused:
        parse_point("--from", text, NOW)
    assert refused.value.status == 2


def test_times_may_be_milliseconds_or_ago() -> None:
    assert parse_time("--after", "1795000000000", NOW) == NOW
    assert parse_time("--after", "1m", NOW) == NOW - 60_000
    assert parse_time("--after", "20261123", NOW) == round(datetime(2026, 11, 23).timestamp() * 1000)
    with pytest.raises(CommandFailed, match="--after: 'end' is no time"):
        parse_time("--after", "end", NOW)


@pytest.mark.parametrize("milliseconds", [1_701_121_501_200, 1_764_010_112_000])
def test_milliseconds_that_could_be_a_date_of_long_ago_are_milliseconds(milliseconds: int) -> None:
    assert parse_time("--timestamp", str(milliseconds), NOW) == milliseconds


# --- formats ---------------------------------------------------------------------------------------------------------


def test_plain_writes_values_with_delimiters() -> None:
    write = plain_formatter(b"\n", None, b"NULL")
    assert write([record(b"a"), record(b""), record(None)]) == (3, b"a\n\nNULL\n")
    assert write(iter([record(b"\xff\n")])) == (1, b"\xff\n\n")
    assert write([]) == (0, b"")


def test_plain_writes_keys_before_a_separator() -> None:
    write = plain_formatter(b";", b":", b"")
    assert write([record(b"a", b"k"), record(None, None)]) == (2, b"k:a;:;")


def test_json_has_every_field_and_bytes_that_are_no_text() -> None:
    count, lines = json_formatter([record("é".encode(), b"\xff", [("h", None), ("h", b"1")]), record(None, None)])
    assert count == 2
    first, second = map(json.loads, lines.splitlines())
    assert first == {
        "topic": "orders",
        "partition": 2,
        "offset": 7,
        "timestamp": 1000,
        "timestamp_type": "create_time",
        "key": {"base64": "/w=="},
        "value": "é",
        "headers": [["h", None], ["h", "1"]],
    }
    assert (second["key"], second["value"]) == (None, None)


def test_hex_dumps_key_value_and_headers() -> None:
    _, text = hex_formatter([record(bytes(range(60, 78)), None, [("h", b"1")])])
    row = "3c 3d 3e 3f 40 41 42 43 44 45 46 47 48 49 4a 4b"
    assert text.decode().splitlines() == [
        "orders:2 offset 7, 1970-01-01T00:00:01.000Z",
        "  key: null",
        "  value: 18 bytes",
        f"    00000000  {row}  |<=>?@ABCDEFGHIJK|",
        f"    00000010  {'4c 4d':<47}  |LM|",
        "  header h: 1 byte",
        f"    00000000  {'31':<47}  |1|",
    ]


def test_a_template_has_a_token_for_everything() -> None:
    write = template_formatter(r"%t/%p/%o %T %D [%h] %K:%k %S:%v=%s %%\t\x41\n", b"NULL")
    one = record(b"val", None, [("a", b"1"), ("b", None)])
    expected = b"orders/2/7 1000 1970-01-01T00:00:01.000Z [a=1,b=NULL] -1:NULL 3:val=val %\tA\n"
    assert write([one, one]) == (2, expected * 2)


@pytest.mark.parametrize("template", ["%x", "a%"])
def test_an_unknown_token_is_wrong_usage(template: str) -> None:
    with pytest.raises(CommandFailed, match=r"--format: unknown token .*; known: %k key") as refused:
        template_formatter(template, b"")
    assert refused.value.status == 2


def test_escapes() -> None:
    assert unescape(r"a\n\t\0\\\x00\q é") == b"a\n\t\0\\\x00\\q \xc3\xa9"


def test_times_outside_the_calendar_are_dashes() -> None:
    assert (iso_time(-1), iso_time(2**62)) == ("-", "-")


def test_the_meter_tells_count_and_rate() -> None:
    times = iter((10.0, 12.0))
    meter = Meter(lambda: next(times))
    meter.add(3_000, 2_000_000)
    assert meter.text() == "3,000 records, 2.0 MB in 2.00 s: 1,500 records/s, 1.0 MB/s"


# --- filters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        ({"key": "^k$"}, True),
        ({"key": "K"}, False),
        ({"key": "K", "ignore_case": True}, True),
        ({"value": "al"}, True),
        ({"value": "al", "key": "x"}, False),
        ({"value": "al", "invert": True}, False),
        ({"headers": ["h"]}, True),
        ({"headers": ["H"]}, False),
        ({"headers": ["h=^1"]}, True),
        ({"headers": ["h=3", "h"]}, False),
        ({"after_ms": 1_000}, True),
        ({"after_ms": 1_001}, False),
        ({"before_ms": 1_001}, True),
        ({"before_ms": 1_000}, False),
    ],
)
def test_a_record_passes_if_all_conditions_hold(conditions: dict[str, object], kept: bool) -> None:
    keep = make_filter(**conditions)  # type: ignore[arg-type]
    assert keep is not None
    assert keep(record(b"value", b"k", [("h", b"12"), ("n", None)])) is kept


def test_null_matches_nothing_and_no_condition_is_no_filter() -> None:
    on_value, on_key = make_filter(value=""), make_filter(key="")
    assert on_value is not None
    assert on_key is not None
    assert not on_value(record(None))
    assert not on_key(record(key=None))
    assert make_filter() is None


def test_a_wrong_regular_expression_is_wrong_usage() -> None:
    with pytest.raises(CommandFailed, match=r"--grep: '\(' is no regular expression") as refused:
        make_filter(value="(")
    assert refused.value.status == 2


# --- lines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feed", [LineSplitter.feed, LineSplitter.feed_values])
@given(st.binary(max_size=40), st.sampled_from([b"\n", b"ab", b"\0"]), st.lists(st.integers(0, 40), max_size=4))
def test_pieces_of_any_size_give_the_same_lines(feed: Any, data: bytes, delimiter: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter(delimiter)
    bounds = [0, *sorted(cuts), len(data)]
    found = [
        line for start, end in itertools.pairwise(bounds) if start < end for line in feed(splitter, data[start:end])
    ]
    found += splitter.finish()
    expected = data.split(delimiter)
    assert found == (expected if expected[-1] else expected[:-1])


def test_keys_end_at_the_first_separator() -> None:
    assert split_keys([b"a:b:c", b":"], b":", 1) == ([b"a", b""], [b"b:c", b""], None)


def test_the_lines_before_one_without_a_key_are_kept() -> None:
    keys, values, wrong = split_keys([b"a:b", b"oops", b"c:d"], b":", 11)
    assert (keys, values) == ([b"a"], [b"b"])
    assert str(wrong) == "line 12 has no key separator ':': 'oops'"


def test_json_describes_a_record() -> None:
    line = b"""{"key": "k", "value": {"a": [1, "x"]}, "partition": 3, "timestamp": 5, "headers": {"h": null, "i": "1"},
        "topic": "t", "offset": 9, "timestamp_type": "create_time"}"""
    found = decode_json(line, 1)
    assert (found.key, found.value, found.partition, found.timestamp_ms) == (b"k", b'{"a":[1,"x"]}', 3, 5)
    assert found.headers == (("h", None), ("i", b"1"))
    empty = decode_json(b"{}", 1)
    assert (empty.key, empty.value, empty.partition, empty.timestamp_ms, empty.headers) == (None, None, None, None, ())


@pytest.mark.parametrize(
    "text", ["1.10", "1e5", "1e400", "-0.12345678901234567890123", '[1,{"\u00e9 ":2.50}]', "[" * 200 + "]" * 200]
)
def test_other_json_keeps_the_text_of_its_numbers(text: str) -> None:
    assert decode_json(f'{{"value": {text}}}'.encode(), 1).value == text.encode()


@given(
    st.none() | st.binary(max_size=20),
    st.none() | st.binary(max_size=20),
    st.lists(
        st.tuples(st.text(st.characters(codec="utf-8"), max_size=5), st.none() | st.binary(max_size=5)), max_size=3
    ),
)
def test_what_consume_writes_as_json_produce_reads_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    _, line = json_formatter([record(value, key, headers)])
    found = decode_json(line, 1)
    assert (found.key, found.value, found.headers) == (key, value, tuple(headers))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"not json", r"line 4 is not JSON \(.*\): 'not json'"),
        (b"[1]", r"line 4 is no JSON object: '\[1\]'"),
        (b'{"value": NaN}', r"line 4 is not JSON \(NaN is no number\)"),
        (b'{"value": ' + b"[" * 100_000, r"line 4 is not JSON \(.*\): "),
        (b'{"partition": 1.5}', "line 4: partition must be an integer from 0 to 2147483647, got 1.5"),
        (b'{"valeu": 1}', "line 4 has an unknown field 'valeu'; known: headers, key"),
        (b'{"partition": -1}', "line 4: partition must be an integer from 0 to 2147483647, got -1"),
        (b'{"timestamp": true}', "line 4: timestamp must be an integer"),
        (b'{"value": {"base64": "?"}}', "line 4: value is not base64"),
        (b'{"headers": [["a"]]}', "line 4: headers must be a list of "),
    ],
)
def test_wrong_json_is_told_with_its_line(line: bytes, told: str) -> None:
    with pytest.raises(CommandFailed, match=told) as refused:
        decode_json(line, 4)
    assert refused.value.status == 1


def test_names_in_tables_and_errors_cannot_command_a_terminal() -> None:
    shown = table(["GROUP"], [["a\x1b[2Jb\nc"], ["\u202eé"], [{"a\nb": [0, 1]}]])
    assert shown.splitlines() == ["GROUP", r"a\x1b[2Jb\nc", r"\u202eé", r"a\nb:0,1"]
    assert error_text(KafkaError("group '\x1b[2J' is\n gone.")) == r"KafkaError: group '\x1b[2J' is gone"
