"""Orders of a test: what a broker is to do with certain requests, other than to answer them.

    broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.NOT_COORDINATOR)
    broker.on(ApiKey.PRODUCE, drop="after", topic="flights")

1. An order acts on the requests that its selectors fit (:class:`~.journal.Which`), ``times`` times, once unless told;
   before that it lets ``after`` of them pass.
2. Orders are asked in the order they were given. The first that fits acts, and those behind it do not see the request:
   three orders of one time each act on three requests one after the other.
3. Matching and deciding is done here, without a loop; :mod:`.exchange` carries it out.
"""

import inspect
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

import anyio
import attrs

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ...protocol.message_registry import request_of
from ...protocol.schema import Response
from .request_log import Bell, LoggedRequest, Selector

__all__ = ("Action", "Answer", "Hold", "FaultRule", "Orders", "UnusedFaultRules", "When")

When: TypeAlias = Literal["before", "after"]
"""Before the broker handles the request, or after it has, and before it answers."""

Answer: TypeAlias = ErrorCode | Response | Callable[[Any, Any], Response | None]
"""An error for every part of the request, an answer as it is, or a function that is given the request and the true
answer, and returns what to answer; None for nothing, with the connection going on."""


_MOMENTS: Final = (None, "before", "after")


class UnusedFaultRules(AssertionError):
    """The test has ended, and what it ordered was never asked for."""


@attrs.frozen(kw_only=True)
class Action:
    """What an order does; see :meth:`Broker.on <aiokafkawire.testing.broker.Broker.on>`."""

    answer: Answer | None = None
    drop: When | None = None
    swallow: When | None = None
    cut: bool = False
    corrupt: "int | Literal['records'] | None" = None
    delay: float = 0.0
    delay_answer: float = 0.0
    hold: When | None = None

    def check(self, api: ApiKey | None) -> None:
        """Raises ValueError for what contradicts itself, or says nothing, TypeError for an answer that is none."""
        if not isinstance(self.cut, bool):
            raise TypeError(f"cut={self.cut!r}: True or False")
        for name, delay in (("delay", self.delay), ("delay_answer", self.delay_answer)):
            if isinstance(delay, bool) or not isinstance(delay, int | float):
                raise TypeError(f"{name}={delay!r}: a number of seconds")
            if not delay >= 0:
                raise ValueError(f"{name}={delay!r}: a delay is in seconds, and not negative")
        for name, moment in (("drop", self.drop), ("swallow", self.swallow), ("hold", self.hold)):
            if moment not in _MOMENTS:
                raise ValueError(f"{name}={moment!r}: 'before' or 'after'")
        if self.corrupt not in (None, "records") and type(self.corrupt) is not int:
            raise ValueError(f"corrupt={self.corrupt!r}: an index, or 'records'")
        ends = [self.drop is not None, self.swallow is not None, self.cut, self.corrupt is not None]
        if sum(ends) > 1:
            raise ValueError("one of drop, swallow, cut and corrupt at most")
        if self.answer is not None and "before" in (self.drop, self.swallow):
            raise ValueError("an answer, and a connection that ends before it: one of them")
        if not any((*ends, self.answer is not None, self.delay, self.delay_answer, self.hold)):
            raise ValueError("an order must say what to do: answer, drop, swallow, cut, corrupt, delay or delay_answer")
        if self.answer is not None:
            self._check_answer(api)

    def _check_answer(self, api: ApiKey | None) -> None:
        allowed = "an ErrorCode, a response, or a function of the request and the true answer"
        if not isinstance(self.answer, ErrorCode | Response) and (
            isinstance(self.answer, type) or not callable(self.answer)
        ):
            raise TypeError(f"answer={self.answer!r}: {allowed}")
        if inspect.iscoroutinefunction(self.answer):
            raise TypeError(f"answer={self.answer!r}: {allowed}, which is not async")
        if self.answer is ErrorCode.NONE:
            raise ValueError("ErrorCode.NONE is no error: after= lets requests pass")
        if isinstance(self.answer, Response):
            if api is None:
                raise ValueError("an answer as it is belongs to one API")
            if not isinstance(self.answer, request_of(api).response):
                raise ValueError(f"{type(self.answer).__name__} does not answer {api.name}")

    def __str__(self) -> str:
        given = [(field.name, getattr(self, field.name), field.default) for field in attrs.fields(type(self))]
        told = [
            f"{name}={value.name if isinstance(value, ErrorCode) else value!r}"
            for name, value, default in given
            if value != default
        ]
        return ", ".join(told)


class FaultRule:
    """One order: what it has done so far, and how to take it back."""

    def __init__(
        self, selector: Selector, action: Action, *, times: int | None = 1, after: int = 0, gate: "Hold | None" = None
    ) -> None:
        action.check(selector.api)
        for name, number in (("times", times), ("after", after)):
            if isinstance(number, bool) or (not isinstance(number, int) and (number is not None or name == "after")):
                raise TypeError(f"{name}={number!r}: an integer" + (", or None for ever" if name == "times" else ""))
        if after < 0 or (times is not None and times < 1):
            raise ValueError(f"times={times}, after={after}: one time at least, or None for ever; after=0 or more")
        self.selector = selector
        self.action = action
        self.times = times
        self.after = after
        self.gate = gate
        self.count: int = 0
        """On how many requests it has acted; each counts when its answer is ready to be sent, or lost."""
        self.removed: bool = False
        self._taken = 0
        self._passed = 0
        self._bell = Bell()

    @property
    def is_met(self) -> bool:
        """Whether it has acted as often as it was to; one without an end, whether it has acted at all."""
        return self.count >= (1 if self.times is None else self.times)

    @property
    def is_active(self) -> bool:
        """Whether it may still act."""
        return not self.removed and (self.times is None or self._taken < self.times)

    @property
    def is_over(self) -> bool:
        """Whether it will never act again; what it has taken, and not done yet, it may give back."""
        return self.removed or (self.times is not None and self.is_met)

    def remove(self) -> None:
        """Act no more. What is delayed or held stays so. May be called again."""
        self.removed = True

    async def met(self, count: int | None = None) -> None:
        """Wait until it has acted ``count`` times; without a number as often as it was to, or once if it has no end."""
        wanted = count if count is not None else self.times or 1
        while self.count < wanted:
            await self._bell.wait()

    def take(self, asked: LoggedRequest) -> bool:
        """Whether it acts on this request."""
        if not self.is_active or not self.selector.fits(asked):
            return False
        if self._passed < self.after:
            self._passed += 1
            return False
        self._taken += 1
        return True

    def done(self) -> None:
        """It has acted on a request that it took."""
        self.count += 1
        self._bell.ring()

    def give_back(self) -> None:
        """It could do nothing with a request that it took: another one is to come."""
        self._taken -= 1

    def __repr__(self) -> str:
        often = "for ever" if self.times is None else f"{self.times} times"
        return f"<on {self.selector}: {self.action}; {often}, {self.count} so far>"


class Hold:
    """Requests that wait until the test lets them go on::

        async with broker.hold(ApiKey.SYNC_GROUP) as held:
            ...
            await held.arrived()
            ...  # what is to happen meanwhile
            held.release()

    Leaving the context lets all go on. It is entered once; before that nothing is held.
    """

    def __init__(self, orders: "Orders", selector: Selector, at: When, times: int | None, after: int) -> None:
        self.order: FaultRule = FaultRule(selector, Action(hold=at), times=times, after=after, gate=self)
        self.requests: list[LoggedRequest] = []
        """All that it has held, those that were let go included."""
        self._orders = orders
        self._let_go = 0
        self._open = False
        self._entered = False
        self._came = Bell()
        self._went = Bell()

    @property
    def waiting(self) -> list[LoggedRequest]:
        """The requests that are held now."""
        return [] if self._open else self.requests[self._let_go :]

    async def arrived(self, count: int = 1) -> LoggedRequest:
        """Wait until ``count`` requests have come in all; the last of them.

        Raises:
            RuntimeError: the context was not entered.
        """
        self._check_entered()
        while len(self.requests) < count:
            await self._came.wait()
        return self.requests[count - 1]

    def release(self, count: int | None = None) -> None:
        """Let the first ``count`` of those held go on; without a number all, and those to come are not held.

        Raises:
            RuntimeError: the context was not entered.
        """
        self._check_entered()
        if count is None:
            self._open = True
            self.order.remove()
        else:
            self._let_go = min(self._let_go + count, len(self.requests))
        self._went.ring()

    async def wait(self, asked: LoggedRequest) -> None:
        """Hold one request."""
        place = len(self.requests)
        self.requests.append(asked)
        self._came.ring()
        while not self._open and place >= self._let_go:
            await self._went.wait()

    def _check_entered(self) -> None:
        if not self._entered:
            raise RuntimeError("nothing is held before the context is entered: async with broker.hold(...) as held")

    async def __aenter__(self) -> Self:
        if self._entered:
            raise RuntimeError("a hold is entered once: broker.hold(...) makes another one")
        self._entered = True
        self._orders.add(self.order)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


class Orders:
    """All orders of a cluster, and which of its nodes and partitions stand still."""

    def __init__(self) -> None:
        self._given: list[FaultRule] = []
        self._asked: list[FaultRule] = []  # those that may act yet
        self._frozen: dict[int, anyio.Event] = {}
        self._paused: dict[tuple[str, int], anyio.Event] = {}

    def __iter__(self) -> Iterator[FaultRule]:
        return iter(list(self._given))

    def add(self, order: FaultRule) -> None:
        """Ask this order from now on, after the others."""
        self._given.append(order)
        self._asked.append(order)

    def take(self, asked: LoggedRequest) -> FaultRule | None:
        """The order that acts on this request."""
        if any(order.is_over for order in self._asked):
            self._given = [order for order in self._given if not order.removed]
            self._asked = [order for order in self._asked if not order.is_over]
        return next((order for order in self._asked if order.take(asked)), None)

    def clear(self) -> None:
        """Take all orders back, thaw and resume."""
        for order in self._given:
            order.remove()
        self._given.clear()
        self._asked.clear()
        for node in list(self._frozen):
            self.thaw(node)
        for topic, partition in list(self._paused):
            self.resume(topic, partition)

    def check(self) -> None:
        """Raises UnmetOrders if an order that was not taken back has not acted as often as it was to."""
        unmet = [order for order in self._given if not order.removed and not order.is_met]
        if unmet:
            raise UnusedFaultRules("ordered, and not asked for: " + "; ".join(map(repr, unmet)))

    # --- standing still ------------------------------------------------------------------------------------------

    def freeze(self, node: int) -> None:
        """Let a node handle and answer nothing."""
        self._frozen.setdefault(node, anyio.Event())

    def thaw(self, node: int) -> None:
        """Let it go on."""
        event = self._frozen.pop(node, None)
        if event is not None:
            event.set()

    async def thawed(self, node: int) -> None:
        """Return when this node is not frozen."""
        while (event := self._frozen.get(node)) is not None:
            await event.wait()

    def pause(self, topic: str, partition: int) -> None:
        """Let nothing in or out of a partition."""
        self._paused.setdefault((topic, partition), anyio.Event())

    def resume(self, topic: str, partition: int) -> None:
        """Let it go on."""
        event = self._paused.pop((topic, partition), None)
        if event is not None:
            event.set()

    def is_paused(self, topic: str, partition: int) -> bool:
        """Whether nothing comes out of this partition."""
        return (topic, partition) in self._paused

    async def resumed(self, asked: LoggedRequest) -> None:
        """Return when no partition that this request names is paused."""
        while self._paused:
            waits = [self._paused[one] for one in self._paused if one in asked.targets.partitions]
            if not waits:
                return
            await waits[0].wait()
