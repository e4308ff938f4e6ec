"""The faults of a scenario besides those of chaos: each has random numbers of its own, and can be left out."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final, NoReturn, TypeAlias

import anyio

from aiokafkawire.errors import ErrorCode as E
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation
from aiokafkawire.testing.virtual.study import current_study

from .expected_codes import COORDINATOR

__all__ = ("PASSING", "damage_records", "next_fault", "refusing")

_Refusal: TypeAlias = tuple[ApiKey, E]
_MOST_ORDERS: Final = 30
"""Orders for requests that nobody makes would pile up."""
_RARE: Final = 0.05
_LEADER: Final = (E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION)
_EPOCH: Final = (E.FENCED_LEADER_EPOCH, E.UNKNOWN_LEADER_EPOCH)
_SESSION: Final = (E.FETCH_SESSION_ID_NOT_FOUND, E.INVALID_FETCH_SESSION_EPOCH, E.FETCH_SESSION_TOPIC_ID_ERROR)
_SHARE: Final = (*_LEADER, E.UNKNOWN_TOPIC_ID, E.SHARE_SESSION_NOT_FOUND, E.INVALID_SHARE_SESSION_EPOCH)
_TRANSACTION: Final = (*COORDINATOR, E.CONCURRENT_TRANSACTIONS)

PASSING: Final[Mapping[ApiKey, Sequence[E]]] = {
    ApiKey.PRODUCE: (
        *(*_LEADER, E.KAFKA_STORAGE_ERROR, E.NOT_ENOUGH_REPLICAS, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        *(*COORDINATOR, E.REQUEST_TIMED_OUT, E.UNKNOWN_TOPIC_ID),
    ),
    ApiKey.FETCH: (*_LEADER, *_EPOCH, *_SESSION, E.KAFKA_STORAGE_ERROR, E.UNKNOWN_TOPIC_ID, E.INCONSISTENT_TOPIC_ID),
    ApiKey.LIST_OFFSETS: (*_LEADER, *_EPOCH, E.LEADER_NOT_AVAILABLE),
    ApiKey.METADATA: (E.LEADER_NOT_AVAILABLE, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_ID),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (*_LEADER, *_EPOCH),
    ApiKey.FIND_COORDINATOR: (E.COORDINATOR_NOT_AVAILABLE,),
    ApiKey.JOIN_GROUP: (*COORDINATOR, E.REBALANCE_IN_PROGRESS),
    ApiKey.SYNC_GROUP: (*COORDINATOR, E.REBALANCE_IN_PROGRESS),
    ApiKey.HEARTBEAT: (*COORDINATOR, E.REBALANCE_IN_PROGRESS),
    ApiKey.LEAVE_GROUP: COORDINATOR,
    ApiKey.OFFSET_COMMIT: (*COORDINATOR, E.REBALANCE_IN_PROGRESS, E.UNKNOWN_TOPIC_OR_PARTITION),
    ApiKey.OFFSET_FETCH: (*COORDINATOR, E.UNSTABLE_OFFSET_COMMIT),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: COORDINATOR,
    ApiKey.INIT_PRODUCER_ID: _TRANSACTION,
    ApiKey.ADD_PARTITIONS_TO_TXN: _TRANSACTION,
    ApiKey.ADD_OFFSETS_TO_TXN: _TRANSACTION,
    ApiKey.TXN_OFFSET_COMMIT: (*COORDINATOR, E.REBALANCE_IN_PROGRESS),
    ApiKey.END_TXN: _TRANSACTION,
    ApiKey.SHARE_GROUP_HEARTBEAT: (*COORDINATOR, E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH),
    ApiKey.SHARE_FETCH: _SHARE,
    ApiKey.SHARE_ACKNOWLEDGE: _SHARE,
}
"""The errors with which a broker may refuse a request that a client should repeat, perhaps after it has asked again who
leads or who coordinates. That a member is unknown is no such error: a coordinator that has not removed it gives it the
same generation again, and commits of before that count, which no history allows."""


async def next_fault(source: str, chance: Random, every: tuple[float, float]) -> Random:
    """Wait for the next fault of this source that is to happen, and return its random numbers."""
    while True:
        await anyio.sleep(chance.uniform(*every))
        own = Random(chance.getrandbits(64))
        if current_study().admits(source):
            return own


@asynccontextmanager
async def refusing(
    sim: Simulation,
    *apis: ApiKey,
    final: Mapping[ApiKey, Sequence[E]] | None = None,
    listen: Callable[[], None] = lambda: None,
) -> AsyncIterator[None]:
    """While the context is open, let brokers refuse some requests now and then, and do nothing.

    Args:
        sim: the simulation.
        *apis: the requests that get the errors of ``PASSING``.
        final: other requests and errors, which are rare, and end what the client does.
        listen: adds the scenario's own rules for these requests again, since rules that are there come first.
    """
    errors = [(api, error) for api in apis for error in PASSING[api]]
    rare = [(api, error) for api, some in (final or {}).items() for error in some]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_refuse, sim, errors, rare, listen)
        yield
        tasks.cancel_scope.cancel()


async def _refuse(
    sim: Simulation, errors: Sequence[_Refusal], rare: Sequence[_Refusal], listen: Callable[[], None]
) -> NoReturn:
    chance = sim.chance("refusals")
    longest = chance.choice((0.2, 2.0, 20.0))
    while True:
        own = await next_fault("refusals", chance, (0.0, longest))
        is_rare = bool(rare) and own.random() < _RARE
        api, error = own.choice(rare if is_rare else errors)
        times = 1 if is_rare else own.choice((1, 1, 3))
        if len(sim.broker.orders) < _MOST_ORDERS:
            sim.note(f"{error.name} is the next answer to {api.name}, {times} times")
            sim.broker.on(api, answer=error, times=times)
            listen()


async def damage_records(sim: Simulation) -> NoReturn:
    """Change a byte of a fetched batch now and then; some runs have many such batches."""
    chance = sim.chance("damage")
    longest = chance.choice((0.5, 5.0, 50.0))
    while True:
        await next_fault("damage", chance, (0.0, longest))
        if len(sim.broker.orders) < _MOST_ORDERS:
            sim.note("the next fetched batch is damaged")
            sim.broker.on(ApiKey.FETCH, corrupt="records")
