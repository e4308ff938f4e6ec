"""Outcomes of requests to the coordinators of several groups or transactional ids.

A coordinator that is down or slow does not delay the requests to other coordinators.
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from ..cluster.cluster import Cluster
from ..cluster.coordinators import named
from ..cluster.metadata import Node
from ..cluster.retry import Deadline
from ..errors import (
    BrokerError,
    KafkaError,
    RequestTimeout,
    UnsupportedVersion,
    UnsupportedVersionAnswered,
    UsageError,
    WireError,
)
from ..protocol.schema import Request, Response, Versions
from ..runtime import background_tasks
from ..types import CoordinatorType
from .outcomes import Outcomes

__all__ = (
    "ask_coordinators",
    "ask_one_by_one",
    "by_coordinator",
    "call_by_coordinator",
    "concurrently",
    "raise_if_unsupported",
    "timed_out",
)

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R", bound=Response)

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")


async def ask_coordinators(
    cluster: Cluster,
    key_type: CoordinatorType,
    keys: Iterable[str],
    deadline: Deadline,
    *,
    request: Callable[[list[str]], Request[R]],
    outcomes: Callable[[R], Mapping[str, V | KafkaError]],
    versions: Versions = _ANY,
    needs: str = "",
) -> Outcomes[str, V]:
    """Ask about groups or transactional ids, by one request to each coordinator.

    A key whose coordinator has moved, or answers with a retriable error, is asked about by itself, until the deadline.

    Args:
        cluster: has the brokers.
        key_type: whether the keys are groups or transactional ids.
        keys: what to ask about.
        deadline: the time after which nothing is asked again.
        request: makes the request for some of the keys.
        outcomes: returns the result or the error of each key in a response.
        versions: the versions that have all fields of the request.
        needs: which brokers support the request; begins the message of UnsupportedVersion.

    Raises:
        UnsupportedVersion: all coordinators are too old.
        UsageError: the client is not open.
    """
    requested = list(dict.fromkeys(keys))
    found: Outcomes[str, V] = {}

    def outcome_of(key: str, asked: Request[R], answered: Mapping[str, V | KafkaError]) -> V | KafkaError:
        if key in answered:
            return answered[key]
        return WireError(f"the {_api(asked)} response lacks the requested {named(key_type, key)}")

    async def together(some: list[str]) -> None:
        asked = request(some)
        try:
            response = await cluster.ask_coordinator(
                key_type, some[0], asked, deadline, lane=_LANE, wanted=versions, check=lambda _: None
            )
        except KafkaError as error:
            if deadline.passed(cluster.runtime.now()):
                found.update(dict.fromkeys(some, error))
            return
        answered = outcomes(response)
        for key in some:
            outcome = outcome_of(key, asked, answered)
            if not (isinstance(outcome, BrokerError) and outcome.retriable):
                found[key] = outcome

    async def alone(key: str) -> V:
        asked, answers = request([key]), list[V]()

        def check(response: R) -> None:
            outcome = outcome_of(key, asked, outcomes(response))
            if isinstance(outcome, KafkaError):
                raise outcome
            answers.append(outcome)

        await cluster.ask_coordinator(key_type, key, asked, deadline, lane=_LANE, wanted=versions, check=check)
        return answers[-1]

    if len(requested) > 1:
        await concurrently(together, await by_coordinator(cluster, key_type, requested, deadline))
    found |= await ask_one_by_one([key for key in requested if key not in found], alone)
    return _explained({key: found[key] for key in requested}, needs)


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


async def concurrently(function: Callable[[T], Coroutine[Any, Any, None]], items: Collection[T]) -> None:
    """Call a function with each item, in a task of its own if there are several."""
    if len(items) == 1:
        await function(next(iter(items)))
        return
    async with background_tasks() as tasks:
        for item in items:
            tasks.start_soon(function, item)


async def call_by_coordinator(
    cluster: Cluster,
    key_type: CoordinatorType,
    keys: Iterable[str],
    deadline: Deadline,
    call: Callable[[list[str]], Awaitable[Outcomes[str, V]]],
) -> Outcomes[str, V]:
    """Make a call of several requests for the keys of each coordinator, so that a slow one delays no other.

    Raise as :func:`ask_coordinators`.
    """
    requested = list(dict.fromkeys(keys))

    async def call_together(some: tuple[str, ...]) -> Outcomes[str, V]:
        return await call(list(some))

    found: Outcomes[str, V] = {}
    batches = [tuple(some) for some in await _batches(cluster, key_type, requested, deadline)]
    for some, outcome in (await ask_one_by_one(batches, call_together)).items():
        found |= dict.fromkeys(some, outcome) if isinstance(outcome, KafkaError) else outcome
    return raise_if_unsupported({key: found[key] for key in requested})


async def by_coordinator(
    cluster: Cluster, key_type: CoordinatorType, keys: Collection[str], deadline: Deadline
) -> list[list[str]]:
    """Return the lists of several keys that have the same coordinator, so that one request is enough for each list."""
    return [some for some in await _batches(cluster, key_type, keys, deadline) if len(some) > 1]


async def _batches(
    cluster: Cluster, key_type: CoordinatorType, keys: Collection[str], deadline: Deadline
) -> list[list[str]]:
    """Return the keys of each coordinator. A key whose coordinator is not found in half of the time is by itself."""
    half = cluster.deadline(deadline.left(cluster.runtime.now()) / 2)
    if len(keys) < 2:
        return [[key] for key in keys]

    async def coordinator(key: str) -> Node:
        return await cluster.coordinator(key_type, key, half)

    found: dict[Node | str, list[str]] = {}
    for key, node in (await ask_one_by_one(keys, coordinator)).items():
        found.setdefault(key if isinstance(node, KafkaError) else node, []).append(key)
    return list(found.values())


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


def _explained(outcomes: Mapping[str, V | KafkaError], needs: str) -> Outcomes[str, V]:
    found: Outcomes[str, V] = {}
    for key, outcome in outcomes.items():
        refused = isinstance(outcome, UnsupportedVersion | UnsupportedVersionAnswered)
        found[key] = UnsupportedVersion(f"{needs}: {outcome}") if refused and needs else outcome
    return raise_if_unsupported(found)


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


def _api(request: Request[R]) -> str:
    return type(request).__name__.removesuffix("Request")
