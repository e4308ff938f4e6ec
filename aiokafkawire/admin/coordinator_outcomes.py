"""Outcomes of requests to the coordinators of several groups or transactional ids.

A coordinator that is down or slow does not delay the requests to other coordinators.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final, TypeVar

from ..cluster.cluster import Cluster
from ..cluster.coordinators import named
from ..cluster.metadata import Node
from ..cluster.retry import Deadline
from ..errors import (
    BrokerError,
    CoordinatorNotAvailable,
    ErrorCode,
    KafkaError,
    UnsupportedVersion,
    UnsupportedVersionAnswered,
    UsageError,
    WireError,
)
from ..protocol.messages.group import FindCoordinatorRequest
from ..protocol.schema import Request, Response, Versions
from ..types import Address, CoordinatorType
from .concurrent_outcomes import ask_by_batch, ask_one_by_one, concurrently, raise_if_unsupported
from .outcomes import Outcomes
from .repeats import Repeats

__all__ = ("ask_coordinators", "by_coordinator", "call_by_coordinator", "with_coordinators")

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R", bound=Response)

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_MANY_KEYS: Final = Versions.parse("4+")  # of FindCoordinator (KIP-699)


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
    refusals: tuple[type[BrokerError], ...] = (),
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
        refusals: the errors of a key whose change is made already, perhaps by an attempt without an answer.

    Raises:
        UnsupportedVersion: all coordinators are too old.
        UsageError: the client is not open.
    """
    requested = list(dict.fromkeys(keys))
    found: Outcomes[str, V] = {}
    repeats = {key: Repeats(*refusals) for key in requested}

    def outcome_of(key: str, asked: Request[R], answered: Mapping[str, V | KafkaError]) -> V | KafkaError:
        if key in answered:
            outcome = repeats[key].explained(answered[key])
            if isinstance(outcome, CoordinatorNotAvailable):  # perhaps its replicas have not confirmed a change in time
                repeats[key].unanswered(outcome)
            return outcome
        return WireError(f"the {_api(asked)} response lacks the requested {named(key_type, key)}")

    async def together(some: list[str]) -> None:
        asked = request(some)

        def unanswered(error: KafkaError) -> None:
            for key in some:
                repeats[key].unanswered(error)

        try:
            response = await cluster.ask_coordinator(
                key_type,
                some[0],
                asked,
                deadline,
                lane=_LANE,
                wanted=versions,
                check=lambda _: None,
                unanswered=unanswered,
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

        await cluster.ask_coordinator(
            key_type,
            key,
            asked,
            deadline,
            lane=_LANE,
            wanted=versions,
            check=check,
            unanswered=repeats[key].unanswered,
        )
        return answers[-1]

    if len(requested) > 1:
        await concurrently(together, await by_coordinator(cluster, key_type, requested, deadline))
    found |= await ask_one_by_one([key for key in requested if key not in found], alone)
    return _explained({key: found[key] for key in requested}, needs)


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

    batches = [tuple(some) for some in await _batches(cluster, key_type, requested, deadline)]
    found: Outcomes[str, V] = await ask_by_batch({some: some for some in batches}, call_together)
    return raise_if_unsupported({key: found[key] for key in requested})


async def with_coordinators(
    cluster: Cluster,
    key_type: CoordinatorType,
    outcomes: Mapping[str, V | KafkaError],
    deadline: Deadline,
    description: Callable[[V, Node], T],
) -> Outcomes[str, T]:
    """Return the description of each group or transactional id, or its error.

    Args:
        cluster: finds the coordinators.
        key_type: whether the keys are groups or transactional ids.
        outcomes: the result or the error of each key.
        deadline: the time after which no coordinator is looked up again.
        description: returns the description for a result and the coordinator; may raise a KafkaError.
    """

    async def describe(key: str) -> T:
        outcome = outcomes[key]
        if isinstance(outcome, KafkaError):
            raise outcome
        return description(outcome, await cluster.coordinator(key_type, key, deadline))

    return await ask_one_by_one(outcomes, describe)


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
    await _find_together(cluster, key_type, keys, half)

    async def coordinator(key: str) -> Node:
        return await cluster.coordinator(key_type, key, half)

    found: dict[Node | str, list[str]] = {}
    for key, node in (await ask_one_by_one(keys, coordinator)).items():
        found.setdefault(key if isinstance(node, KafkaError) else node, []).append(key)
    return list(found.values())


async def _find_together(
    cluster: Cluster, key_type: CoordinatorType, keys: Collection[str], deadline: Deadline
) -> None:
    """Store the coordinators of several keys by one request, to brokers since 3.0 (KIP-699).

    Keys whose coordinator is not found are left to later lookups, one by one.
    """
    unknown = [key for key in keys if cluster.known_coordinator(key_type, key) is None]
    if len(unknown) < 2:
        return
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=unknown)
    try:
        response = await cluster.ask(cluster.least_loaded, request, deadline, lane=_LANE, wanted=_MANY_KEYS)
    except UsageError:
        raise
    except KafkaError:
        return  # which error a key has, its own lookup will show
    for found in response.coordinators:
        if found.error_code == ErrorCode.NONE and found.host:
            node = Node(found.node_id, Address(found.host, found.port))
            cluster.use_coordinator(key_type, found.key, node)


def _explained(outcomes: Mapping[str, V | KafkaError], needs: str) -> Outcomes[str, V]:
    found: Outcomes[str, V] = {}
    for key, outcome in outcomes.items():
        refused = isinstance(outcome, UnsupportedVersion | UnsupportedVersionAnswered)
        found[key] = UnsupportedVersion(f"{needs}: {outcome}") if refused and needs else outcome
    return raise_if_unsupported(found)


def _api(request: Request[R]) -> str:
    return type(request).__name__.removesuffix("Request")
