"""The outcomes of a call for several resources: each has a result or an error of its own."""

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias, TypeVar

import anyio

from ..cluster.cluster import Cluster, Route
from ..cluster.retry import Deadline
from ..errors import AdminError, BrokerError, KafkaError, NotController, Refresh, ThrottlingQuotaExceeded, WireError
from ..event_log import EventLog
from ..protocol.schema import Request, Response, Versions
from ..protocol.throttling import throttle_seconds
from .repeats import Repeats

__all__ = ("Outcomes", "ask_for_each", "results_of")

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Response)

Outcomes: TypeAlias = dict[K, V | KafkaError]
"""The result or the error of each resource."""

_log = EventLog("aiokafkawire.cluster")

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_RETRIED: Final[tuple[type[BrokerError], ...]] = (NotController, ThrottlingQuotaExceeded)


def results_of(what: str, outcomes: Mapping[K, V | KafkaError]) -> dict[K, V]:
    """Return the results if there is no error.

    Args:
        what: the call, for the error's message, such as "deleting topics".
        outcomes: the result or the error of each resource.

    Raises:
        KafkaError: the error of the only resource.
        AdminError: some of several resources have errors.
    """
    errors = {resource: outcome for resource, outcome in outcomes.items() if isinstance(outcome, KafkaError)}
    results = {resource: outcome for resource, outcome in outcomes.items() if not isinstance(outcome, KafkaError)}
    if not errors:
        return results
    if len(outcomes) == 1:
        raise next(iter(errors.values()))
    raise AdminError(f"{what} failed for {len(errors)} of {len(outcomes)}", errors, results)


async def ask_for_each(
    cluster: Cluster,
    route: Route,
    resources: Collection[K],
    deadline: Deadline,
    *,
    request: Callable[[list[K]], Request[R]],
    outcomes: Callable[[R], Mapping[K, V | KafkaError]],
    versions: Versions = _ANY,
    retried: tuple[type[BrokerError], ...] = _RETRIED,
    refusals: tuple[type[BrokerError], ...] = (),
) -> Outcomes[K, V]:
    """Ask one broker about resources, and again about those that a retry may help, until the deadline.

    Args:
        cluster: has the brokers.
        route: returns the broker to ask.
        resources: what to ask about; each is asked about once.
        deadline: the time after which nothing is asked again; resources then keep their last errors.
        request: makes the request for some of the resources.
        outcomes: reads the outcomes of a response; raises the error that concerns all resources.
        versions: the versions that have all fields of the request.
        retried: the errors of a resource that a retry may solve.
        refusals: the errors of a resource whose change is made already, perhaps by an attempt without an answer.

    Raises:
        KafkaError: the first request failed as a whole, as :meth:`Cluster.ask` raises.
    """
    found: dict[K, V | KafkaError] = {}
    pending = list(dict.fromkeys(resources))
    backoff, repeats = cluster.backoff(), Repeats(*refusals)
    while pending:
        snapshot = cluster.metadata.snapshot
        answered: dict[K, V | KafkaError] = {}

        def check(response: R, answered: dict[K, V | KafkaError] = answered) -> None:
            answered.update(outcomes(response))

        try:
            response = await cluster.ask(
                route,
                request(pending),
                deadline,
                lane=_LANE,
                wanted=versions,
                check=check,
                unanswered=repeats.unanswered,
            )
        except KafkaError:
            if not found:
                raise
            break  # the resources keep their errors
        for resource in pending:
            missing = WireError(f"the response lacks the requested {resource}")
            found[resource] = repeats.explained(answered.get(resource, missing))
        pending = [resource for resource in pending if isinstance(found[resource], retried)]
        for error in (found[resource] for resource in pending):
            if isinstance(error, NotController):
                repeats.unanswered(error)
        if any(getattr(found[resource], "refresh", None) is Refresh.METADATA for resource in pending):
            cluster.metadata.mark_stale(snapshot)
        wait = max(backoff.next(), _quota_wait(response, [found[resource] for resource in pending]))
        if pending and wait >= deadline.left(cluster.runtime.now()):
            break
        if pending:
            what = type(response).__name__.removesuffix("Response")
            error = found[pending[0]]
            name = {"name": type(error).__name__}
            _log.debug(
                "retrying %(api)s in %(delay).3f s: %(name)s: %(error)s", text=name, api=what, delay=wait, error=error
            )
            await anyio.sleep(wait)
    return {resource: found[resource] for resource in dict.fromkeys(resources)}


def _quota_wait(response: Response, outcomes: Collection[object]) -> float:
    """Return the seconds until a quota allows the request again; 0 unless a resource exceeded it (KIP-599).

    The broker reads no request of this connection in the meantime.
    """
    exceeded = any(isinstance(outcome, ThrottlingQuotaExceeded) for outcome in outcomes)
    return throttle_seconds(response) if exceeded else 0.0
