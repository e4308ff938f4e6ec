"""The judge of a network under fault, its names, and its schedule of kinds."""

from __future__ import annotations

import re
import struct
import sys
from ipaddress import ip_address
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.group_faults.processes import Read
from benchmarks.network_faults.kinds import KINDS
from benchmarks.network_faults.link import rules_of
from benchmarks.network_faults.names import answer
from benchmarks.network_faults.namespaces import name_of, zone
from benchmarks.network_faults.plot import picture
from benchmarks.network_faults.schedule import duration
from benchmarks.recovery.judge import Passed, Recovery, reader_wrongs, recovery, summary
from benchmarks.recovery.report import markdown, marks, render, write_into
from benchmarks.recovery.run import pooled
from benchmarks.recovery.windows import Window

WINDOW = Window(began=10.0, healed=18.0, until=30.0)


def steady() -> list[Passed]:
    """A record each half second for 40 s, done 0.1 s later."""
    return [Passed(at / 2, at / 2 + 0.1) for at in range(80)]


def test_without_trouble_nothing_is_recovered_from() -> None:
    found = recovery(steady(), WINDOW)
    assert found.first == pytest.approx(0.1)
    assert found.gap == pytest.approx(0.5)
    assert found.slowest == pytest.approx(0.1)
    assert (found.caught_up, found.limit) == (0.0, 12.0)


def test_a_client_has_caught_up_with_the_last_late_record() -> None:
    records = [one if not 10 <= one.due < 21 else Passed(one.due, 20.0 + one.due / 10) for one in steady()]
    found = recovery(records, WINDOW)
    assert found.first == pytest.approx(3.0)
    assert found.caught_up == pytest.approx(4.05)
    assert found.gap == pytest.approx(21.0 - 10.0)
    assert found.slowest == pytest.approx(21.0 - 10.0)


def test_a_busy_machine_later_is_no_part_of_the_recovery() -> None:
    records = [one if not 10 <= one.due < 19 else Passed(one.due, 20.0) for one in steady()]
    for before in (records, steady()):
        stalled = [one if not 24 <= one.due < 26 else Passed(one.due, 27.5) for one in before]
        assert recovery(stalled, WINDOW).caught_up == recovery(before, WINDOW).caught_up


def test_what_is_not_healed_is_recovered_from_when_the_backlog_is_done() -> None:
    records = [one if not 10 <= one.due < 15 else Passed(one.due, 15.0 + one.due / 100) for one in steady()]
    assert recovery(records, Window(10.0, 10.0, 30.0)).caught_up == pytest.approx(5.14)


@pytest.mark.parametrize("done", [None, 31.0])
def test_a_late_record_that_never_comes_is_no_recovery(done: float | None) -> None:
    records = [one if one.due != 12 else Passed(12, done) for one in steady()]
    assert recovery(records, WINDOW).caught_up is None


def test_silence_has_no_first_record() -> None:
    records = [Passed(one.due, one.done if one.due < 10 else None) for one in steady()]
    found = recovery(records, WINDOW)
    assert found.gap == pytest.approx(20.0)
    assert (found.first, found.caught_up) == (None, None)


def test_what_was_late_before_the_fault_does_not_count() -> None:
    records = [one if one.due != 2 else Passed(2, 8.0) for one in steady()]
    assert recovery(records, WINDOW).caught_up == 0.0


def test_a_summary_counts_what_did_not_end_as_the_time_that_was_watched() -> None:
    faults = [Recovery(0.1, 2.0, 9.0, 12.0), Recovery(0.2, None, 9.0, 12.0), Recovery(0.3, 1.0, 9.0, 12.0)]
    assert summary(faults, "caught_up") == {"median": 2.0, "worst": 12.0}
    assert summary(faults, "first") == {"median": 0.2, "worst": 0.3}


def test_a_reader_may_neither_lose_nor_repeat_nor_disorder() -> None:
    lines = [{"record": number, "partition": number % 2, "at": 0.0} for number in range(6)]
    reads = [Read("1.0", number % 2, number, float(at)) for at, number in enumerate([0, 1, 4, 2, 1, 3])]
    found = {name: count for name, count in reader_wrongs(lines, reads, 6).items() if count}
    assert found == {"lost": 1, "doubled": 1, "out_of_order": 1}


def query(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(one)]) + one.encode() for one in name.split("."))
    return struct.pack(">6H", 77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


ZONE = {"broker-1.test": ["10.66.0.1", "fd66::1"]}


@pytest.mark.parametrize(("kind", "address"), [(1, "10.66.0.1"), (28, "fd66::1")])
def test_a_name_has_the_addresses_of_the_family(kind: int, address: str) -> None:
    found = answer(query("Broker-1.test", kind), ZONE, "answers")
    assert found is not None
    assert struct.unpack_from(">6H", found) == (77, 0x8580, 1, 1, 0, 0)
    assert found.endswith(ip_address(address).packed)


@pytest.mark.parametrize(
    ("name", "kind", "mood", "code"),
    [("broker-1.test", 15, "answers", 0), ("other.test", 1, "answers", 3), ("broker-1.test", 1, "fails", 2)],
)
def test_a_name_may_have_none_or_fail(name: str, kind: int, mood: str, code: int) -> None:
    found = answer(query(name, kind), ZONE, mood)  # type: ignore[arg-type]
    assert found is not None
    assert (found[3] & 0x0F, found[6:8]) == (code, b"\0\0")


def test_silence_and_damaged_queries_have_no_answer() -> None:
    assert answer(query("broker-1.test", 1), ZONE, "silent") is None
    assert answer(b"short", ZONE, "answers") is None
    assert answer(query("broker-1.test", 1)[:-3], ZONE, "answers") is None


def test_brokers_that_have_moved_have_other_addresses() -> None:
    assert zone("4", {2: 1})[name_of(2)] == ["10.66.0.12"]
    assert zone("6")[name_of(2)] == ["fd66::2"]
    assert zone()[name_of(1)] == ["10.66.0.1", "fd66::1"]


def test_the_rules_of_every_kind_travel_and_its_run_ends() -> None:
    for kind in KINDS.values():
        assert rules_of(kind.rules.as_json()) == kind.rules
        assert 0 < duration(kind, 3) < 300


ROW = {
    "kind": "cut",
    "title": "nothing passes",
    "client": "ours",
    "records": 2_000,
    "failed": 0,
    "wrong": 1,
    "wrongs": {"out_of_order": 1},
    "problems": ["it hung"],
    "errors": {"ConnectionLost": 3},
    "log_lines": 4,
    "faults": [{"first": None, "caught_up": None, "gap": 9.0, "limit": 12.0}],
}
ROWS = [ROW | {"role": role, "client": client} for client in ("ours", "confluent") for role in ("producer", "reader")]


def test_a_report_has_a_line_for_each_role_of_each_client() -> None:
    text = render({"kafka": "4"}, ROWS[:2])
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if "nothing passes" in line]
    assert [one[:3] for one in cells] == [["nothing passes", "ours", "12.0 [12.0] (1 not at all)"]] * 2
    assert "cut, ours, reader: NOT ENDED WELL: it hung" in text
    assert "cut, ours, producer: WRONG: 1 out_of_order" in text


def test_several_runs_are_reported_as_one() -> None:
    other = ROW | {"faults": [{"first": 1.0, "caught_up": 2.0, "gap": 1.0, "limit": 12.0}], "log_lines": None}
    (row,) = pooled([[ROW | {"logged": {"a": 1}}], [other | {"logged": {"a": 2, "b": 1}}]])
    assert row["kind"] == "cut"
    assert [one["first"] for one in row["faults"]] == [None, 1.0]
    assert (row["records"], row["wrong"], row["log_lines"]) == (4_000, 2, 4)
    assert (row["wrongs"], row["errors"]) == ({"out_of_order": 2}, {"ConnectionLost": 6})
    assert row["logged"] == {"a": 3, "b": 1}


ABOUT = {
    "load": "100 records/s",
    "machine": "2 cores",
    "date": "today",
    "load before": "0.1",
    "packages": "aiokafkawire 1",
}


def test_the_tables_replace_what_is_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    begin, end = marks("networks")
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    for _ in range(2):
        write_into(page, "networks", markdown(ABOUT, ROWS))
    text = page.read_text()
    assert (text.startswith(f"before\n{begin}\n100 records/s"), text.endswith(f"{end}\nafter\n")) == (True, True)
    assert "| producer: caught up / gap, s | aiokafkawire | confluent-kafka |" in text
    cell = "12.0 [12.0] (1 not at all) / 9.0 [9.0], 1 out of order"
    assert text.count(f"| nothing passes | {cell} | {cell} |") == 2


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="between which the tables are written"):
        write_into(page, "networks", "text")


def test_the_picture_has_a_mark_for_each_client_and_is_xml() -> None:
    root = ET.fromstring(picture(ROWS))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}polygon")) == 4 + 2  # and the legend
    assert "prefers-color-scheme: dark" in "".join(root.itertext())
