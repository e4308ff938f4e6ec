"""Members of consumer groups (KIP-848): the coordinator assigns, and they revoke, acknowledge and take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import anyio
import attrs
import pytest
from contract.conftest import Where
from contract.groups.conftest import COUNT, all_of, committed_by, numbers, write
from support.committed import raw
from support.connecting import eventually
from support.patience import PATIENCE
from support.readers import QUICK, SERVED, Partitions, Readers
from support.transactional import settled

from aiokafkawire import (
    Client,
    CommitFailed,
    ConfigError,
    ConsumerRecord,
    GroupListing,
    GroupMetadata,
    OutgoingRecord,
    SubscriptionPattern,
    TopicPartition,
    UsageError,
)
from aiokafkawire.errors import InvalidRegularExpression, UnknownMemberId, UnreleasedInstanceId, UnsupportedAssignor
from aiokafkawire.group.membership_driver import MembershipDriver
from aiokafkawire.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic

pytestmark = pytest.mark.anyio

CONSUMER: dict[str, Any] = {"group_protocol": "consumer"}


@pytest.fixture
async def cluster(quick_cluster: Where) -> Where:
    return quick_cluster


async def test_a_member_joins_reads_commits_and_leaves(kafka: Client, filled: str, group: str) -> None:
    read: list[ConsumerRecord[bytes, bytes]] = []
    async with kafka.consumer(filled, group_id=group, **SERVED) as consumer:
        with anyio.fail_after(PATIENCE):
            while len(read) < COUNT - 10:
                read += await consumer.poll(1)
        assert set(consumer.assignment) == all_of(filled)
        assert consumer.subscription == (filled,)
        metadata = consumer.group_metadata()
        assert re.fullmatch(r"[\w][\w-]{21}", metadata.member_id)
        assert metadata.generation_id > 0
    # The last record was in hand.
    assert await committed_by(kafka, group, filled) == COUNT - 11
    async with kafka.consumer(filled, group_id=group, **SERVED) as consumer:
        with anyio.fail_after(PATIENCE):
            again = [await anext(consumer) for _ in range(11)]
    assert sorted(int(record.value or b"") for record in read[:-1] + again) == list(range(COUNT))


async def test_members_share_and_read_on_what_they_keep(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, **CONSUMER)
    await readers.until(lambda: len(one.records) == COUNT)
    two = await readers.join(kafka, group, filled, **CONSUMER)
    await readers.share(one, two, count=3)
    assert one.words() == ["assigned", "revoked"]
    kept, gone = set(one.consumer.assignment), set(one.told[1][1])
    assert kept | gone == all_of(filled)
    assert two.told == [("assigned", tuple(sorted(gone)))]
    await write(kafka, filled, COUNT, COUNT + 30)
    await readers.until(lambda: len(numbers(one, two)) == COUNT + 30)
    assert numbers(one, two) == list(range(COUNT + 30))
    await two.close()
    await readers.until(lambda: one.owned == all_of(filled))
    assert two.words()[-1] == "revoked"
    assert (one.errors, two.errors) == ([], [])


async def test_a_revocation_waits_for_the_records_in_hand_and_their_commit(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    async with kafka.consumer(group_id=group, enable_auto_commit=False, **SERVED) as one:
        revoked: list[Partitions] = []

        async def commit(partitions: Partitions) -> None:
            revoked.append(partitions)
            await one.commit()

        one.subscribe(filled, on_revoked=commit)
        with anyio.fail_after(PATIENCE):
            held = await one.poll(COUNT)
            while len(held) < COUNT:
                held += await one.poll(COUNT)
            two = await readers.join(kafka, group, filled, **CONSUMER)
            # The other member is in the group, and the partitions in hand do not move.
            before = one.group_metadata().generation_id
            await eventually(lambda: any(part.being_given_up for part in one.health().partitions.values()))
            assert not revoked
            assert not two.owned
            assert all(one.owns(record) for record in held)
            await one.commit()
            assert await one.poll(timeout=0) == []
            while not two.owned:
                await one.poll(timeout=0.05)
        assert one.group_metadata().generation_id > before
        assert set(revoked[0]) == two.owned
    assert await committed_by(kafka, group, filled) == COUNT
    await readers.until(lambda: two.owned == all_of(filled))
    assert two.records == []


@pytest.mark.parametrize("wrong", ["epoch", "member"])
async def test_offsets_are_fetched_under_the_membership_and_again_after_a_heartbeat(
    kafka: Client, filled: str, group: str, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """The brokers refuse an outdated epoch, and a member that they do not know."""
    current = MembershipDriver.fetching_group
    asked: list[GroupMetadata | None] = []

    def fetching_group(driver: MembershipDriver) -> GroupMetadata | None:
        found = current.__get__(driver)
        assert isinstance(found, GroupMetadata)
        asked.append(found)
        if len(asked) > 1:
            return found
        return attrs.evolve(found, **{"generation_id": 0} if wrong == "epoch" else {"member_id": "nobody"})

    async with kafka.consumer(filled, group_id=group, **SERVED) as consumer:
        with anyio.fail_after(PATIENCE):
            held = await consumer.poll(COUNT)
            await consumer.commit()
            driver = consumer._in_group.driver if consumer._in_group is not None else None
            assert driver is not None
            monkeypatch.setattr(MembershipDriver, "fetching_group", property(fetching_group))
            found = await consumer.committed(all_of(filled))
            assert sum(at.offset for at in found.values() if at is not None) == len(held)
            assert len(asked) >= 2
            assert consumer.group_metadata() == asked[-1]
            assert set(consumer.assignment) == all_of(filled)


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
async def test_a_commit_leaves_out_partitions_that_move_and_are_not_in_hand(
    kafka: Client, filled: str, group: str, readers: Readers, protocol: str
) -> None:
    served: dict[str, Any] = SERVED
    if protocol == "classic":
        served = {**QUICK, "partition_assignment_strategy": ["cooperative-sticky"]}
    async with kafka.consumer(filled, group_id=group, **{**served, "enable_auto_commit": False}) as one:
        with anyio.fail_after(PATIENCE):
            (record,) = await one.poll(1)
            two = await readers.join(kafka, group, filled, reads=False, **served)
            while not two.owned:
                await one.commit()
        assert one.owns(record)
        assert TopicPartition(filled, record.partition) not in two.owned
        committed = await one.committed(one.assignment)
        assert committed[TopicPartition(filled, record.partition)] is not None


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
async def test_a_member_that_was_removed_reads_nothing_while_its_listener_runs(
    kafka: Client, filled: str, group: str, readers: Readers, protocol: str
) -> None:
    served: dict[str, Any] = SERVED
    if protocol == "classic":
        served = {**QUICK, "partition_assignment_strategy": ["cooperative-sticky"]}
    async with kafka.consumer(group_id=group, **{**served, "enable_auto_commit": False}) as one:
        revoking, done = anyio.Event(), anyio.Event()

        async def hang(_: Partitions) -> None:
            revoking.set()
            await done.wait()

        lost: list[Partitions] = []
        one.subscribe(filled, on_revoked=hang, on_lost=lost.append)
        with anyio.fail_after(PATIENCE):
            await one.poll(1)
            two = await readers.join(kafka, group, filled, **served)
            await eventually(lambda: any(part.being_given_up for part in one.health().partitions.values()))
            await one.poll(1)
            await revoking.wait()
            await kafka.admin.remove_members(group)
            await eventually(lambda: all(part.being_given_up for part in one.health().partitions.values()))
            await readers.until(lambda: two.owned == all_of(filled))
            assert await one.poll(timeout=0.2) == []
            done.set()
            await eventually(lambda: bool(lost))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
async def test_a_listener_that_is_cut_off_while_the_member_leaves_is_the_last_to_be_called(
    kafka: Client, filled: str, group: str, protocol: str
) -> None:
    served: dict[str, Any] = SERVED if protocol == "consumer" else QUICK
    revoked: list[Partitions] = []
    lost: list[Partitions] = []

    async def hang(partitions: Partitions) -> None:
        revoked.append(partitions)
        await kafka.admin.remove_members(group)
        await anyio.sleep_forever()

    async with kafka.consumer(group_id=group, **served) as one:
        one.subscribe(filled, on_revoked=hang, on_lost=lost.append)
        with anyio.fail_after(PATIENCE):
            await one.poll(1)
            await one.close(1.5)
    assert len(revoked) == 1
    assert not lost


async def test_who_subscribes_while_it_unsubscribes_joins_again(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, **CONSUMER)
    await readers.until(lambda: one.owned == all_of(filled))

    async def subscribe(_: Partitions) -> None:
        one.on.clear()
        one.subscribe(filled)

    one.on["revoked"] = subscribe
    await one.consumer.unsubscribe()
    assert one.consumer.subscription == (filled,)
    await readers.until(lambda: one.words()[-2:] == ["revoked", "assigned"])


async def test_a_static_member_comes_back_without_a_rebalance(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, group_instance_id="one", **CONSUMER)
    two = await readers.join(kafka, group, filled, group_instance_id="two", **CONSUMER)
    await readers.share(one, two, count=3)
    before, told = set(two.consumer.assignment), len(one.told)
    await two.close()
    three = await readers.join(kafka, group, filled, group_instance_id="two", **CONSUMER)
    await readers.until(lambda: three.owned == before)
    assert len(one.told) == told
    await three.consumer.close(leave_group=True)
    await readers.until(lambda: one.owned == all_of(filled))


async def test_a_second_member_of_one_instance_id_is_refused(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, group_instance_id="name", **CONSUMER)
    await readers.until(lambda: one.owned == all_of(filled))
    async with kafka.consumer(filled, group_id=group, group_instance_id="name", **SERVED) as two:
        with anyio.fail_after(PATIENCE), pytest.raises(UnreleasedInstanceId):
            await anext(two)
        assert two.assignment == ()
    assert (one.errors, one.words()) == ([], ["assigned"])


async def test_who_does_not_poll_leaves_and_its_commits_fail(kafka: Client, filled: str, group: str) -> None:
    options = {**SERVED, "enable_auto_commit": False, "max_poll_interval_ms": 500}
    async with kafka.consumer(filled, group_id=group, **options) as consumer:
        with anyio.fail_after(PATIENCE):
            record = await anext(consumer)
            await eventually(lambda: not consumer.owns(record))
            with pytest.raises(CommitFailed, match="max_poll_interval_ms"):
                await consumer.commit()
            again = await anext(consumer)
            assert again.offset == 0
            await consumer.commit()
    assert await committed_by(kafka, group, filled) == 1


async def test_a_member_stays_in_the_group_or_leaves_it(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    for leaves, state in ((False, "Stable"), (True, "Empty")):
        one = await readers.join(kafka, f"{group}-{state}", filled, **CONSUMER)
        await readers.until(lambda one=one: one.owned == all_of(filled))  # type: ignore[misc]
        await one.consumer.close(leave_group=leaves)
        assert one.words() == ["assigned", "revoked"]
        assert (await listed(kafka, f"{group}-{state}")).state == state


async def test_patterns_include_topics_that_come_later(
    kafka: Client, cluster: Where, filled: str, group: str, readers: Readers
) -> None:
    prefix = re.escape(filled)
    async with (
        cluster.client(metadata_max_age_ms=200) as client,
        client.consumer(group_id=group, **SERVED) as on_brokers,
    ):
        on_brokers.subscribe(SubscriptionPattern(f"{prefix}.*"))
        assert on_brokers.subscription == SubscriptionPattern(f"{prefix}.*")
        here = await readers.join(client, f"{group}-2", pattern=f"{prefix}.*", **CONSUMER)
        with anyio.fail_after(PATIENCE):
            while set(on_brokers.assignment) != all_of(filled):
                await on_brokers.poll(timeout=0.05)
            await readers.until(lambda: here.owned == all_of(filled))
            await kafka.admin.create_topics({f"{filled}-2": 1})
            later = all_of(filled) | {TopicPartition(f"{filled}-2", 0)}
            await readers.until(lambda: here.owned == later)
            on_brokers.subscribe(filled + "-2")
            while set(on_brokers.assignment) != {TopicPartition(f"{filled}-2", 0)}:
                await on_brokers.poll(timeout=0.05)


async def test_added_partitions_are_assigned(
    kafka: Client, cluster: Where, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, **CONSUMER)
    await readers.until(lambda: one.owned == all_of(filled))
    await add_partitions(cluster, filled, 5)
    await readers.until(lambda: one.owned == all_of(filled, 5))
    assert one.words() == ["assigned", "assigned"]


@pytest.mark.parametrize(
    ("options", "topics", "error", "message"),
    [
        ({"group_remote_assignor": "best"}, ("t",), UnsupportedAssignor, "best"),
        ({}, (SubscriptionPattern("a(?!b"),), InvalidRegularExpression, "a\\(\\?!b"),
    ],
)
async def test_what_the_coordinator_refuses_is_one_error(
    kafka: Client, group: str, options: dict[str, Any], topics: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    async with kafka.consumer(group_id=group, **SERVED, **options) as consumer:
        consumer.subscribe(*topics)
        with anyio.fail_after(PATIENCE), pytest.raises(error, match=message):
            await anext(consumer)


async def test_automatic_choice_follows_the_group(kafka: Client, filled: str, group: str, readers: Readers) -> None:
    auto: dict[str, Any] = {"group_protocol": "auto", "session_timeout_ms": 30_000, "heartbeat_interval_ms": 100}
    one = await readers.join(kafka, group, filled, **auto)
    await readers.until(lambda: one.owned == all_of(filled))
    assert (await listed(kafka, group)).type == "consumer"
    classic = await readers.join(kafka, f"{group}-2", filled)
    await readers.until(lambda: classic.owned == all_of(filled))
    two = await readers.join(kafka, f"{group}-2", filled, **auto)
    await readers.share(classic, two, count=3)
    assert (await listed(kafka, f"{group}-2")).type == "classic"


async def listed(kafka: Client, group: str) -> GroupListing:
    """The group, as the brokers list it."""
    return next(found for found in await kafka.admin.list_groups() if found.group_id == group)


async def test_transactions_commit_under_the_member_epoch(kafka: Client, filled: str, group: str) -> None:
    await kafka.admin.create_topics({f"{filled}-out": 1})
    options = {**SERVED, "enable_auto_commit": False}
    async with (
        kafka.consumer(filled, group_id=group, **options) as consumer,
        kafka.producer(transactional_id=group) as producer,
    ):
        with anyio.fail_after(PATIENCE):
            records = await consumer.poll(10)
        async with producer.transaction() as transaction:
            for record in records:
                await transaction.send(f"{filled}-out", record.value)
            await transaction.commit_offsets(consumer)
        committed = await consumer.committed(consumer.assignment)
    assert sum(offset.offset for offset in committed.values() if offset is not None) == len(records)


async def test_unsubscribing_leaves_and_subscribing_joins_again(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, **CONSUMER)
    await readers.until(lambda: one.owned == all_of(filled))
    member_id = one.consumer.group_metadata().member_id
    await one.consumer.unsubscribe()
    assert one.consumer.subscription == ()
    one.subscribe(filled)
    await readers.until(lambda: one.words() == ["assigned", "revoked", "assigned"])
    assert one.consumer.group_metadata().member_id == member_id


async def test_a_removed_member_joins_again(kafka: Client, filled: str, group: str, readers: Readers) -> None:
    one = await readers.join(kafka, group, filled, **CONSUMER)
    await readers.until(lambda: one.owned == all_of(filled))
    before = one.consumer.group_metadata()
    await kafka.admin.remove_members(group, reason="a test of removals")
    await readers.until(lambda: one.words() == ["assigned", "lost", "assigned"])
    assert one.owned == all_of(filled)
    (member,) = (await kafka.admin.describe_consumer_groups(group))[group].members
    after = one.consumer.group_metadata()
    assert (member.member_id, member.member_epoch) == (after.member_id, after.generation_id)
    assert after.generation_id > before.generation_id
    assert member.assignment == tuple(sorted(all_of(filled)))


async def test_settings_of_the_other_protocol_are_refused(cluster: Where) -> None:
    async with cluster.client() as kafka:
        for setting in (
            {"session_timeout_ms": 10_000},
            {"heartbeat_interval_ms": 100},
            {"partition_assignment_strategy": ["range"]},
        ):
            with pytest.raises(ConfigError, match=r"group\.consumer\.session\.timeout\.ms"):
                kafka.consumer("t", group_id="g", group_protocol="consumer", **setting)
        with pytest.raises(ConfigError, match="group_remote_assignor"):
            kafka.consumer("t", group_id="g", group_remote_assignor="range")
        async with kafka.consumer(group_id="g") as consumer:
            with pytest.raises(UsageError, match="SubscriptionPattern"):
                consumer.subscribe(SubscriptionPattern("t"))


async def test_a_consumer_lists_topics_and_their_partitions(kafka: Client, filled: str, group: str) -> None:
    async with kafka.consumer(group_id=group, **SERVED) as consumer:
        assert sorted(await consumer.partitions_for(filled)) == [0, 1, 2]
        topics = await consumer.list_topics()
        assert topics[filled] == (0, 1, 2)
        assert not [name for name in topics if name.startswith("__")]


async def test_a_rebalance_is_enforced_in_classic_groups_alone(
    kafka: Client, filled: str, group: str, readers: Readers, caplog: pytest.LogCaptureFixture
) -> None:
    classic = await readers.join(kafka, group, filled)
    await readers.until(lambda: classic.owned == all_of(filled))
    generation = classic.generation
    await classic.consumer.enforce_rebalance(reason="new weights")
    await readers.until(lambda: classic.words() == ["assigned", "revoked", "assigned"])
    assert classic.generation > generation
    served = await readers.join(kafka, f"{group}-2", filled, **CONSUMER)
    await readers.until(lambda: served.owned == all_of(filled))
    await served.consumer.enforce_rebalance(reason="new weights")
    assert "no rebalance is enforced (new weights)" in caplog.text
    async with kafka.consumer() as nobody:
        with pytest.raises(UsageError, match="subscription"):
            await nobody.enforce_rebalance()


async def add_partitions(cluster: Where, topic: str, count: int) -> None:
    async with raw(cluster) as client:
        more = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        await client.ask(CreatePartitionsRequest(topics=[more], timeout_ms=10_000, validate_only=False), 3)


async def test_programs_without_a_member_go_on_where_a_consumer_group_was(
    kafka: Client, filled: str, group: str, new_name: Callable[[], str]
) -> None:
    target = new_name()
    await kafka.admin.create_topics({target: 1})
    async with kafka.consumer(filled, group_id=group, **SERVED) as consumer:
        with anyio.fail_after(PATIENCE):
            taken = await consumer.poll(10)
            await consumer.commit()

    def copy(records: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
        return [OutgoingRecord(target, record.value) for record in records]

    with anyio.fail_after(PATIENCE):
        count = await kafka.transform(filled, copy, group_id=group, transactional_id=group, until_end=True)
    assert count == COUNT - len(taken)
    # Kafka shows the offsets of a transaction a moment after its end.
    await settled(lambda: committed_by(kafka, group, filled), lambda committed: committed == COUNT)
    # As Spark's driver does: partitions that are assigned by hand, and commits by the group's id alone.
    async with kafka.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign(all_of(filled))
        await consumer.commit(dict.fromkeys(all_of(filled), 5))
    assert await committed_by(kafka, group, filled) == 15
    async with kafka.consumer(filled, group_id=group, **SERVED) as consumer:
        with anyio.fail_after(PATIENCE):
            again = [await anext(consumer) for _ in range(COUNT - 15)]
    assert {record.offset for record in again} == set(range(5, COUNT // 3))


async def test_programs_without_a_member_cannot_commit_for_a_consumer_group_with_members(
    kafka: Client, filled: str, group: str
) -> None:
    async with kafka.consumer(filled, group_id=group, **SERVED) as consumer:
        with anyio.fail_after(PATIENCE):
            await consumer.poll(1)
        async with kafka.consumer(group_id=group, enable_auto_commit=False) as other:
            other.assign(all_of(filled))
            with pytest.raises(UnknownMemberId, match=group):
                await other.commit(dict.fromkeys(all_of(filled), 5))
