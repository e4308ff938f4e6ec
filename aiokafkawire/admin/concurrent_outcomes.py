"""Outcomes of calls of several brokers: at the same time, so that a slow broker delays no other; and of retries."""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

import anyio

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import BrokerError, KafkaError, RequestTimeout, UnsupportedVersion, UsageError
from ..runtime import background_tasks
from .outcomes import Outcomes

__all__ = ("ask_again", "ask_by_batch", "ask_one_by_one", "concurrently", "raise_if_unsupported", "timed_out")

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


async def ask_again(
    cluster: Cluster,
    resources: Iterable[K],
    deadline: Deadline,
    ask: Callable[[list[K]], Awaitable[Mapping[K, V | KafkaError]]],
    may_pass: Callable[[KafkaError], bool],
) -> Outcomes[K, V]:
    """Ask about resources, and again about those that have an error that may pass, until the deadline.

    A resource keeps its last error then; a timeout replaces no other error, since it explains less.

    Args:
        cluster: has the clock and the waits between the calls.
        resources: what to ask about.
        deadline: the time after which nothing is asked again.
        ask: returns the outcomes of some of the resources; an error of its first call is raised.
        may_pass: returns whether another call may succeed after an error.
    """
    found: Outcomes[K, V] = {}
    requested = left = list(dict.fromkeys(resources))
    backoff = cluster.backoff()
    while left:
        try:
            answered = await ask(left)
        except KafkaError:
            if not found:
                raise
            break
        for resource, outcome in answered.items():
            if not (isinstance(outcome, RequestTimeout) and isinstance(found.get(resource), KafkaError)):
                found[resource] = outcome
        errors = {resource: found[resource] for resource in left}
        left = [resource for resource, error in errors.items() if isinstance(error, KafkaError) and may_pass(error)]
        wait = backoff.next()
        if wait >= deadline.left(cluster.runtime.now()):
            break
        if left:
            await anyio.sleep(wait)
    return {resource: found[resource] for resource in requested}


async def ask_one_by_one(keys: Collection[T], ask: Callable[[T], Awaitable[V]]) -> Outcomes[T, V]:
    """Call a function with each key, concurrently; return its result or its error."""
    found: Outcomes[T, V] = {}

    async def one(key: T) -> None:
        try:
            found[key] = await ask(key)
        except KafkaError as error:
            found[key] = error

    await concurrently(one, keys)
    return {key: found[key] for key in keys}


async def ask_by_batch(
    batches: Mapping[T, Collection[K]], ask: Callable[[T], Awaitable[Mapping[K, V | KafkaError]]]
) -> Outcomes[K, V]:
    """Call a function with each key of ``batches``, concurrently; return the outcomes of all batches.

    Args:
        batches: the resources of each key, such as the partitions of a leader.
        ask: returns the outcomes of a key's resources; an error that it raises is that of each of them.
    """
    found: Outcomes[K, V] = {}
    for key, outcome in (await ask_one_by_one(batches, ask)).items():
        if isinstance(outcome, KafkaError):
            found |= dict.fromkeys(batches[key], outcome)
        else:
            found |= outcome
    return found


async def concurrently(function: Callable[[T], Coroutine[Any, Any, None]], items: Collection[T]) -> None:
    """Call a function with each item, in a task of its own if there are several.

    The first exception cancels the other calls, and is raised without an exception group.
    """
    if len(items) == 1:
        await function(next(iter(items)))
        return
    failures: list[Exception] = []

    async def call(item: T) -> None:
        try:
            await function(item)
        except Exception as failure:
            failures.append(failure)
            tasks.cancel_scope.cancel()

    async with background_tasks() as tasks:
        for item in items:
            tasks.start_soon(call, item)
    if failures:
        raise failures[0]


def timed_out(outcomes: Mapping[T, V | KafkaError], deadline: Deadline) -> Outcomes[T, V]:
    """Return the outcomes at the deadline: RequestTimeout instead of each retriable error."""
    found: Outcomes[T, V] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, BrokerError) and outcome.retriable:
            timeout = RequestTimeout(f"no success within {deadline.allowed:g} s: {type(outcome).__name__}: {outcome}")
            timeout.__cause__ = outcome
            found[key] = timeout
        else:
            found[key] = outcome
    return found


def raise_if_unsupported(outcomes: Outcomes[T, V]) -> Outcomes[T, V]:
    """Return the outcomes; raise UsageError if one has it, and UnsupportedVersion if all have it.

    These errors are about the call: the client is not open, or the brokers are too old.
    """
    refusals = [outcome for outcome in outcomes.values() if isinstance(outcome, UnsupportedVersion)]
    misuse = [outcome for outcome in outcomes.values() if isinstance(outcome, UsageError)]
    if misuse:
        raise misuse[0]
    if refusals and len(refusals) == len(outcomes):
        raise refusals[0]
    return outcomes
