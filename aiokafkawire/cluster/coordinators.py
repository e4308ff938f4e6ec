"""Which broker coordinates a group or a transactional id: looked up once, however many need it, and remembered."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from ..errors import ErrorCode, KafkaError, WireError, again, broker_error
from ..protocol.schema import Versions
from ..types import Address, CoordinatorType
from .forms import Form
from .metadata import Node
from .retry import Deadline, remedy
from .tries import Tries

if TYPE_CHECKING:  # many a client needs no coordinator
    from ..protocol.messages.group import FindCoordinatorResponse

__all__ = ("Coordinators", "coordinator_in", "lookup_forms", "named")

# v0 knows groups alone; v4 asks for many keys at once, and has no field for a single one (KIP-699).
_MANY_KEYS: Final = Versions.parse("4+")
_ONE_KEY: Final = {CoordinatorType.GROUP: Versions.parse("0-3"), CoordinatorType.TRANSACTION: Versions.parse("1-3")}
_REMEMBERED: Final = 1000

_Key: TypeAlias = tuple[CoordinatorType, str]


def named(kind: CoordinatorType, key: str) -> str:
    """What is coordinated, as errors name it."""
    return f"group {key!r}" if kind is CoordinatorType.GROUP else f"transactional id {key!r}"


def lookup_forms(kind: CoordinatorType, key: str) -> "tuple[Form[FindCoordinatorResponse], ...]":
    """FindCoordinator for brokers from 3.0 on, and for older ones."""
    from ..protocol.messages.group import FindCoordinatorRequest

    newer = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    older = FindCoordinatorRequest(key_type=kind, key=key)
    return Form(newer, _MANY_KEYS), Form(older, _ONE_KEY[kind])


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
        self.tries: Tries | None = None
        self.refused: KafkaError | None = None


class Coordinators:
    """The coordinators that are known, each as it was looked up last.

    Args:
        look_up: finds one, with the tries that it is given.
        tries: makes these, of what is looked up and until when.
    """

    def __init__(
        self,
        look_up: Callable[[CoordinatorType, str, Tries], Awaitable[Node]],
        tries: Callable[[str, Deadline], Tries],
    ) -> None:
        self._look_up, self._tries = look_up, tries
        self._known: dict[_Key, Node] = {}
        self._lookups: dict[_Key, _Lookup] = {}

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

    async def _find_in_turn(self, asked: _Key, lookup: _Lookup, mine: Tries) -> Node:
        known = self._known.get(asked)
        if known is not None:
            return known
        if lookup.refused is not None:
            raise again(lookup.refused)
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
