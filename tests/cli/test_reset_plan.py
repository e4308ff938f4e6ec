"""Plans of resets, and the files with offsets."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire import OffsetSpec, TopicPartition
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.groups.reset_file import parse_reset_file, read_reset_file, reset_file_text
from aiokafkawire.cli.groups.reset_plan import (
    CURRENT,
    PartitionOffsets,
    PlannedOffset,
    ResetTarget,
    Shift,
    plan_offset,
    plan_offsets,
)
from aiokafkawire.cli.records.points import BeforeEnd

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
LOG = PartitionOffsets(begin=10, end=100, committed=50, at_time=70)
NEW = PartitionOffsets(begin=10, end=100)
OFFSETS = st.integers(0, 2**40)


@st.composite
def logs(draw: st.DrawFn) -> PartitionOffsets:
    begin = draw(OFFSETS)
    end = begin + draw(st.integers(0, 1000))
    return PartitionOffsets(
        begin=begin,
        end=end,
        committed=draw(st.none() | OFFSETS),
        at_time=draw(st.none() | st.integers(begin, end)),
    )


TARGETS = st.one_of(
    OFFSETS,
    st.builds(BeforeEnd, OFFSETS),
    st.builds(Shift, st.integers(-(2**40), 2**40)),
    st.sampled_from([OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.at(5)]),
)


@pytest.mark.parametrize(
    ("target", "log", "planned"),
    [
        (OffsetSpec.EARLIEST, LOG, PlannedOffset(10)),
        (OffsetSpec.LATEST, LOG, PlannedOffset(100)),
        (OffsetSpec.at(5), LOG, PlannedOffset(70)),
        (OffsetSpec.at(5), NEW, PlannedOffset(100, "no record is that late: the end")),
        (42, LOG, PlannedOffset(42)),
        (5, LOG, PlannedOffset(10, "5 is before the beginning")),
        (500, LOG, PlannedOffset(100, "500 is after the end")),
        (BeforeEnd(10), LOG, PlannedOffset(90)),
        (BeforeEnd(1000), LOG, PlannedOffset(10, "-900 is before the beginning")),
        (Shift(-10), LOG, PlannedOffset(40)),
        (Shift(60), LOG, PlannedOffset(100, "110 is after the end")),
        (Shift(60), NEW, None),
        (CURRENT, LOG, PlannedOffset(50)),
        (CURRENT, PartitionOffsets(begin=10, end=100, committed=5), PlannedOffset(5)),
        (CURRENT, NEW, PlannedOffset(100, "no offset yet: the end")),
    ],
)
def test_each_target_has_its_offset(target: ResetTarget, log: PartitionOffsets, planned: PlannedOffset | None) -> None:
    assert plan_offset(target, log) == planned


@given(TARGETS, logs())
def test_a_planned_offset_is_in_the_log_and_a_note_tells_when_it_is_another(
    target: ResetTarget, log: PartitionOffsets
) -> None:
    planned = plan_offset(target, log)
    if planned is None:
        assert isinstance(target, Shift)
        assert log.committed is None
        return
    assert log.begin <= planned.offset <= log.end
    if isinstance(target, int):
        wanted = target
    elif isinstance(target, BeforeEnd):
        wanted = log.end - target.count
    elif isinstance(target, Shift):
        wanted = (log.committed or 0) + target.by
    else:
        return
    assert (planned.note == "") == (planned.offset == wanted)


@given(logs(), st.integers(-100, 100))
def test_a_shift_within_the_log_is_undone_by_the_opposite_one(log: PartitionOffsets, by: int) -> None:
    there = plan_offset(Shift(by), log)
    if there is None or there.note:
        return
    back = plan_offset(Shift(-by), PartitionOffsets(begin=log.begin, end=log.end, committed=there.offset))
    assert back is not None
    assert back.note or back.offset == log.committed


def test_partitions_that_cannot_be_shifted_are_named() -> None:
    planned, unknown = plan_offsets({A0: Shift(1), A1: Shift(1)}, {A0: LOG, A1: NEW})
    assert planned == {A0: PlannedOffset(51)}
    assert unknown == [A1]


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_file_of_one_group_and_one_of_several_are_read() -> None:
    assert parse_reset_file("f", 'a,0,5\n"a",1,6\n\n', ["g"]) == {"g": {A0: 5, A1: 6}}
    several = "g,a,0,5\nh,a,1,6\nother,a,0,1\n"
    assert parse_reset_file("f", several, ["g", "h"]) == {"g": {A0: 5}, "h": {A1: 6}}
    assert parse_reset_file("f", several, ["g"]) == {"g": {A0: 5}}


@pytest.mark.parametrize(
    ("text", "groups", "message"),
    [
        ("a,0\n", ["g"], "f:1: expected topic,partition,offset"),
        ("g,a,0,5\na,0,5\n", ["g", "h"], "f:2: expected topic,partition,offset"),
        ("a,0,5\na,x,5\n", ["g"], "f:2: the partition is a number from 0 to 2147483647, got 'x'"),
        ("a,0,-5\n", ["g"], "f:1: the offset is a number"),
        ("a,0,99999999999999999999\n", ["g"], "f:1: the offset is a number"),
        ("a,٣,5\n", ["g"], "the partition is a number"),
    ],
)
def test_a_wrong_line_is_named(text: str, groups: list[str], message: str) -> None:
    with pytest.raises(CommandFailed) as wrong:
        parse_reset_file("f", text, groups)
    assert message in str(wrong.value)
    assert wrong.value.status == 2


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,40}", fullmatch=True)
PLANS = st.dictionaries(
    NAMES,
    st.dictionaries(
        st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), min_size=1
    ),
    min_size=1,
)


def test_groups_are_named_by_all_of_their_characters(tmp_path: Path) -> None:
    offsets = {" g ": {A0: 5}, "g": {A0: 6}, "a\rb\r\nc": {A0: 7}, "\u2028": {A0: 8}}
    path = tmp_path / "offsets.csv"
    path.write_bytes(reset_file_text(offsets, name_groups=True).encode())
    assert parse_reset_file("f", read_reset_file(str(path)), list(offsets)) == offsets
    assert parse_reset_file("f", " g , a , 0 , 5 \n", ["g"]) == {"g": {A0: 5}}


@pytest.mark.slow
@given(PLANS)
def test_what_is_written_is_read_back(offsets: dict[str, dict[TopicPartition, int]]) -> None:
    text = reset_file_text(offsets, name_groups=True)
    assert parse_reset_file("f", text, list(offsets)) == offsets
    one = dict(list(offsets.items())[:1])
    assert parse_reset_file("f", reset_file_text(one, name_groups=False), list(one)) == one
    assert all(len(row) == 4 for row in csv.reader(io.StringIO(text)))
