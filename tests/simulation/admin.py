"""Admin clients that create, grow, change and delete topics while brokers and the network fail."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Final, TypeAlias

import anyio
import attrs

from aiokafkawire import Admin, Client, ConfigResource, KafkaError
from aiokafkawire.errors import BrokerError, ErrorCode, RequestTimeout
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .admin_calls import CHANGES, Call, Topic, answers_in, problems_of, topics_after
from .checks import no_task_fails_unheard
from .scenario import LATE
from .taking_part import client_of
from .trouble import next_fault

__all__ = ("Outcome", "run", "told")

Change: TypeAlias = Callable[[Admin, float], Awaitable[object]]
"""A call of an admin client with a timeout in seconds."""
_SLACK: Final = 2.0
"""Virtual seconds that a call may take beyond its timeout."""


@attrs.frozen
class Outcome:
    """What one run came to."""

    ends: Counter[str]
    """How many calls ended in which way."""
    requests: int
    topics: int
    """How many topics were left."""
    faults: Counter[str]


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    with no_task_fails_unheard():
        return simulate(_main, seed=seed, keep=keep)


async def _main(sim: Simulation) -> Outcome:
    chance, calls, ends = sim.random, list[Call](), Counter[str]()
    async with anyio.create_task_group() as tasks:
        sim.chaos(every=(0.2, chance.choice((1.0, 4.0))), lasting=(0.05, chance.choice((1.0, 5.0, 20.0))))
        troubling = anyio.CancelScope()
        tasks.start_soon(_trouble_brokers, sim, troubling)
        for number in range(chance.randint(1, 4)):
            tasks.start_soon(_change_topic, sim, number, calls, ends)
        for number in range(chance.randint(0, 2)):
            tasks.start_soon(_look_around, sim, number, ends)
        await anyio.sleep(chance.uniform(20, 60))
        await sim.calm()
        troubling.cancel()
        for rule in sim.broker.orders:
            rule.remove()
    await anyio.sleep(LATE)
    answers = answers_in(sim.broker.requests)
    assert (problems := problems_of(calls, answers)) == [], problems
    async with sim.client("the last one") as client:
        found = await _topics(client)
    assert found == topics_after(calls, answers)
    return Outcome(ends, len(answers), len(found), sim.trace.faults)


async def _trouble_brokers(sim: Simulation, scope: anyio.CancelScope) -> None:
    """Let brokers do what they are asked and break off their answers, not answer, or answer with passing errors."""
    with scope:
        chance = sim.chance("brokers")
        longest = chance.choice((1.0, 5.0, 20.0))
        while True:
            own = await next_fault("brokers", chance, (0.0, longest))
            api, trouble = own.choice((*CHANGES, ApiKey.METADATA)), own.choice(("cut", "cut", "silence", "error"))
            sim.note(f"{trouble} at the next {api.name}")
            if trouble == "cut":
                sim.broker.on(api, cut=True)
            elif trouble == "silence":
                sim.broker.on(api, swallow="before")
            elif api in CHANGES:
                sim.broker.on(api, answer=own.choice((ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)))


async def _topics(client: Client) -> Mapping[str, Topic]:
    found = {}
    for name, topic in (await client.admin.describe_topics(await client.admin.list_topics())).items():
        resource = ConfigResource.topic(str(name))
        configs = (await client.admin.describe_configs([resource]))[resource]
        retention = configs["retention.ms"]
        is_own = retention.source.name == "DYNAMIC_TOPIC_CONFIG"
        found[str(name)] = Topic(len(topic.partitions), int(retention.value or 0) if is_own else None)
    return found


async def _change_topic(sim: Simulation, number: int, calls: list[Call], ends: Counter[str]) -> None:
    """Change a topic that no other client changes, by one call after the other."""
    chance, topic, partitions = sim.chance(f"admin {number}"), f"topic-{number}", 1
    for turn in range(chance.randint(3, 25)):
        name = f"admin-{number}/{turn}"
        api, size, change = _next_change(chance, topic, partitions)
        if api in (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS):
            partitions = size
        error = await _ended(sim, number, name, chance, change, ends)
        sim.note(f"{name}: {api.name} of {topic} ({size}) ended with {error}")
        calls.append(Call(name, api, topic, size, error))
        await anyio.sleep(chance.choice((0.0, 0.1, 2.0)))


def _next_change(chance: Random, topic: str, partitions: int) -> tuple[ApiKey, int, Change]:
    """Return the next change, its argument, and the call that makes it."""
    kind = chance.choice(("create", "create", "grow", "configure", "delete"))
    if kind == "create":
        size = chance.randint(1, 5)
        return ApiKey.CREATE_TOPICS, size, lambda admin, limit: admin.create_topics({topic: size}, timeout=limit)
    if kind == "grow":
        size = partitions + chance.randint(0, 3)
        return (
            ApiKey.CREATE_PARTITIONS,
            size,
            lambda admin, limit: admin.create_partitions({topic: size}, timeout=limit),
        )
    if kind == "delete":
        return ApiKey.DELETE_TOPICS, 0, lambda admin, limit: admin.delete_topics(topic, timeout=limit)
    retention = chance.randint(1, 10**9)
    changes = {ConfigResource.topic(topic): {"retention.ms": str(retention)}}
    api = ApiKey.INCREMENTAL_ALTER_CONFIGS
    return api, retention, lambda admin, limit: admin.incremental_alter_configs(changes, timeout=limit)


async def _ended(
    sim: Simulation,
    number: int,
    name: str,
    chance: Random,
    change: Change,
    ends: Counter[str],
) -> int | None:
    """Make a call by a client of its own, which may be cancelled; return how it ended, as a call's `error`."""
    limit, patience = chance.choice((1.0, 5.0, 60.0)), chance.choice((0.05, 1.0, 1_000.0, 1_000.0, 1_000.0))
    error: int | None = None
    end = "cancelled"
    try:
        with anyio.move_on_after(patience):
            async with client_of(sim, f"admin-{number}", client_id=name) as client:
                began = sim.now()
                try:
                    await change(client.admin, limit)
                finally:
                    assert sim.now() - began <= limit + _SLACK, f"{name} took {sim.now() - began:.1f} s of {limit} s"
                error, end = ErrorCode.NONE, "done"
    except RequestTimeout:
        end = "timed out"
    except BrokerError as refused:
        error, end = refused.code, type(refused).__name__
    except KafkaError as failed:
        end = type(failed).__name__
    ends[end] += 1
    return error


async def _look_around(sim: Simulation, number: int, ends: Counter[str]) -> None:
    """List and describe whatever is there: typed errors at most, within the timeout."""
    chance = sim.chance(f"looks {number}")
    for turn in range(chance.randint(3, 20)):
        name = f"looks-{number}/{turn}"
        look = chance.choice((_list, _describe, _describe_brokers))
        await _ended(sim, number, name, chance, look, ends)
        await anyio.sleep(chance.choice((0.0, 0.5, 3.0)))


async def _list(admin: Admin, limit: float) -> None:
    await admin.list_topics(timeout=limit)


async def _describe(admin: Admin, limit: float) -> None:
    await admin.describe_topics([f"topic-{number}" for number in range(2)], timeout=limit)


async def _describe_brokers(admin: Admin, limit: float) -> None:
    await admin.describe_cluster(timeout=limit)


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value = done.value
    ends = ", ".join(f"{count} {end}" for end, count in value.ends.most_common())
    return f"seed {done.seed}: {ends}; {value.requests} answers, {value.topics} topics left, {done.seconds:.0f} s"
