"""A consumer reads topics that were written before Kafka 0.11."""

import pytest
from support.faulty_cluster import FaultyCluster, a, fetched, serving
from support.fetching import take
from support.message_sets import message, wrapper
from support.raw_client import batch_of
from support.scripted_broker import Asked

from aiokafkawire.errors import CorruptBatch
from aiokafkawire.protocol.messages.fetch import FetchResponse
from aiokafkawire.records.batch import set_base_offset
from aiokafkawire.records.compression import Codec
from aiokafkawire.types import TimestampType

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


def holding(cluster: FaultyCluster, *parts: tuple[int, bytes]) -> None:
    """Answer fetches with these; each part is what it is and the last offset that it holds."""

    def on_fetch(_: int, asked: Asked) -> FetchResponse | None:
        (offset,) = fetched(asked).values()
        found = b"".join(data for last, data in parts if last >= offset)
        return cluster.answer({a(0): found}) if found else None

    cluster.on_fetch = on_fetch


async def test_a_topic_of_all_formats_is_read_from_the_middle_to_its_end() -> None:
    plain = b"".join(message(n, b"%d" % n, magic=0) for n in range(10))
    wrapped = wrapper(19, *(message(n, b"%d" % (10 + n), timestamp=n) for n in range(10)), codec=Codec.LZ4)
    large = wrapper(20, message(0, bytes(range(256)) * 2000), codec=Codec.SNAPPY)  # inflated on a thread
    batch = set_base_offset(batch_of(b"21", b"22"), 21, 0)
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        holding(cluster, (9, plain), (19, wrapped), (20, large), (22, batch))
        consumer.assign({a(0): 3})
        records = await take(consumer, 20)
        assert [record.offset for record in records] == list(range(3, 23))
        assert [int(record.value or b"") for record in records if record.offset != 20] == [*range(3, 20), 21, 22]
        assert {record.timestamp_type for record in records[:7]} == {TimestampType.NO_TIMESTAMP_TYPE}
        assert [record.timestamp for record in records[7:17]] == list(range(10))
        assert consumer.position(a(0)) == 23
        consumer.seek(a(0), 15)
        assert [record.offset for record in await take(consumer, 3)] == [15, 16, 17]


async def test_whole_sets_are_handed_out_as_batches() -> None:
    parts = [(1, message(0, magic=0) + message(1, magic=0)), (3, wrapper(3, message(0), message(1)))]
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        holding(cluster, *parts)
        consumer.assign({a(0): 0})
        batches = consumer.batches()
        found = [[record.offset for record in await anext(batches)] for _ in parts]
        assert found == [[0, 1], [2, 3]]


async def test_a_damaged_message_is_told_again_until_the_user_seeks_beyond_it() -> None:
    damaged = message(1)[:-1] + b"?"
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        holding(cluster, (2, message(0) + damaged + message(2)))
        consumer.assign({a(0): 0})
        assert [record.offset for record in await take(consumer, 1)] == [0]
        for _ in range(2):
            with pytest.raises(CorruptBatch, match=r"a-0: message set at byte 0 .*\(offset 1\): CRC-32"):
                await take(consumer, 1)
            assert consumer.position(a(0)) == 1
        consumer.seek(a(0), 2)
        assert [record.offset for record in await take(consumer, 1)] == [2]
