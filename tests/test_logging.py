"""What the library logs: which lines, by which logger, how many in a day, and nothing at all for a record."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import anyio
import attrs
import pytest
from support.clusters import QUICK, Net
from support.log_calls import PAGE, log_calls, named_in, page, plain_loggers
from support.log_scan import forms_of
from support.log_watch import LogWatch, watched_log

from aiokafkawire import Client, Consumer, ProducerFenced, TopicPartition
from aiokafkawire.cluster.connection_pool import ConnectionPool
from aiokafkawire.cluster.metadata import EMPTY
from aiokafkawire.cluster.metadata_log import MetadataLog
from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import ConnectionLost, ErrorCode, FencedInstanceId
from aiokafkawire.event_log import FIELDS, EventLog, TroubleLog
from aiokafkawire.network.connection_reports import ConnectionReports
from aiokafkawire.observe import Observers
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.runtime import Owner, Runtime
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.types import Address

DAY = 24 * 3600.0


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[tuple[Broker, Client]]:
    async with Broker(port=None) as broker:
        broker.create_topic("a", partitions=2)
        async with Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as client:
            yield broker, client


async def joined(consumer: Consumer[Any, Any], count: int) -> None:
    with anyio.fail_after(20):
        while len(consumer.assignment) != count:
            await consumer.poll(timeout=0.02)


# --- the loggers ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_program_that_has_not_set_logging_up_sees_warnings() -> None:
    program = """
import asyncio
from aiokafkawire import Client
from aiokafkawire.testing import Broker

async def main():
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        async with kafka.consumer("ordres", group_id="billing") as consumer:
            await anext(consumer)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith("topic 'ordres' does not exist in the cluster")
        finally:
            process.kill()


def test_every_logger_is_one_of_an_area() -> None:
    with watched_log(logging.DEBUG) as log:
        simulate(_everything, seed=3)
    areas = {one.name for one in log.records}
    assert areas == {f"aiokafkawire.{area}" for area in ("cluster", "group", "network", "producer")}


async def _everything(sim: Simulation) -> None:
    sim.broker.create_topic("a", partitions=2)
    async with sim.client() as client, client.producer(transactional_id="x") as producer:
        async with producer.transaction():
            await producer.send("a", b"1")
        async with client.consumer("a", group_id="g", auto_offset_reset="earliest") as consumer:
            await anext(consumer)


# --- fields --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_line_is_logged_with_fields() -> None:
    advice = """write `_log = EventLog("aiokafkawire.AREA")`, and _log.info("joined %(group)r", group="g")"""
    assert plain_loggers() == [], advice


@pytest.mark.slow
def test_every_field_is_one_of_the_table_and_every_name_of_a_message_is_given() -> None:
    calls = log_calls()
    assert len(calls) > 60
    unclear = [call.place for call in calls if not call.messages]
    assert unclear == [], "a message must be a literal, or a local name that is given literals"
    strange = {call.place: call.fields - FIELDS.keys() for call in calls if call.fields - FIELDS.keys()}
    assert strange == {}, "add the field to FIELDS of event_log.py, or give what only the message has as text={...}"
    lacking = {
        call.place: missing
        for call in calls
        for message in call.messages
        if (missing := named_in(message) - call.fields - call.text)
    }
    assert lacking == {}, "the message names what the call does not give"


def test_no_field_is_an_attribute_of_records() -> None:
    record = logging.makeLogRecord({})
    assert FIELDS.keys() & {*vars(record), "message", "asctime", "taskName"} == set()


@pytest.mark.slow
def test_the_tables_of_the_page_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "run: python tests/support/log_calls.py"


@pytest.mark.slow
def test_json_logger_and_structlog_write_the_fields() -> None:
    blocks = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "setFormatter" in block]
    assert len(blocks) == 2
    for block in blocks:
        more = """
from aiokafkawire.event_log import EventLog
EventLog("aiokafkawire.network").warning("%(broker)s: %(error)s", broker="a:9092", error=OSError("no"), elapsed=0.5)
"""
        done = subprocess.run([sys.executable, "-c", block + more], capture_output=True, text=True, check=True)
        line = json.loads(done.stderr)
        assert {"broker": "a:9092", "error": "OSError", "elapsed": 0.5}.items() <= line.items()
        assert "a:9092: no" in (line.get("message"), line.get("event"))


# --- members of groups ---------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_members_life_is_told_at_info() -> None:
    with watched_log() as log:
        async with running() as (_, client), client.consumer("a", group_id="g") as one:
            await joined(one, 2)
            member_id = one.group_metadata().member_id
            async with client.consumer("a", group_id="g") as other:
                with anyio.fail_after(20):
                    while len(other.assignment) != 1:
                        await one.poll(timeout=0.02)
            await joined(one, 2)
    lines = [line for line in log.of("group") if member_id in line or "a-0" in line]
    assert log.of("cluster") == ["INFO cluster: found the coordinator of group 'g': broker 1 at memory-1:9092"]
    assert log.of("group")[:3] == [
        "INFO group: joining group 'g': subscribed to a",
        f"INFO group: joined group 'g', as its leader: generation 1, protocol 'range', member id '{member_id}'",
        "INFO group: assigned in group 'g', generation 1: a-0, a-1; 2 partitions in all",
    ]
    assert log.of("group").count("INFO group: left group 'g': the consumer was closed") == 2
    rejoined = "INFO group: rejoining group 'g', generation 1: the group is rebalancing"
    revoked = "INFO group: revoked in group 'g': a-0, a-1"
    assert log.of("group").index(rejoined) < log.of("group").index(revoked)
    assert lines[-1] == "INFO group: revoked in group 'g': a-0, a-1"


@pytest.mark.anyio
async def test_a_member_that_is_removed_says_that_it_lost_its_membership() -> None:
    with watched_log() as log:
        options: dict[str, Any] = {"group_id": "g", "heartbeat_interval_ms": 50}
        async with running() as (broker, client), client.consumer("a", **options) as consumer:
            await joined(consumer, 2)
            order = broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.UNKNOWN_MEMBER_ID)
            with anyio.fail_after(20):
                await order.met(1)
                await log.until(lambda lines: any("lost in group" in line for line in lines))
    lines = log.of("group")
    (lost,) = [
        line for line in lines if line.startswith("INFO group: lost the membership in group 'g', generation 1: ")
    ]
    assert "UnknownMemberId" in lost
    assert lines.index(lost) < lines.index("INFO group: lost in group 'g': a-0, a-1")


@pytest.mark.anyio
async def test_a_static_member_that_is_replaced_says_that_it_was_fenced() -> None:
    options: dict[str, Any] = {"group_id": "g", "group_instance_id": "s", "heartbeat_interval_ms": 50}
    with watched_log() as log:
        async with running() as (_, client), client.consumer("a", **options) as one:
            await joined(one, 2)
            async with client.consumer("a", **options) as other:
                await joined(other, 2)
                with anyio.fail_after(20), pytest.raises(FencedInstanceId):
                    await anext(one)
    (fenced,) = [line for line in log.of("group") if "fenced" in line]
    assert fenced.startswith("WARNING group: fenced by another member of group 'g': ")
    stops = (
        "INFO group: static member 's' of group 'g' stops: the consumer was closed; its partitions stay assigned for"
    )
    assert any(line.startswith(stops) for line in log.of("group"))


def test_a_coordinator_that_is_gone_for_long_is_lost_once_and_answers_again_once() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a", partitions=2)
        async with sim.client() as client, client.consumer("a", group_id="g") as consumer:
            await joined_in(sim, consumer)
            sim.network.block(1)
            sim.network.cut(1)
            with anyio.move_on_after(20):
                await anext(consumer)
            sim.network.unblock(1)
            with anyio.move_on_after(60):
                await anext(consumer)

    async def joined_in(sim: Simulation, consumer: Consumer[Any, Any]) -> None:
        while not consumer.assignment:
            await consumer.poll(timeout=0.1)

    with watched_log() as log:
        simulate(main, seed=1, nodes=1)
    told = [line.partition(":")[2].split(":")[0].strip() for line in log.of("cluster")]
    assert told == [
        "found the coordinator of group 'g'",
        "lost the coordinator of group 'g', broker 1 at memory-1",
        "the coordinator of group 'g' answers again",
    ]


def test_a_member_that_is_not_polled_says_so_and_what_to_set() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a", partitions=1)
        async with sim.client() as client, client.consumer("a", group_id="g") as consumer:
            while not consumer.assignment:
                await consumer.poll(timeout=0.1)
            await anyio.sleep(400)

    with watched_log() as log:
        simulate(main, seed=1)
    told = "leaving group 'g': poll() was not called for 300 s (max_poll_interval_ms)"
    assert f"WARNING group: {told}; the consumer rejoins on the next poll" in log.of("group")


@pytest.mark.slow
def test_a_day_of_a_healthy_consumer_is_a_handful_of_lines() -> None:
    sent = 48

    async def main(sim: Simulation) -> int:
        sim.broker.create_topic("a", partitions=2)
        options: dict[str, Any] = {
            # Fewer requests than by default, so that the day takes seconds: what they do is the same.
            "fetch_max_wait_ms": 25_000,
            "heartbeat_interval_ms": 60_000,
            "session_timeout_ms": 180_000,
            "auto_commit_interval_ms": 60_000,
        }
        read = 0
        async with (
            sim.client() as client,
            client.consumer("a", group_id="g", **options) as consumer,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_write, sim)
            with anyio.move_on_after(DAY):
                async for _ in consumer:
                    read += 1
        return read

    async def _write(sim: Simulation) -> None:
        async with sim.client() as client, client.producer() as producer:
            for _ in range(sent):
                await anyio.sleep(DAY / sent - 60)
                await producer.send("a", b"1")

    with watched_log() as log:
        assert simulate(main, seed=1, nodes=1, time_limit=DAY + 1000).value == sent
    assert len(log.lines) <= 12, "\n".join(log.lines)
    assert {one.levelname for one in log.records} == {"INFO"}


# --- trouble that repeats ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_hour_without_brokers_is_a_few_lines_with_counts_and_their_ends() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a", partitions=2)
        async with (
            sim.client(default_api_timeout_ms=7_200_000) as client,
            client.consumer("a", group_id="g") as consumer,
            client.producer() as producer,
        ):
            while not consumer.assignment:
                await consumer.poll(timeout=0.1)
            await producer.send("a", b"1", partition=0)
            await sim.crash(1)
            with anyio.move_on_after(3600):
                await anext(consumer)
                await anext(consumer)
            await sim.restart(1)
            with anyio.fail_after(60):
                await producer.send("a", b"1", partition=0)
                await consumer.poll(timeout=30)

    with watched_log() as log:
        simulate(main, seed=1, nodes=1, time_limit=DAY)
    unreachable = [line for line in log.lines if "is unreachable" in line]
    assert unreachable[0].startswith("WARNING network: broker memory-1:9092 is unreachable, the client tries again: ")
    lasting = [int(line.rpartition(" failures in ")[2].removesuffix(" s)")) for line in unreachable[1:]]
    assert lasting == [pytest.approx(seconds, abs=1) for seconds in (10, 60, 600)]
    (back,) = [line for line in log.lines if "is reachable again" in line]
    assert re.fullmatch(r"INFO network: broker memory-1:9092 is reachable again after \d+ failures in 36\d\d s", back)
    (refreshed,) = [line for line in log.lines if "refreshed the metadata" in line]
    assert re.fullmatch(r"INFO cluster: refreshed the metadata after \d+ failures in 36\d\d s", refreshed)
    assert len(log.lines) <= 40, "\n".join(log.lines)


def test_a_coordinator_that_is_not_available_for_long_is_warned_of() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        order = sim.broker.on(ApiKey.FIND_COORDINATOR, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=None)
        async with sim.client() as client, client.consumer("a", group_id="g") as consumer:
            with anyio.move_on_after(300):
                await consumer.poll(timeout=300)
            order.remove()
            with anyio.fail_after(60):
                while not consumer.assignment:
                    await consumer.poll(timeout=0.1)

    with watched_log() as log:
        simulate(main, seed=1, nodes=1)
    lines = log.of("cluster")
    assert lines[0].startswith("INFO cluster: no coordinator of group 'g' is found, looking it up again: ")
    assert 1 <= sum(line.startswith("WARNING cluster: no coordinator of group 'g' is found") for line in lines) <= 3
    assert re.search(r"INFO cluster: found the coordinator of group 'g': .* after \d+ failures in 3\d\d s", lines[-1])


def test_a_leader_that_changes_is_no_warning_of_the_producer() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        async with sim.client() as client, client.producer() as producer:
            await producer.send("a", b"1")
            (described,) = (await client.admin.describe_topics(["a"])).values()
            assert described.partitions[0].leader is not None
            await sim.crash(described.partitions[0].leader)
            await producer.send("a", b"2")

    with watched_log(logging.DEBUG) as log:
        simulate(main, seed=2, nodes=3)
    assert [line for line in log.of("producer") if not line.startswith(("DEBUG", "INFO"))] == []
    assert all("is unreachable" in line for line in log.lines if line.startswith("WARNING"))


def test_partitions_without_a_leader_are_warned_of_and_their_end_is_logged() -> None:
    clock, why = [0.0], "a-0 has no leader, so its records wait: check the brokers that have its replicas"
    metadata = MetadataLog(lambda: clock[0])
    with watched_log() as log:
        for second in range(20):
            clock[0] = float(second)
            metadata.refreshed(attrs.evolve(EMPTY, leaderless=(TopicPartition("a", 0),)))
        metadata.refreshed(EMPTY)
    assert log.lines == [
        f"WARNING cluster: {why} (11 failures in 10 s)",
        "INFO cluster: a-0 has a leader after 20 failures in 19 s",
    ]


@pytest.mark.anyio
async def test_a_hundred_brokers_that_are_down_are_not_a_hundred_lines_a_minute() -> None:
    clock = [0.0]
    owner = Owner()
    await owner.open()
    runtime = Runtime(now=lambda: clock[0], chance=Random(1))
    brokers = ConnectionPool(make_config(ClientConfig, {}), Net().connect, owner, runtime)
    with watched_log() as log:
        for second in range(60):
            clock[0] = 2.0 * second
            for number in range(100):
                with pytest.raises(ConnectionLost):
                    await brokers.connection(Address(f"b{number}", 9092))
    await brokers.close()
    await owner.close()
    assert len(log.lines) == 18  # five brokers and the others, at the beginning, after 10 s and after a minute
    shared = [line for line in log.lines if "others" in line]
    assert all("; so 94 others (" in line for line in shared)
    assert len(shared) == 2
    assert {vars(record)["others"] for record in log.records if "others" in vars(record)} == {94}


@pytest.mark.anyio
async def test_a_broker_that_throttles_is_one_line_and_its_end_another() -> None:
    clock = [0.0]
    with watched_log() as log:
        throttling = TroubleLog(EventLog("aiokafkawire.network"), lambda: clock[0], first=logging.INFO)
        reports = ConnectionReports(Observers(), Address("a", 9092), "", {}, lambda: clock[0], throttling)
        for second in range(12):
            clock[0] = float(second)
            reports.throttled("Produce", 0.5)
        reports.not_throttled("Produce")
        reports.not_throttled("Produce")
    why = "broker a:9092 throttles Produce for 0.5 s, since the client has exceeded a quota"
    assert log.lines == [
        f"INFO network: {why}",
        f"WARNING network: {why} (11 failures in 10 s)",
        "INFO network: broker a:9092 throttles Produce no more after 12 failures in 11 s",
    ]


# --- producers -----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_producers_epochs_are_told_and_the_one_that_is_fenced_says_so() -> None:
    with watched_log() as log:
        async with running() as (_, client), client.producer(transactional_id="x") as old:
            async with old.transaction():
                await old.send("a", b"1")
            async with client.producer(transactional_id="x") as new:
                async with new.transaction():
                    await new.send("a", b"1")
                with pytest.raises(ProducerFenced):
                    async with old.transaction():
                        await old.send("a", b"1")
            async with client.producer() as producer:
                await producer.send("a", b"1")
    lines = log.of("producer")
    begun = [line for line in lines if "producer id" in line]
    assert begun[0] == "INFO producer: transactional id 'x': producer id 0, epoch 0"
    assert begun[1].startswith("INFO producer: transactional id 'x': producer id 0, epoch ")
    assert begun[2] == "INFO producer: producer id 1, epoch 0 (idempotence)"
    assert len(begun) == 3
    failed, fenced = [line for line in lines if line not in begun]
    assert failed.startswith("WARNING producer: failed to send 1 records to a-")
    assert fenced.startswith("WARNING producer: transactional id 'x': the producer can send nothing more: ")
    found = "INFO cluster: found the coordinator of transactional id 'x': broker 1 at memory-1:9092"
    assert log.of("cluster") == [found]


# --- connections, requests and retries at DEBUG --------------------------------------------------------------------


@pytest.mark.anyio
async def test_connections_and_requests_are_told_at_debug_and_no_record_is() -> None:
    with watched_log(logging.DEBUG, "aiokafkawire.network") as log:
        async with running() as (_, client), client.producer() as producer:
            await producer.send("a", b"payload", partition=0)
            before = len(log.lines)
            await producer.send_many("a", [b"payload"] * 1000, partition=0)
            assert len(log.lines) - before <= 2 * 3  # a line for a request, and one for its answer
    text = "\n".join(log.lines)
    assert "DEBUG network: connected to memory-1:9092 (lane control) in " in text
    assert "DEBUG network: request 0 to memory-1:9092: ApiVersions v" in text
    assert "DEBUG network: answer 0 from memory-1:9092: ApiVersions v" in text
    assert "to memory-1:9092: Produce v" in text
    assert "from memory-1:9092: Produce v" in text
    assert "DEBUG network: connection to memory-1:9092 closed: " in text
    assert "payload" not in text


@pytest.mark.anyio
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_login_is_told_at_debug_and_its_password_is_not(mechanism: str) -> None:
    password = "Kx4-logged-never"
    options: dict[str, Any] = {"sasl_username": "alice", "sasl_password": password, "sasl_mechanism": mechanism}
    with watched_log(logging.DEBUG) as log:
        async with Broker(port=None, users={"alice": password}) as broker:
            options |= {"security_protocol": "SASL_PLAINTEXT", "connector": broker.connect}
            async with Client(broker.bootstrap, **options):
                pass
    told = f"DEBUG security: logged in to memory-1:9092 by {mechanism}, until the connection closes"
    assert log.of("security") == [told]
    assert any("SaslAuthenticate v" in line for line in log.of("network"))
    text = "\n".join(log.lines)
    assert not [form for form in forms_of(password) if form in text]


@pytest.mark.anyio
async def test_requests_are_told_once_debug_is_turned_on_while_a_connection_is_open() -> None:
    async with running() as (_, client):
        with watched_log(logging.DEBUG) as log:
            await client.admin.list_topics()
        assert any("Metadata v" in line for line in log.of("network"))
        with watched_log() as log:
            await client.admin.list_topics()
        assert log.lines == []


@pytest.mark.anyio
async def test_retries_are_told_at_debug_with_their_cause_and_delay() -> None:
    with watched_log(logging.DEBUG) as log:
        async with running() as (broker, client), client.producer() as producer:
            broker.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_ENOUGH_REPLICAS)
            await producer.send("a", b"1", partition=0)
            broker.on(ApiKey.CREATE_TOPICS, answer=ErrorCode.NOT_CONTROLLER)
            await client.admin.create_topics({"b": 1})
    (produced,) = [line for line in log.of("producer") if "retrying" in line]
    assert produced.startswith("DEBUG producer: retrying a batch of 1 records for a-0 in ")
    assert "NOT_ENOUGH_REPLICAS" in produced
    (created,) = [line for line in log.of("cluster") if "retrying" in line]
    assert created.startswith("DEBUG cluster: retrying CreateTopics in ")
    assert ": NotController: creating topic 'b': " in created


def test_the_watch_of_these_tests_hears_and_stops() -> None:
    with watched_log() as log:
        logging.getLogger("aiokafkawire.group").info("one")
    logging.getLogger("aiokafkawire.group").warning("two")
    assert isinstance(log, LogWatch)
    assert log.lines == ["INFO group: one"]
