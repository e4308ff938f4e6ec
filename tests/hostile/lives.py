"""The daily lives of clients: what each opens, and a round of what it does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
import attrs

from aiokafkawire import (
    AclBinding,
    AclOperation,
    Client,
    ConfigResource,
    KafkaError,
    OffsetSpec,
    ResourcePattern,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Simulation

from .admin_calls import ADMIN_CALLS, GROUP, PARTITION, SHARE_GROUP, TOPIC, TRANSACTION

__all__ = ("LIVES", "Life", "Round", "lives_of")

Round = Callable[[], Awaitable[Any]]
"""One round of daily life; it raises KafkaError if it fails."""

_QUICK: dict[str, Any] = {
    "request_timeout_ms": 2_000,
    "default_api_timeout_ms": 5_000,
    "bootstrap_timeout_ms": 5_000,
    "metadata_max_age_ms": 4_000,
}
_MEMBER: dict[str, Any] = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000, "fetch_max_wait_ms": 200}


@asynccontextmanager
async def _records(sim: Simulation) -> AsyncIterator[None]:
    """Let there be topics with records, and share groups that begin with the first."""
    sim.broker.create_topic(TOPIC, partitions=2)
    sim.broker.create_topic("sink", partitions=1)
    for group in (SHARE_GROUP, "idle-share"):
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, group, {"share.auto.offset.reset": "earliest"})
    async with sim.client("feeder") as client, client.producer() as producer:
        await producer.send_many(TOPIC, [b"%d" % number for number in range(20)])
    yield


@attrs.frozen
class Life:
    """A kind of client: its settings, those of its brokers, and what it opens for its rounds."""

    name: str
    opened: Callable[[Client, Simulation], AbstractAsyncContextManager[Round]]
    client: dict[str, Any] = attrs.field(factory=dict)
    broker: dict[str, Any] = attrs.field(factory=dict)
    surroundings: Callable[[Simulation], AbstractAsyncContextManager[None]] = _records
    """What there is in the cluster, beside the client."""
    nodes: int = 1
    shares_client: bool = False
    """Whether one client goes through all cases: it has nothing that lasts from one round to the next."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of its client."""
        return _QUICK | self.client


# --- producers -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def _produce(client: Client, _: Simulation) -> AsyncIterator[Round]:
    async with client.producer(delivery_timeout_ms=5_000, max_block_ms=4_000) as producer:

        async def one() -> None:
            await producer.send_many(TOPIC, [b"a", b"b"])
            await producer.send(TOPIC, b"c", partition=1)

        yield one


@asynccontextmanager
async def _transact(client: Client, sim: Simulation) -> AsyncIterator[Round]:
    options: dict[str, Any] = {"delivery_timeout_ms": 5_000, "max_block_ms": 4_000, "transaction_timeout_ms": 10_000}
    async with client.producer(transactional_id=f"{TRANSACTION}-1", **options) as producer:

        async def one() -> None:
            async with producer.transaction() as transaction:
                await transaction.send("sink", b"a")
                await transaction.commit_offsets({PARTITION: 1}, group="offsets")

        yield one


# --- consumers -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def _read(client: Client, sim: Simulation) -> AsyncIterator[Round]:
    options: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 200,
        "isolation_level": "read_committed",
    }
    async with client.consumer(TOPIC, **options) as consumer:

        async def one() -> None:
            if not consumer.assignment:
                with anyio.move_on_after(3):
                    await consumer.poll(5)
            if consumer.assignment:
                for partition in consumer.assignment:
                    consumer.seek(partition, OffsetSpec.EARLIEST)
            got = await consumer.poll(5, timeout=5)
            if not got:
                raise _Nothing("no record arrived")
            await consumer.offsets({PARTITION: OffsetSpec.LATEST}, timeout=3)

        yield one


class _Nothing(KafkaError):
    """No record was read."""


def _consume(protocol: str) -> Callable[[Client, Simulation], AbstractAsyncContextManager[Round]]:
    @asynccontextmanager
    async def opened(client: Client, sim: Simulation) -> AsyncIterator[Round]:
        options = dict(_MEMBER) if protocol == "classic" else {"fetch_max_wait_ms": 200}
        options |= {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 500, "group_protocol": protocol}
        async with client.consumer(TOPIC, group_id=f"own-{protocol}", **options) as consumer:

            async def one() -> None:
                got = await consumer.poll(5, timeout=5)
                if not consumer.assignment:
                    raise _Nothing("no partition is assigned")
                if got:
                    await consumer.commit(timeout=3)
                else:
                    for partition in consumer.assignment:
                        consumer.seek(partition, OffsetSpec.EARLIEST)
                    if not await consumer.poll(5, timeout=5):
                        raise _Nothing("no record arrived")
                await consumer.committed([PARTITION], timeout=3)

            yield one

    return opened


@asynccontextmanager
async def _share(client: Client, sim: Simulation) -> AsyncIterator[Round]:
    async with (
        client.producer(delivery_timeout_ms=5_000) as producer,
        client.share_consumer(
            TOPIC, group_id=SHARE_GROUP, share_acknowledgement_mode="implicit", fetch_max_wait_ms=200
        ) as consumer,
    ):

        async def one() -> None:
            await producer.send_many(TOPIC, [b"a", b"b"])
            if not await consumer.poll(5, timeout=5):
                raise _Nothing("no record arrived")
            for error in (await consumer.commit(timeout=3)).values():
                if isinstance(error, Exception):
                    raise error

        yield one


@asynccontextmanager
async def _process(client: Client, _: Simulation) -> AsyncIterator[Round]:
    async def one() -> None:
        stop = anyio.Event()

        async def handle(_: object) -> None:
            stop.set()

        options = {"auto_offset_reset": "earliest", "drain_timeout": 5, **_MEMBER}
        async with client.producer(delivery_timeout_ms=5_000) as producer:
            await producer.send(TOPIC, b"more", partition=0)
        with anyio.move_on_after(20):
            await client.process(TOPIC, handle, group_id="workers", stop=stop, **options)
        if not stop.is_set():
            raise _Nothing("nothing was processed")

    yield one


# --- the admin, telemetry and logins -------------------------------------------------------------------------------


def _administer(api_key: ApiKey, index: int) -> Callable[[Client, Simulation], AbstractAsyncContextManager[Round]]:
    @asynccontextmanager
    async def opened(client: Client, sim: Simulation) -> AsyncIterator[Round]:
        async def one() -> None:
            await ADMIN_CALLS[api_key][index](client.admin)

        yield one

    return opened


class _Over(Exception):
    """Nobody needs the open transaction any more."""


@asynccontextmanager
async def _groups(sim: Simulation) -> AsyncIterator[None]:
    """Let there be a group of each protocol, and an open transaction, for the admin to describe."""
    rare: dict[str, Any] = {"fetch_max_wait_ms": 25_000}
    session: dict[str, Any] = {"session_timeout_ms": 1_800_000, "heartbeat_interval_ms": 500_000}
    transactional: dict[str, Any] = {"transactional_id": TRANSACTION, "transaction_timeout_ms": 900_000}
    async with _records(sim), sim.client("others") as client, AsyncExitStack() as stack:
        for member in (
            client.consumer(TOPIC, group_id=GROUP, group_instance_id="instance", **rare, **session),
            client.consumer(TOPIC, group_id="modern", group_protocol="consumer", **rare),
            client.share_consumer(TOPIC, group_id=SHARE_GROUP, **rare),
        ):
            await stack.enter_async_context(member)
            await member.poll(timeout=6)
        await client.admin.alter_consumer_group_offsets("idle", {PARTITION: 0})
        await client.admin.create_acls(AclBinding(ResourcePattern.topic("other"), "User:y", AclOperation.READ))
        producer = await stack.enter_async_context(client.producer(**transactional))
        with suppress(_Over):
            async with producer.transaction() as transaction:
                await transaction.send(TOPIC, b"open")
                yield
                raise _Over


@asynccontextmanager
async def _metrics(sim: Simulation) -> AsyncIterator[None]:
    """Let brokers ask for all metrics, every second."""
    async with _records(sim), sim.client("operator") as client:
        settings = {"metrics": "", "interval.ms": "1000"}
        await client.admin.incremental_alter_configs({ConfigResource.client_metrics("all"): settings})
        yield


@asynccontextmanager
async def _push(client: Client, sim: Simulation) -> AsyncIterator[Round]:
    async def one() -> None:
        await anyio.sleep(6)
        await client.admin.list_topics()

    yield one


@asynccontextmanager
async def _list(client: Client, sim: Simulation) -> AsyncIterator[Round]:
    async def one() -> None:
        topics = await client.admin.list_topics()
        if TOPIC not in topics:
            raise _Nothing("the topic is not there")

    yield one


_USERS = {"users": {"alice": "secret"}}


@asynccontextmanager
async def _a_topic(sim: Simulation) -> AsyncIterator[None]:
    sim.broker.create_topic(TOPIC, partitions=2)
    yield


def _login(mechanism: str) -> Life:
    options: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    broker: dict[str, Any] = {"sasl_enabled_mechanisms": [mechanism]}
    broker |= _USERS
    options |= {"sasl_username": "alice", "sasl_password": "secret"}

    return Life(f"login-{mechanism}", _list, options, {**broker, "connections_max_reauth_ms": 8_000}, _a_topic)


_OF_THE_ADMIN: dict[str, Any] = {
    "authorizer": True,
    "super_users": ["User:ANONYMOUS"],
    "group_consumer_heartbeat_interval_ms": 500_000,
    "group_consumer_session_timeout_ms": 1_800_000,
}
_STEADY = (
    Life("produce", _produce),
    Life("transact", _transact),
    Life("transact-2.4", _transact, broker={"max_versions": "2.4"}),
    Life("read", _read, nodes=3),
    Life("consume", _consume("classic")),
    Life("consume-kip848", _consume("consumer")),
    Life("share", _share),
    Life("process", _process),
    Life("telemetry", _push, {"enable_metrics_push": True}, {"client_telemetry": True}, _metrics),
    Life("list", _list, nodes=3),
    *(_login(mechanism) for mechanism in ("PLAIN", "SCRAM-SHA-256")),
)
LIVES: dict[str, Life] = {life.name: life for life in _STEADY}
for _key, _calls in ADMIN_CALLS.items():
    for _index in range(len(_calls)):
        _name = f"admin-{_key.name.lower()}-{_index}"
        LIVES[_name] = Life(
            _name, _administer(_key, _index), broker=_OF_THE_ADMIN, surroundings=_groups, shares_client=True
        )

_REACHED: dict[str, tuple[ApiKey, ...]] = {
    "produce": (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE),
    "transact": (
        ApiKey.FIND_COORDINATOR,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.PRODUCE,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.END_TXN,
    ),
    "transact-2.4": (
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.END_TXN,
    ),
    "read": (ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH),
    "consume": (
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_COMMIT,
        ApiKey.FETCH,
    ),
    "consume-kip848": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_COMMIT,
    ),
    "share": (
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
    ),
    "process": (ApiKey.FETCH, ApiKey.OFFSET_COMMIT, ApiKey.HEARTBEAT),
    "telemetry": (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
    "list": (ApiKey.API_VERSIONS, ApiKey.METADATA),
    "login-PLAIN": (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE),
    "login-SCRAM-SHA-256": (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE),
}
"""The requests whose answers are altered in each life; a life of the admin has its own request alone."""


def lives_of(api_key: int) -> list[str]:
    """Return the lives in which the answers of an API are altered."""
    steady = [name for name, keys in _REACHED.items() if api_key in keys]
    admin = [
        f"admin-{key.name.lower()}-{index}"
        for key, calls in ADMIN_CALLS.items()
        if key == api_key
        for index in range(len(calls))
    ]
    return [*steady, *admin]
