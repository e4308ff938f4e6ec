"""The coordinators of groups and transactional ids: looked up once for all callers, and cached."""

import logging
from collections.abc import Awaitable, Callable, Container
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from ..errors import ErrorCode, KafkaError, WireError, broker_error, copy_for_reraise
from ..event_log import EventLog, TroubleLog
from ..observe import CoordinatorChanged, Observers
from ..protocol.schema import Versions
from ..types import Address, CoordinatorType
from .metadata import Node
from .request_attempts import Attempts
from .request_variants import RequestVariant
from .retry import Deadline, retry_action

if TYPE_CHECKING:  # many clients need no coordinator
    from ..protocol.messages.group import FindCoordinatorResponse

__all__ = ("Coordinators", "coordinator_in", "lookup_variants", "named")

_log = EventLog("aiokafkawire.cluster")

# FindCoordinator v0 supports only groups; v4 has a list of keys instead of a single key (KIP-699).
_MANY_KEYS: Final = Versions.parse("4+")
_SHARE_KEYS: Final = Versions.parse("6+")  # KIP-932
_ONE_KEY: Final = {CoordinatorType.GROUP: Versions.parse("0-3"), CoordinatorType.TRANSACTION: Versions.parse("1-3")}
_MAX_CACHED: Final = 100_000
"""More than the groups of a cluster: one call about more than these would look each of the others up by itself."""
_MAX_FOLLOWED: Final = 10_000
"""Programs may make a new transactional id for each of their jobs."""
_NAMES: Final = {
    CoordinatorType.GROUP: "group",
    CoordinatorType.TRANSACTION: "transactional id",
    CoordinatorType.SHARE: "share partition",
}

_Key: TypeAlias = tuple[CoordinatorType, str]


def named(key_type: CoordinatorType, key: str) -> str:
    """Return the name of a group or a transactional id for errors and log lines."""
    return f"{_NAMES[key_type]} {key!r}"


def lookup_variants(key_type: CoordinatorType, key: str) -> "tuple[RequestVariant[FindCoordinatorResponse], ...]":
    """Return the FindCoordinator requests for brokers since 3.0 and for older brokers."""
    from ..protocol.messages.group import FindCoordinatorRequest

    newer = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    if key_type is CoordinatorType.SHARE:
        return (RequestVariant(newer, _SHARE_KEYS),)
    older = FindCoordinatorRequest(key_type=key_type, key=key)
    return RequestVariant(newer, _MANY_KEYS), RequestVariant(older, _ONE_KEY[key_type])


def coordinator_in(answer: "FindCoordinatorResponse", key_type: CoordinatorType, key: str) -> Node:
    """Return the coordinator of ``key`` in a FindCoordinator response.

    Raises:
        BrokerError: the response has an error for this key.
        WireError: the response lacks this key.
    """
    # Responses before v4 have no list, but fields for a single coordinator.
    found = next((found for found in answer.coordinators if found.key == key), None) if answer.coordinators else answer
    if found is not None and found.error_code != ErrorCode.NONE:
        message = f": {found.error_message}" if found.error_message else ""
        raise broker_error(found.error_code, f"FindCoordinator of {named(key_type, key)}{message}")
    if found is None or not found.host:
        raise WireError(f"an answer to FindCoordinator names no coordinator of {named(key_type, key)}")
    return Node(found.node_id, Address(found.host, found.port))


class _Lookup:
    """A lookup of a coordinator: one caller sends the request, and other callers wait for the result."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.callers = 0
        self.attempts: Attempts | None = None
        self.refused: KafkaError | None = None


class CoordinatorLog:
    """The logger of coordinators that were found and lost, which also notifies the observers: once of each change.

    The coordinators of this client's own groups and transactional ids are logged at INFO. Coordinators that an admin
    client looks up for other groups are logged at DEBUG.
    """

    def __init__(self, observers: Observers, now: Callable[[], float]) -> None:
        self._observers = observers
        self._trouble = TroubleLog(_log, now, first=logging.INFO)
        self._own: dict[_Key, None] = {}
        self._found: dict[_Key, Node] = {}
        self._lost: set[_Key] = set()

    def follow(self, key_type: CoordinatorType, key: str) -> None:
        """Log the coordinator of this group or transactional id at INFO from now on; of too many, forget the oldest."""
        self._own.pop((key_type, key), None)
        self._own[key_type, key] = None
        if len(self._own) > _MAX_FOLLOWED:
            oldest = next(iter(self._own))
            del self._own[oldest]
            self._found.pop(oldest, None)
            self._lost.discard(oldest)

    def found(self, key_type: CoordinatorType, key: str, node: Node) -> None:
        """Log a coordinator that was looked up, unless it is the coordinator that was logged last."""
        if self._found.get((key_type, key)) == node:
            return
        message = "found the coordinator of %(named)s: broker %(node_id)d at %(broker)s"
        text, fields = {"named": named(key_type, key)}, _fields(key_type, key, node)
        self._lost.discard((key_type, key))
        if (key_type, key) not in self._own:
            _log.debug(message, text=text, **fields)
        else:
            if not self._trouble.ended((key_type, key), message, text=text, **fields):
                _log.info(message, text=text, **fields)
            self._found[key_type, key] = node
            self._report(key_type, key, node, is_lost=False)

    def lost(self, key_type: CoordinatorType, key: str, node: Node, cause: KafkaError) -> None:
        """Log that ``node`` does not answer, or is not the coordinator any more."""
        message = "lost the coordinator of %(named)s, broker %(node_id)d at %(broker)s: %(error)s; looking it up again"
        text, fields = {"named": named(key_type, key)}, _fields(key_type, key, node)
        if (key_type, key) not in self._own:
            _log.debug(message, text=text, error=cause, **fields)
            return
        self._trouble.failed((key_type, key), message, text=text, error=cause, **fields)
        if (key_type, key) not in self._lost:
            self._lost.add((key_type, key))
            self._report(key_type, key, node, is_lost=True)

    def unavailable(self, key_type: CoordinatorType, key: str, cause: KafkaError) -> None:
        """Log that a broker knows no coordinator now."""
        message = "no coordinator of %(named)s is found, looking it up again: %(error)s"
        if (key_type, key) in self._own:
            group, transactional_id = _owner(key_type, key)
            self._trouble.failed(
                (key_type, key),
                message,
                text={"named": named(key_type, key)},
                group=group,
                transactional_id=transactional_id,
                error=cause,
            )

    def answered(self, key_type: CoordinatorType, key: str, node: Node) -> None:
        """Log that a lost coordinator answers again."""
        if self._trouble:
            message = "the coordinator of %(named)s answers again: broker %(node_id)d at %(broker)s"
            text = {"named": named(key_type, key)}
            self._trouble.ended((key_type, key), message, text=text, **_fields(key_type, key, node))
        if (key_type, key) in self._lost:
            self._lost.discard((key_type, key))
            self._report(key_type, key, node, is_lost=False)

    def _report(self, key_type: CoordinatorType, key: str, node: Node, *, is_lost: bool) -> None:
        if (notify := self._observers.coordinator_changed) is not None:
            notify(CoordinatorChanged(kind=_NAMES[key_type], key=key, broker=str(node.address), is_lost=is_lost))


def _owner(key_type: CoordinatorType, key: str) -> tuple[str | None, str | None]:
    """Return the group's id and the transactional id, of which one is None."""
    group = key if key_type is CoordinatorType.GROUP else None
    return group, key if key_type is CoordinatorType.TRANSACTION else None


def _fields(key_type: CoordinatorType, key: str, node: Node) -> dict[str, object]:
    group, transactional_id = _owner(key_type, key)
    return {"group": group, "transactional_id": transactional_id, "node_id": node.node_id, "broker": node.address}


class Coordinators:
    """The cache of the coordinators of groups and transactional ids, which looks up the coordinators that it lacks.

    Args:
        look_up: requests a coordinator from brokers; retries as often as its Attempts allow.
        attempts: makes the Attempts for one lookup; its arguments are the request's name in errors and the deadline.
        observers: the objects to notify of the coordinators of this client's own groups and transactional ids.
        now: the runtime's clock, in seconds.
    """

    def __init__(
        self,
        look_up: Callable[[CoordinatorType, str, Attempts], Awaitable[Node]],
        attempts: Callable[[str, Deadline], Attempts],
        observers: Observers,
        now: Callable[[], float],
    ) -> None:
        self._look_up, self._attempts = look_up, attempts
        self._known: dict[_Key, Node] = {}
        self._lookups: dict[_Key, _Lookup] = {}
        self.log: CoordinatorLog = CoordinatorLog(observers, now)

    async def find(self, key_type: CoordinatorType, key: str, deadline: Deadline) -> Node:
        """Return the cached coordinator, or look it up. Of several concurrent callers, only one sends the request.

        Raises:
            RequestTimeout: the coordinator was not found by the deadline.
            KafkaError: an error that is not retriable; all waiting callers get this error.
        """
        coordinator_key = key_type, key
        known = self._known.get(coordinator_key)
        if known is not None:
            return known
        lookup = self._lookups.setdefault(coordinator_key, _Lookup())
        lookup.callers += 1
        attempts = self._attempts(f"FindCoordinator of {named(key_type, key)}", deadline)
        try:
            with anyio.move_on_after(attempts.left) as waiting:
                await lookup.lock.acquire()
            if waiting.cancelled_caught:
                raise (lookup.attempts or attempts).timeout(deadline)
            try:
                return await self._find_alone(coordinator_key, lookup, attempts)
            finally:
                lookup.lock.release()
        finally:
            lookup.callers -= 1
            if not lookup.callers:
                self._end(coordinator_key, lookup)

    async def _find_alone(self, coordinator_key: _Key, lookup: _Lookup, attempts: Attempts) -> Node:
        known = self._known.get(coordinator_key)
        if known is not None:
            return known
        if lookup.refused is not None:
            raise copy_for_reraise(lookup.refused)
        lookup.attempts = attempts
        try:
            node = await self._look_up(*coordinator_key, attempts)
        except KafkaError as error:
            if not retry_action(error).retry:
                # Later callers look the coordinator up again, since access may have been granted meanwhile.
                lookup.refused = error
                self._end(coordinator_key, lookup)
            raise
        self.use(*coordinator_key, node)
        return node

    def _end(self, coordinator_key: _Key, lookup: _Lookup) -> None:
        if self._lookups.get(coordinator_key) is lookup:
            del self._lookups[coordinator_key]

    def use(self, key_type: CoordinatorType, key: str, node: Node) -> None:
        """Store a coordinator that a response named; drop the oldest one from a full cache."""
        self._known[key_type, key] = node
        self.log.found(key_type, key, node)
        if len(self._known) > _MAX_CACHED:
            del self._known[next(iter(self._known))]

    def known(self, key_type: CoordinatorType, key: str) -> Node | None:
        """Return the cached coordinator; None if none is cached."""
        return self._known.get((key_type, key))

    def at(self, addresses: Container[Address]) -> list[tuple[CoordinatorType, str, Node]]:
        """Return the cached coordinators at these addresses, with what they coordinate."""
        return [(*key, node) for key, node in self._known.items() if node.address in addresses]

    def invalidate_all(self) -> None:
        """Remove all coordinators from the cache, since the brokers belong to another cluster now."""
        self._known.clear()

    def invalidate(self, key_type: CoordinatorType, key: str, seen: Node) -> None:
        """Remove the coordinator ``seen`` from the cache, unless another coordinator has replaced it already."""
        if self._known.get((key_type, key)) == seen:
            del self._known[key_type, key]
