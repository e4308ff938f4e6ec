"""What a user of the simulation relies on: virtual time, faults that do as they say, and what an error tells."""

import anyio
import pytest
from simulation.idle import idle

from aiokafkawire import NoBrokerReachable, RequestTimeout, TopicPartition
from aiokafkawire.records.batch import AnyReader
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.testing.virtual.chaos import Fault

A0 = TopicPartition("a", 0)


def values(sim: Simulation) -> list[bytes | None]:
    """What is in the log of a-0."""
    found: list[bytes | None] = []
    for batch in sim.broker.log("a").batches():
        reader: AnyReader[bytes, bytes] = batch.records("a", 0)
        found.extend(record.raw_value for record in reader)
    return found


def test_time_passes_at_once_and_the_result_comes_back() -> None:
    async def main(sim: Simulation) -> str:
        await anyio.sleep(1_000)
        return f"at {sim.now():g}"

    run = simulate(main, seed=7)
    assert (run.seed, run.value, run.seconds) == (7, "at 1000", 1_000)


def test_what_hangs_ends_at_the_limit() -> None:
    async def main(sim: Simulation) -> None:
        await anyio.sleep_forever()

    with pytest.raises(TimeoutError):
        simulate(main, time_limit=100)


def test_an_error_tells_the_seed_and_the_end_of_the_trace() -> None:
    async def main(sim: Simulation) -> None:
        sim.note("something odd")
        raise ValueError("odd")

    with pytest.raises(ValueError, match="odd") as raised:
        simulate(main, seed=12)
    (note,) = raised.value.__notes__
    assert note.startswith("simulation with seed 12")
    assert note.endswith("0.000000 something odd")


def test_records_take_the_way_over_the_network() -> None:
    async def main(sim: Simulation) -> float:
        sim.broker.create_topic("a")
        async with sim.client() as client, client.producer() as producer:
            await producer.send("a", b"first")  # connects, and asks for metadata
            began = sim.now()
            written = await producer.send("a", b"second")
            assert written.timestamp == 1_700_000_000_000 + int(began * 1000)
            return sim.now() - began

    run = simulate(main, latency=(0.25, 0.25))
    assert run.value == pytest.approx(0.5)
    assert [line.split()[3] for line in run.trace.lines if " > PRODUCE" in line] == ["PRODUCE", "PRODUCE"]


def test_a_broker_that_crashes_refuses_until_it_is_back() -> None:
    async def main(sim: Simulation) -> None:
        await sim.crash(1)
        with pytest.raises(NoBrokerReachable, match="Errno 111"):
            await sim.client(bootstrap_timeout_ms=1_000).open()
        await sim.restart(1)
        async with sim.client():
            pass

    simulate(main, nodes=1)


def test_a_leader_that_is_cut_off_is_fenced_when_its_session_is_over() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        first = sim.broker.leader("a")
        async with sim.client() as client, client.producer() as producer:
            await producer.send("a", b"before")
            sim.network.partition({first})
            began = sim.now()
            await producer.send("a", b"during")
            assert sim.now() - began > 9
            assert sim.broker.leader("a") != first
            assert sorted(sim.broker.isr("a")) == sorted({1, 2, 3} - {first})
            sim.network.heal()
            assert len(sim.broker.isr("a")) == 3
        assert set(values(sim)) == {b"before", b"during"}

    simulate(main)


def test_a_silent_leader_costs_a_producer_one_request_timeout_and_not_two() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        async with sim.client(request_timeout_ms=30_000) as client, client.producer() as producer:
            await producer.send("a", b"before")
            sim.network.partition({sim.broker.leader("a")})
            began = sim.now()
            await producer.send("a", b"during")
            assert sim.now() - began < 35

    simulate(main)


@pytest.mark.parametrize("acks", ["all", 1])
def test_a_leader_that_only_its_client_reaches_commits_nothing(acks: str | int) -> None:
    """acks=1 is acknowledged, and lost with the leader; acks=all is neither."""

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        first = sim.broker.leader("a")
        async with sim.client("left behind") as client:
            producer = client.producer(acks=acks, delivery_timeout_ms=5_000)  # type: ignore[call-overload]
            async with producer:
                await producer.send("a", b"before")
                sim.network.partition({"left behind", first})
                if acks == 1:
                    await producer.send("a", b"lost")
                else:
                    with pytest.raises(RequestTimeout):
                        await producer.send("a", b"lost")
                assert values(sim)[:2] == [b"before", b"lost"]
                await anyio.sleep(10)
                assert values(sim) == [b"before"]
                sim.network.heal()
                await producer.send("a", b"after")
                assert values(sim) == [b"before", b"after"]

    simulate(main)


def test_followers_that_do_not_reach_their_leader_copy_again_when_they_do() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        leader = sim.broker.leader("a")
        follower = next(node for node in sim.broker.node_ids if node != leader)
        sim.network.partition({follower})
        async with sim.client() as client, client.producer() as producer:
            began = sim.now()
            with anyio.fail_after(20):
                await producer.send("a", b"x")  # waits until the follower is fenced
            assert sim.now() - began > 5
        assert follower not in sim.broker.isr("a")
        sim.network.heal()
        assert follower in sim.broker.isr("a")

    simulate(main)


def test_a_partition_shorter_than_the_session_fences_nobody() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        first = sim.broker.leader("a")
        sim.network.partition({first})
        await anyio.sleep(8)
        sim.network.heal()
        await anyio.sleep(8)
        assert sim.broker.leader("a") == first

    simulate(main)


@pytest.mark.parametrize("fault", Fault)
def test_chaos_injects_each_fault_and_calm_ends_it(fault: Fault) -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        async with sim.client() as client, client.producer() as producer:
            sim.chaos(fault, every=(1, 3), lasting=(1, 20))
            for number in range(60):
                await producer.enqueue("a", b"%d" % number)
                await anyio.sleep(1)
            await sim.calm()
            count = sim.trace.faults.total()
            began = sim.now()
            await producer.send("a", b"last")
            assert sim.now() - began < 2
            await anyio.sleep(100)
            assert sim.trace.faults.total() == count
            assert len(sim.broker.isr("a")) == 3

    run = simulate(main, seed=3)
    assert list(run.trace.faults) == [fault.value]
    assert run.trace.faults[fault.value] > 3


def test_calm_ends_what_was_done_by_hand_too() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        await sim.crash(1)
        sim.broker.fence_node(2)
        sim.network.partition({3})
        sim.network.block(1, 2)
        sim.network.refuse(1, 2, 3)
        sim.network.slow(latency=(50, 50))
        await anyio.sleep(20)
        await sim.calm()
        assert len(sim.broker.isr("a")) == 3
        began = sim.now()
        async with sim.client() as client, client.producer() as producer:
            await producer.send("a", b"x")
        assert sim.now() - began < 1

    simulate(main)


@pytest.mark.slow
def test_a_quiet_minute_of_a_cluster_loses_nothing() -> None:
    run = idle(60)
    assert run.value == pytest.approx(600, abs=5)
    assert not run.trace.faults


def test_the_trace_keeps_the_newest_lines_and_a_digest_of_all() -> None:
    async def main(sim: Simulation) -> None:
        for number in range(10):
            sim.note(f"line {number}")

    short, whole = simulate(main, keep=2).trace, simulate(main).trace
    assert [line.split(maxsplit=1)[1] for line in short.lines] == ["line 8", "line 9"]
    assert str(short).startswith("... 8 lines before\n")
    assert (short.count, short.digest) == (whole.count, whole.digest)
    assert str(whole).splitlines() == whole.lines


def test_the_end_of_a_fault_of_chaos_ends_nothing_that_was_done_by_hand() -> None:
    async def main(sim: Simulation) -> None:
        sim.network.partition({1}, {"a", "b"})
        sim.network.block(2)
        await sim.crash(3)
        sim.chaos(every=(0.1, 0.2), lasting=(0.1, 1))
        for _ in range(2_000):
            await anyio.sleep(0.1)
            assert sim.network.separated("a", 1)
            assert sim.network.separated("c", 2)
            with pytest.raises(ConnectionRefusedError):
                await sim.broker.connect("memory-3", 9092)
        await sim.calm()
        await sim.broker.connect("memory-3", 9092)

    simulate(main)


def test_a_fault_that_is_ended_while_it_begins_leaves_the_broker_to_others() -> None:
    async def main(sim: Simulation) -> None:
        begun = anyio.Event()
        stop = sim.broker.stop_node

        async def slow_stop(node_id: int) -> None:
            begun.set()
            await stop(node_id)
            await anyio.sleep(1)

        sim.broker.stop_node = slow_stop  # type: ignore[method-assign]
        sim.chaos(Fault.CRASH, every=(1, 1), lasting=(1, 1))
        for node_id in sim.broker.node_ids * 2:
            await begun.wait()
            await sim.calm()
            begun = anyio.Event()
            assert sim.broker.coordinator(f"group {node_id}") > 0
            sim.chaos(Fault.CRASH, every=(1, 1), lasting=(1, 1))

    simulate(main)


def test_chaos_is_made_of_faults_and_times() -> None:
    async def main(sim: Simulation) -> None:
        with pytest.raises(TypeError, match=r"'crash' is not a Fault; known: Fault\.CRASH, "):
            sim.chaos("crash")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"every must be a minimum and a maximum .*, got \(3, 1\)"):
            sim.chaos(every=(3, 1))

    simulate(main)


def test_a_broker_that_was_crashed_by_hand_too_is_not_brought_back_by_chaos() -> None:
    async def main(sim: Simulation) -> None:
        sim.chaos(Fault.CRASH, every=(1, 1), lasting=(5, 5))
        await anyio.sleep(3.5)  # all are down, each for 5 s
        await sim.crash(2)
        for _ in range(100):
            await anyio.sleep(0.5)
            with pytest.raises(ConnectionRefusedError):
                await sim.broker.connect("memory-2", 9092)
        await sim.calm()
        await sim.broker.connect("memory-2", 9092)

    simulate(main)
