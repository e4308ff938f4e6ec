"""What members of a group commit, and who may."""

from __future__ import annotations

from functools import partial

import anyio
import pytest
from contract.groups.conftest import COUNT, SOME_CLUSTERS, all_of, committed_by, numbers, write
from support.patience import PATIENCE
from support.readers import QUICK, Partitions, Readers
from support.transactional import settled

from aiokafkawire import Client, OffsetAndMetadata, TopicPartition, UsageError
from aiokafkawire.errors import (
    CommitFailed,
    GroupIdNotFound,
    UnknownMemberId,
)

pytestmark = [pytest.mark.anyio, SOME_CLUSTERS]


async def test_what_is_committed_by_hand_is_where_the_next_goes_on(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, enable_auto_commit=False)
    await readers.until(lambda: len(one.records) == COUNT)
    where, other, third = sorted(all_of(filled))
    await one.consumer.commit({where: OffsetAndMetadata(5, "so far"), other: 20})
    assert await one.consumer.committed([where, other, third]) == {
        where: OffsetAndMetadata(5, "so far"),
        other: OffsetAndMetadata(20),
        third: None,
    }
    await one.consumer.commit(one.consumer.positions())
    assert one.consumer.positions() == await one.consumer.committed([where, other, third])
    await one.consumer.commit({third: 19, where: 18})
    await one.close()
    two = await readers.join(kafka, group, filled)
    await readers.until(lambda: len(two.records) == 3)
    assert numbers(two) == [3 * 18, 3 * 19, 3 * 19 + 2]


async def test_the_rebalance_leaves_time_to_commit_and_to_seek(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, enable_auto_commit=False)
    await readers.until(lambda: len(one.records) == COUNT)

    async def commit(going: Partitions) -> None:
        await one.consumer.commit({where: 10 + where.partition for where in going})

    one.on["revoked"] = commit
    two = await readers.join(kafka, group, filled, reads=False, enable_auto_commit=False)

    async def seek(coming: Partitions) -> None:
        assert await two.consumer.committed(coming) == {
            where: OffsetAndMetadata(10 + where.partition) for where in coming
        }
        for where in coming:
            two.consumer.seek(where, 15)

    two.on["assigned"] = seek
    await readers.share(one, two, count=3)
    readers.read(two)
    await readers.until(lambda: len(two.records) == 5 * len(two.owned))
    assert {record.offset for record in two.records} == set(range(15, 20))
    # What `one` got again begins where it had committed.
    again = {where.partition: 20 - 10 - where.partition for where in one.owned}
    await readers.until(lambda: len(one.records) == COUNT + sum(again.values()))
    assert one.errors == two.errors == []


async def test_polled_records_are_committed_when_the_next_are_asked_for(kafka: Client, filled: str, group: str) -> None:
    async with kafka.consumer(filled, group_id=group, **QUICK) as consumer:
        read: list[int] = []
        while len(read) < COUNT:
            found = await consumer.poll(max_records=25, timeout=PATIENCE)
            assert 0 < len(found) <= 25
            read += [int(record.value or b"") for record in found]
        assert sorted(read) == list(range(COUNT))
        assert await consumer.poll(timeout=0) == []
        await consumer.commit()
        assert await committed_by(kafka, group, filled) == COUNT
        await write(kafka, filled, COUNT, COUNT + 3)
        with anyio.fail_after(PATIENCE):
            while len(read) < COUNT + 3:
                read += [int(record.value or b"") for record in await consumer.poll(max_records=3)]
    # Of the last ones nobody has said that they are finished.
    assert COUNT <= await committed_by(kafka, group, filled) < COUNT + 3


async def test_who_assigns_by_hand_stands_beside_the_group(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled)
    await readers.until(lambda: len(one.records) == COUNT)
    await one.consumer.commit(one.consumer.positions())
    where = TopicPartition(filled, 0)
    async with kafka.consumer(group_id=group, enable_auto_commit=False, **QUICK) as beside:
        beside.assign([where])
        await write(kafka, filled, COUNT, COUNT + 1)
        with anyio.fail_after(PATIENCE):
            assert (await anext(beside)).value == b"%d" % COUNT
        assert len((await kafka.admin.describe_groups(group))[group].members) == 1
        with pytest.raises(UnknownMemberId, match=group):
            await beside.commit()
        with pytest.raises(UsageError, match="assigned by hand already"):
            beside.subscribe(filled)
    with pytest.raises(UsageError, match="the group decides"):
        one.consumer.assign([where])
    assert one.words() == ["assigned"]


async def test_a_transaction_commits_for_a_member_but_not_for_one_that_was(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, enable_auto_commit=False)
    await readers.until(lambda: len(one.records) == COUNT)
    async with kafka.producer(transactional_id=group) as producer:
        async with producer.transaction() as tx:
            await tx.commit_offsets(one.consumer)
        await settled(partial(committed_by, kafka, group, filled), lambda found: found == COUNT)
        before, positions = one.consumer.group_metadata(), one.consumer.positions()
        two = await readers.join(kafka, group, filled, enable_auto_commit=False)
        await readers.share(one, two, count=3)
        with pytest.raises(CommitFailed, match="ILLEGAL_GENERATION"):
            async with producer.transaction() as tx:
                await tx.commit_offsets(dict.fromkeys(positions, 1), group=before)
        await two.close()
        await readers.until(lambda: one.owned == all_of(filled))
        async with producer.transaction() as tx:
            await tx.commit_offsets(one.consumer)
    assert await committed_by(kafka, group, filled) == COUNT


async def test_a_group_without_members_is_empty_and_can_be_deleted(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled)
    await readers.until(lambda: len(one.records) == COUNT)
    await one.close()
    found = (await kafka.admin.describe_groups(group))[group]
    assert (found.state, found.members) == ("Empty", ())
    await kafka.admin.delete_groups(group)
    with pytest.raises(GroupIdNotFound):
        await kafka.admin.describe_groups(group)
