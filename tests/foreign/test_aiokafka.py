"""aiokafka believes the broker."""

from __future__ import annotations

import asyncio

import pytest

aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
admin = pytest.importorskip("aiokafka.admin")

COUNT = 200


@pytest.mark.slow
def test_what_is_produced_is_consumed_in_a_group(bootstrap: str, name: str) -> None:
    async def main() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True) as producer:
            for number in range(COUNT):
                await producer.send_and_wait(name, b"v%d" % number, key=b"k%d" % (number % 7))
        readers = [
            aiokafka.AIOKafkaConsumer(name, bootstrap_servers=bootstrap, group_id=name, auto_offset_reset="earliest")
            for _ in range(2)
        ]
        for reader in readers:
            await reader.start()
        found: list[bytes] = []
        async with asyncio.timeout(30):
            while len(found) < COUNT or not all(reader.assignment() for reader in readers):
                for reader in readers:
                    batches = await reader.getmany(timeout_ms=50)
                    found += [one.value for batch in batches.values() for one in batch]
        assert set(found) == {b"v%d" % number for number in range(COUNT)}
        assert sum(len(reader.assignment()) for reader in readers) == 3
        for reader in readers:
            await reader.stop()

    asyncio.run(main())


def test_transactions_are_seen_when_they_commit(bootstrap: str, name: str) -> None:
    async def main() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_and_wait(name, b"aborted")
                    raise ZeroDivisionError
            async with producer.transaction():
                await producer.send_and_wait(name, b"committed")
                await producer.send_offsets_to_transaction({aiokafka.TopicPartition(name, 0): 5}, name)
        reader = aiokafka.AIOKafkaConsumer(
            name,
            bootstrap_servers=bootstrap,
            group_id=name,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        await reader.start()
        async with asyncio.timeout(30):
            assert await reader.committed(aiokafka.TopicPartition(name, 0)) == 5
        await reader.stop()
        reader = aiokafka.AIOKafkaConsumer(
            name, bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        await reader.start()
        async with asyncio.timeout(30):
            assert (await reader.getone()).value == b"committed"
        await reader.stop()

    asyncio.run(main())


def test_its_admin_client_works(bootstrap: str, name: str) -> None:
    async def main() -> None:
        client = admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        await client.create_topics([admin.NewTopic(name, 2, 1)])
        assert name in await client.list_topics()
        await client.delete_topics([name])
        await client.close()

    asyncio.run(main())
