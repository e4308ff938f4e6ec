"""Leaders that brokers name in their answers (KIP-951): snapshots without asking, and what Metadata says later."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import anyio
import attrs
import pytest
from support.clusters import metadata, opened, partition, topic
from support.connecting import eventually
from support.patience import SOON
from support.scripted_broker import ScriptedBroker

from aiokafkawire.cluster import metadata as metadata_module
from aiokafkawire.cluster.metadata import EMPTY, Node, Snapshot, merge, with_leaders
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aiokafkawire.types import Address, TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NEW = Node(7, Address("new", 9092), "rack")


def known(*, epoch: int = 5, leader: int = 1) -> MetadataResponse:
    """Brokers 1 and 2; t has two partitions and u one."""
    first, second = (partition(index, leader, epoch) for index in (0, 1))
    return metadata(
        topic("t", first, second, topic_id=UUID(int=1)),
        topic("u", partition(0, leader, epoch), topic_id=UUID(int=2)),
        hosts=("a", "b"),
    )


def led(snapshot: Snapshot) -> dict[TopicPartition, tuple[int | None, int]]:
    found = {where: snapshot.partition(where) for where in (T0, T1, U0)}
    return {where: (one.leader, one.leader_epoch) for where, one in found.items() if one is not None}


BEFORE = {T0: (1, 5), T1: (1, 5), U0: (1, 5)}


def test_a_newer_leader_makes_the_next_snapshot_and_leaves_the_old_one() -> None:
    before = merge(EMPTY, known())
    assert led(before) == BEFORE
    after = with_leaders(before, {T1: (2, 6)}, [])
    assert led(after) == {T0: (1, 5), T1: (2, 6), U0: (1, 5)}
    assert after.generation == before.generation + 1
    assert after.nodes == before.nodes
    assert after.topic_id("t") == UUID(int=1)
    assert led(before) == BEFORE
    # What did not change is not made again.
    assert after.topics["u"] is before.topics["u"]
    assert after.topics["t"].partitions[1].replicas == before.topics["t"].partitions[1].replicas
    assert led(with_leaders(after, {T1: (1, 7), T0: (2, 8)}, [])) == {T0: (2, 8), T1: (1, 7), U0: (1, 5)}
    assert led(after)[T1] == (2, 6)


def test_several_partitions_change_together() -> None:
    before = merge(EMPTY, known())
    after = with_leaders(before, {T0: (2, 6), T1: (2, 9), U0: (2, 7)}, [])
    assert led(after) == {T0: (2, 6), T1: (2, 9), U0: (2, 7)}
    assert after.generation == before.generation + 1


def test_an_unknown_broker_comes_with_its_address_and_a_known_one_stays() -> None:
    before = merge(EMPTY, known())
    moved = Node(1, Address("elsewhere", 1))
    after = with_leaders(before, {T0: (7, 6)}, [NEW, moved])
    assert after.leader(T0) == NEW
    assert after.nodes == {**before.nodes, 7: NEW}
    assert 7 not in before.nodes


@pytest.mark.parametrize(
    "leaders",
    [{}, {T0: (2, 5)}, {T0: (2, 4)}, {T0: (-1, -1)}, {T0: (-1, 6)}, {T0: (9, 6)}]
    + [{TopicPartition(*where): (2, 6)} for where in (("t", 2), ("t", -1), ("v", 0))],
    ids=["none", "same", "older", "not told", "nobody", "no address", "no partition", "negative", "no topic"],
)
def test_what_is_not_newer_or_not_known_changes_nothing(leaders: dict[TopicPartition, tuple[int, int]]) -> None:
    before = merge(EMPTY, known())
    assert with_leaders(before, leaders, [NEW]) is before
    assert with_leaders(EMPTY, leaders, [NEW]) is EMPTY
    after = with_leaders(before, {**leaders, U0: (7, 6)}, [NEW])
    assert led(after) == {**BEFORE, U0: (7, 6)}


def test_a_partition_that_had_an_error_has_none_any_more() -> None:
    broken = partition(0, -1, 5, error_code=ErrorCode.LEADER_NOT_AVAILABLE)
    before = merge(EMPTY, metadata(topic("t", broken)))
    after = with_leaders(before, {T0: (1, 6)}, [])
    assert (after.topics["t"].answered[0].error_code, before.topics["t"].answered[0].error_code) == (0, 5)


@pytest.mark.parametrize(("epoch", "kept"), [(5, True), (6, False), (7, False), (-1, False)])
def test_an_answer_that_lags_behind_does_not_undo_it(epoch: int, kept: bool) -> None:
    hinted = with_leaders(merge(EMPTY, known()), {T0: (7, 6)}, [NEW])
    after = merge(hinted, known(epoch=epoch, leader=2))
    assert led(after)[T0] == ((7, 6) if kept else (2, epoch))
    # Its broker is known as long as it leads.
    assert after.leader(T0) == (NEW if kept else Node(2, Address("b", 9092)))
    assert (7 in after.nodes) == kept
    assert led(after)[T1] == (2, epoch)


def test_topics_are_still_made_when_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    before, made = merge(EMPTY, known()), list[str]()
    topic_class: Callable[..., Any] = metadata_module.Topic

    def noted(name: str, *rest: Any) -> Any:
        made.append(name)
        return topic_class(name, *rest)

    monkeypatch.setattr(metadata_module, "Topic", noted)
    after = with_leaders(before, {T0: (2, 6)}, [])
    assert made == []
    assert after.topics["t"].partitions[0].leader == 2
    assert made == ["t"]


# --- in a cluster --------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_who_waits_for_news_hears_of_it_without_a_request() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: known()
        async with opened(broker.connect) as cluster:
            seen, found = cluster.metadata.snapshot, list[Snapshot]()

            async def wait() -> None:
                found.append(await cluster.metadata.wait_for_update(seen))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                cluster.metadata.use_leaders({T0: (2, 5)}, [])
                assert cluster.metadata.snapshot is seen
                await anyio.wait_all_tasks_blocked()
                assert found == []
                cluster.metadata.use_leaders({T0: (7, 6)}, iter([NEW]))
                await eventually(lambda: len(found) == 1)
            assert found == [cluster.metadata.snapshot]
            assert (await cluster.leader(T0, cluster.deadline(10))) == NEW
            # Whoever acted on the snapshot before is told that a newer one is there.
            cluster.metadata.mark_stale(seen)
            await anyio.wait_all_tasks_blocked()
        assert broker.count(MetadataRequest) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(("epoch", "leader"), [(5, 7), (9, 1)], ids=["lags behind", "knows better"])
async def test_a_leader_named_while_a_thread_merges_is_not_lost(
    epoch: int, leader: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: known()
        async with opened(broker.connect) as cluster:
            monkeypatch.setattr(metadata_module, "_LARGE", 1)
            seen, merging, gate = cluster.metadata.snapshot, anyio.Event(), anyio.Event()

            async def held(function: Any, *args: Any) -> Any:
                merging.set()
                await gate.wait()
                return function(*args)

            cluster.metadata._runtime = attrs.evolve(cluster.runtime, offload=held)  # type: ignore[arg-type]  # a generic one
            broker.on[ApiKey.METADATA] = lambda _: known(epoch=epoch)
            cluster.metadata.mark_stale(seen)
            await merging.wait()
            for newer in (6, 7, 8):
                cluster.metadata.use_leaders({T0: (7, newer)}, [NEW])
            named = cluster.metadata.snapshot
            assert named.generation == seen.generation + 3
            gate.set()
            with anyio.fail_after(SOON):
                merged = await cluster.metadata.wait_for_update(named)
            assert merged.generation > named.generation
            assert cluster.metadata._named is None
            assert led(merged) == {T0: (leader, max(epoch, 8)), T1: (1, epoch), U0: (1, epoch)}
            assert merged.leader(T0) == merged.nodes[leader]
            # The next answer is merged with what is known by then.
            broker.on[ApiKey.METADATA] = lambda _: known(epoch=10)
            assert led(await cluster.metadata.refresh(merged, cluster.deadline(10)))[T0] == (1, 10)
