"""Which broker coordinates a group or a transactional id: looked up once, however many need it, and remembered."""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from ..errors import ErrorCode, KafkaError, WireError, broker_error, copy_for_reraise
from ..protocol.schema import Versions
from ..types import Address, CoordinatorType
from .attempts import Attempts
from .metadata import Node
from .request_variants import RequestVariant
from .retry import Deadline, remedy

if TYPE_CHECKING:  # many a client needs no coordinator
    from ..protocol.messages.group import FindCoordinatorResponse

__all__ = ("Coordinators", "coordinator_in", "lookup_forms", "named")

_log = logging.getLogger("aiokafkawire.cluster")

# v0 knows groups alone; v4 asks for many keys at once, and has no field for a single one (KIP-699).
_MANY_KEYS: Final = Versions.parse("4+")
_ONE_KEY: Final = {CoordinatorType.GROUP: Versions.parse("0-3"), CoordinatorType.TRANSACTION: Versions.parse("1-3")}
_REMEMBERED: Final = 1000

_Key: TypeAlias = tuple[CoordinatorType, str]


def named(kind: CoordinatorType, key: str) -> str:
    """What is coordinated, as errors name it."""
    return f"group {key!r}" if kind is CoordinatorType.GROUP else f"transactional id {key!r}"


def lookup_forms(kind: CoordinatorType, key: str) -> "tuple[RequestVariant[FindCoordinatorResponse], ...]":
    """FindCoordinator for brokers from 3.0 on, and for older ones."""
    from ..protocol.messages.group import FindCoordinatorRequest

    newer = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    older = FindCoordinatorRequest(key_type=kind, key=key)
    return RequestVariant(newer, _MANY_KEYS), RequestVariant(older, _ONE_KEY[kind])


def coordinator_in(answer: "FindCoordinatorResponse", kind: CoordinatorType, key: str) -> Node:
    """The coordinator of one key, where the answer says that it listens.

    Raises:
        BrokerError: the answer has an error instead.
        WireError: the answer is not about this key.
    """
    # Without a list it is an answer of the old form, or it is empty: then it has no host either.
    said = next((one for one in answer.coordinators if one.key == key), None) if answer.coordinators else answer
    if said is not None and said.error_code != ErrorCode.NONE:
        told = f": {said.error_message}" if said.error_message else ""
        raise broker_error(said.error_code, f"FindCoordinator of {named(kind, key)}{told}")
    if said is None or not said.host:
        raise WireError(f"an answer to FindCoordinator names no coordinator of {named(kind, key)}, which was asked")
    return Node(said.node_id, Address(said.host, said.port))


class _Lookup:
    """A coordinator that is being looked up: one caller asks, the others wait for their turn and find it done."""

    def __init__(self) -> None:
        self.turn = anyio.Lock()
        self.callers = 0
        self.tries: Attempts | None = None
        self.refused: KafkaError | None = None


class CoordinatorLog:
    """Logs the coordinators that are found and lost, each change once, however often a retry meets it.

    The coordinators of this client's own groups and transactional ids are logged at INFO. An admin client looks up
    many of others, which are logged at DEBUG.
    """

    def __init__(self) -> None:
        self._own: set[_Key] = set()
        self._found: dict[_Key, Node] = {}
        self._lost: set[_Key] = set()

    def follow(self, kind: CoordinatorType, key: str) -> None:
        """Log this coordinator at INFO from now on."""
        self._own.add((kind, key))

    def found(self, kind: CoordinatorType, key: str, node: Node) -> None:
        """Log a coordinator that was looked up, unless it is the one that was logged last."""
        if self._found.get((kind, key)) == node:
            return
        _log.log(self._level(kind, key), "found the coordinator of %s: %s", named(kind, key), _broker(node))
        self._lost.discard((kind, key))
        if (kind, key) in self._own:
            self._found[kind, key] = node

    def lost(self, kind: CoordinatorType, key: str, node: Node, cause: KafkaError) -> None:
        """Log a coordinator that does not answer, or says that it coordinates this no more."""
        known = (kind, key) in self._lost
        told = "lost the coordinator of %s, %s: %s; looking for it again"
        level = logging.DEBUG if known else self._level(kind, key)
        _log.log(level, told, named(kind, key), _broker(node), cause)
        if (kind, key) in self._own:
            self._lost.add((kind, key))

    def answered(self, kind: CoordinatorType, key: str, node: Node) -> None:
        """Log a coordinator that was lost and answers again."""
        if (kind, key) in self._lost:
            self._lost.discard((kind, key))
            _log.info("the coordinator of %s answers again: %s", named(kind, key), _broker(node))

    def _level(self, kind: CoordinatorType, key: str) -> int:
        return logging.INFO if (kind, key) in self._own else logging.DEBUG


def _broker(node: Node) -> str:
    return f"broker {node.node_id} at {node.address}"


class Coordinators:
    """The coordinators that are known, each as it was looked up last.

    Args:
        look_up: finds one, with the tries that it is given.
        tries: makes these, of what is looked up and until when.
    """

    def __init__(
        self,
        look_up: Callable[[CoordinatorType, str, Attempts], Awaitable[Node]],
        tries: Callable[[str, Deadline], Attempts],
    ) -> None:
        self._look_up, self._tries = look_up, tries
        self._known: dict[_Key, Node] = {}
        self._lookups: dict[_Key, _Lookup] = {}
        self.log: CoordinatorLog = CoordinatorLog()

    async def find(self, kind: CoordinatorType, key: str, deadline: Deadline) -> Node:
        """The coordinator; one that is not known is looked up, by one caller at a time.

        Raises:
            RequestTimeout: it was not found by the deadline.
            KafkaError: an error that no retry mends, for all who wait.
        """
        asked = kind, key
        known = self._known.get(asked)
        if known is not None:
            return known
        lookup = self._lookups.setdefault(asked, _Lookup())
        lookup.callers += 1
        mine = self._tries(f"FindCoordinator of {named(kind, key)}", deadline)
        try:
            with anyio.move_on_after(mine.left) as waiting:
                await lookup.turn.acquire()
            if waiting.cancelled_caught:
                raise (lookup.tries or mine).late(deadline)
            try:
                return await self._find_in_turn(asked, lookup, mine)
            finally:
                lookup.turn.release()
        finally:
            lookup.callers -= 1
            if not lookup.callers:
                self._end(asked, lookup)

    async def _find_in_turn(self, asked: _Key, lookup: _Lookup, mine: Attempts) -> Node:
        known = self._known.get(asked)
        if known is not None:
            return known
        if lookup.refused is not None:
            raise copy_for_reraise(lookup.refused)
        lookup.tries = mine
        try:
            node = await self._look_up(*asked, mine)
        except KafkaError as error:
            if not remedy(error).retry:
                # Whoever comes later asks again: access may have been granted meanwhile.
                lookup.refused = error
                self._end(asked, lookup)
            raise
        self._known[asked] = node
        self.log.found(*asked, node)
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return node

    def _end(self, asked: _Key, lookup: _Lookup) -> None:
        if self._lookups.get(asked) is lookup:
            del self._lookups[asked]

    def known(self, kind: CoordinatorType, key: str) -> Node | None:
        """The coordinator, if it is known."""
        return self._known.get((kind, key))

    def forget_all(self) -> None:
        """All of them are of another cluster, or of another time."""
        self._known.clear()

    def forget(self, kind: CoordinatorType, key: str, seen: Node) -> None:
        """``seen`` proved wrong: look for another, unless that has happened already."""
        if self._known.get((kind, key)) == seen:
            del self._known[kind, key]
