"""Which contenders and cases there are, and what a measured client is told to do."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.arguments import names_of, positive, positives
from benchmarks.cases import Case
from benchmarks.catalogue import BENCHMARKS, Wishes, size_text
from benchmarks.clients.measurement import Job, Watch, print_share, thinned
from benchmarks.contenders import CLIENTS, WAYS, contenders
from benchmarks.machine import has_module
from benchmarks.running import JOBS, program_of, settings_of


def all_cases() -> list[Case]:
    return [case for one in BENCHMARKS.values() for case in one.cases(Wishes())]


# --- contenders ----------------------------------------------------------------------------------------------


def test_clients_take_turns() -> None:
    found = contenders("produce", ["ours", "aiokafka", "confluent"], ["asyncio", "trio"])
    assert [one.label for one in found] == [
        "aiokafkawire enqueue asyncio",
        "aiokafka send asyncio",
        "confluent produce_reports",
        "aiokafkawire send_nowait asyncio",
        "aiokafka send_batch asyncio",
        "confluent produce",
        "aiokafkawire enqueue trio",
        "aiokafkawire send_nowait trio",
    ]


def test_of_those_that_are_alike_there_is_one_of_each_client() -> None:
    found = contenders("consume", list(CLIENTS), ["uvloop", "trio"], alike=True)
    assert [one.label for one in found] == [
        "aiokafkawire batches uvloop",
        "aiokafka getmany uvloop",
        "confluent consume",
        "kafka-python poll",
    ]


def test_a_client_without_the_loops_asked_for_is_left_out() -> None:
    assert [one.client for one in contenders("latency", ["ours", "aiokafka"], ["trio"])] == ["ours"]


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # by kafka-python
@pytest.mark.parametrize(
    ("task", "client"), [(task, client) for task in WAYS if task not in JOBS for client in WAYS[task]]
)
def test_every_way_is_there(task: str, client: str) -> None:
    if not has_module(CLIENTS[client]):
        pytest.skip(f"{client} is not installed")
    known = importlib.import_module(program_of(task, client)).WAYS
    assert set(WAYS[task][client]) <= set(known)


# --- cases ---------------------------------------------------------------------------------------------------


def test_no_two_cases_have_one_name() -> None:
    assert [name for name, times in Counter(case.full_name for case in all_cases()).items() if times > 1] == []


def test_settings_are_what_the_measured_programs_take() -> None:
    of_cases_alone = {"message", "direction", "tls", "samples", "group"}
    for case in all_cases():
        assert case.settings.keys() - of_cases_alone <= settings_of(case.task).keys(), case.full_name
        assert case.settings.keys() <= {one.name for one in fields(JOBS.get(case.task, Job))}, case.full_name


def test_wishes_are_followed() -> None:
    cases = BENCHMARKS["produce"].cases(Wishes((5, 2_000), ("none", "lz4")))
    assert [case.name for case in cases] == [
        "values of 5 B",
        "values of 5 B, lz4",
        "values of 2 KB",
        "values of 2 KB, lz4",
    ]


def test_groups_are_further_cases_of_consume() -> None:
    cases = BENCHMARKS["consume"].cases(Wishes((100,), groups=("none", "classic", "consumer")))
    assert [(case.name, case.settings.get("group"), case.alike) for case in cases] == [
        ("values of 100 B", None, False),
        ("values of 100 B, classic protocol", "classic", True),
        ("values of 100 B, consumer protocol", "consumer", True),
    ]
    assert [case.name for case in BENCHMARKS["consume"].cases(Wishes((100,)))] == ["values of 100 B"]


def test_share_consumers_read_as_many_records_of_one_and_three_partitions() -> None:
    cases = BENCHMARKS["share"].cases(Wishes())
    assert [(case.name, case.settings["partitions"]) for case in cases] == [
        ("values of 100 B, one partition", 1),
        ("values of 100 B, three partitions", 3),
    ]
    assert {case.records(client, 1_000) for case in cases for client in WAYS["share"]} == {1_000}


def test_share_consumers_have_their_own_programs() -> None:
    assert [one.label for one in contenders("share", list(CLIENTS), ["uvloop"])] == [
        "aiokafkawire share_explicit uvloop",
        "confluent share_explicit",
        "java share_explicit",
        "aiokafkawire share_implicit uvloop",
        "confluent share_implicit",
        "java share_implicit",
        "aiokafkawire share_async_with uvloop",
    ]
    programs = {client: program_of("share", client) for client in WAYS["share"]}
    assert programs["java"] == "benchmarks.share.java_peer"
    assert programs["ours"] == "benchmarks.share.ours"


def test_a_share_consumer_that_read_too_much_or_too_little_has_no_figures(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job(records=10)
    watch = Watch(job)
    with pytest.raises(SystemExit, match="asked for 10 records, counted 11"):
        print_share(job, watch, first=3, done=11, version="1")
    print_share(job, watch, first=3, done=10, version="1")
    assert json.loads(capsys.readouterr().out)["records"] == 7


def test_who_is_quicker_takes_more_records_where_each_has_its_own() -> None:
    case = Case("produce", "", "produce", {"value_size": 100})
    assert (case.records("aiokafka", 1000), case.records("confluent", 1000)) == (1000, 5000)
    shared = Case("scale", "", "produce", keeps_topic=True)
    assert shared.records("confluent", 1000) == shared.records("ours", 1000) == 1000
    memory = Case("memory", "", "consume", {"samples": True}, share=10)
    assert memory.records("confluent", 1000) == memory.records("ours", 1000) == 10_000
    assert Case("latency", "", "latency", share=1 / 400).records("confluent", 200_000) == 500


def test_a_measurement_is_no_more_than_400_mb() -> None:
    case = Case("produce", "", "produce", {"value_size": 1_000_000})
    assert case.records("ours", 200_000) == case.records("confluent", 200_000) == 400


def test_what_a_client_cannot_do_is_refused_with_a_reason() -> None:
    assert not Case("scale", "", "produce", {"in_flight": 1}).refusal("aiokafka", "send")
    assert Case("scale", "", "produce", {"in_flight": 5}).refusal("aiokafka", "send")
    assert not Case("scale", "", "produce", {"in_flight": 5}).refusal("confluent", "produce")
    assert Case("rebalance", "", "rebalance", {"assignor": "cooperative-sticky"}).refusal("aiokafka", "members")
    assert not Case("produce", "", "produce").refusal("ours", "enqueue")
    for client, refuses in (("aiokafka", True), ("kafka-python", True), ("confluent", False), ("ours", False)):
        assert bool(Case("consume", "", "consume", {"group": "consumer"}).refusal(client, "")) is refuses
        assert not Case("consume", "", "consume", {"group": "classic"}).refusal(client, "")


# --- jobs ----------------------------------------------------------------------------------------------------


def test_consumers_share_all_that_was_filled() -> None:
    job = Job(topic="t", topics=2, partitions=5, records=1_003, consumers=3)
    shares = job.shares()
    assert sum(records for _, records in shares) == 1_003
    assert sorted(place for places, _ in shares for place in places) == sorted(job.places)
    filled = Counter((name, index) for name, index, _ in job.filling())
    assert [sum(filled[place] for place in places) for places, _ in shares] == [records for _, records in shares]


def test_records_go_to_the_topics_in_turn() -> None:
    assert [name for name, _ in Job(topic="t", topics=2, records=5).work()] == ["t-0", "t-1", "t-0", "t-1", "t-0"]
    assert {name for name, _ in Job(topic="t", records=5).work()} == {"t"}


def test_values_are_of_one_size_and_the_same_in_every_process() -> None:
    text = Job(content="text", value_size=300, records=50)
    values = [value for _, value in text.work()]
    assert {len(value) for value in values} == {300}
    assert len(set(values)) == 50
    assert values == [value for _, value in text.work()]
    assert len(set(Job(records=50).work())) == 1


def test_senders_share_the_sends() -> None:
    assert Job(records=10, senders=4).turns() == [3, 3, 2, 2]


def test_thinning_keeps_the_end() -> None:
    assert thinned([1.0, 2.0, 3.0, 4.0, 5.0], 3) == [1.0, 3.0, 5.0]
    assert thinned([1.0, 2.0, 3.0, 4.0], 2) == [2.0, 4.0]
    assert thinned([1.0, 2.0], 200) == [1.0, 2.0]


# --- arguments -----------------------------------------------------------------------------------------------


def test_arguments_are_checked() -> None:
    assert positive("3") == 3
    assert positives("10,200") == (10, 200)
    assert names_of(["a", "b"])("b,a") == ("b", "a")
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        positive("0")
    with pytest.raises(argparse.ArgumentTypeError, match="'c' is none of a, b"):
        names_of(["a", "b"])("a,c")


@pytest.mark.parametrize(("size", "text"), [(10, "10 B"), (1_000, "1 KB"), (1_500, "1500 B"), (1_000_000, "1 MB")])
def test_sizes_are_said_as_people_do(size: int, text: str) -> None:
    assert size_text(size) == text
