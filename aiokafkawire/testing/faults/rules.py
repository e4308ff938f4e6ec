"""Fault rules of a test: a broker's actions on certain requests, instead of a normal response.

    broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.NOT_COORDINATOR)
    broker.on(ApiKey.PRODUCE, drop="after", topic="flights")

1. A rule counts the requests that match its selectors (:class:`~.request_log.Which`). It ignores the first ``after`` of
   them (by default none) and applies to the ``times`` requests that follow (by default one).
2. Rules are tried in the order in which they were added, until one applies. The rules after it do not count the
   request; thus three rules with ``times=1`` apply to three successive requests.

This module matches requests to rules; :mod:`.interception` applies them.
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
from .request_log import PATIENCE, Bell, LoggedRequest, Selector, time_limit

__all__ = ("Action", "Answer", "Hold", "FaultRule", "FaultRules", "UnusedFaultRules", "When")

When: TypeAlias = Literal["before", "after"]
"""Before the broker handles the request, or after it has handled the request and before it sends the response."""

Answer: TypeAlias = ErrorCode | Response | Callable[[Any, Any], Response | None]
"""An error for the selected part of the request, a response to send, or a function that takes the request and the
broker's response and returns the response to send, or None to send none and keep the connection open.
"""


_MOMENTS: Final = (None, "before", "after")


class UnusedFaultRules(AssertionError):
    """The broker was closed although a fault rule was applied too rarely: its ``is_met`` is False."""


@attrs.frozen(kw_only=True)
class Action:
    """The action of a fault rule; see :meth:`Broker.on <aiokafkawire.testing.broker.Broker.on>`."""

    answer: Answer | None = None
    drop: When | None = None
    swallow: When | None = None
    cut: bool = False
    corrupt: "int | Literal['records'] | None" = None
    delay: float = 0.0
    delay_answer: float = 0.0
    hold: When | None = None

    def check(self, api: ApiKey | None) -> None:
        """Raise ValueError or TypeError if the action is invalid for requests of ``api`` (None: of any API)."""
        if not isinstance(self.cut, bool):
            raise TypeError(f"cut= must be True or False, got {self.cut!r}")
        for name, delay in (("delay", self.delay), ("delay_answer", self.delay_answer)):
            if isinstance(delay, bool) or not isinstance(delay, int | float):
                raise TypeError(f"{name}= must be a number of seconds, got {delay!r}")
            if not delay >= 0:
                raise ValueError(f"{name}= must be 0 or more seconds, got {delay!r}")
        for name, moment in (("drop", self.drop), ("swallow", self.swallow), ("hold", self.hold)):
            if moment not in _MOMENTS:
                raise ValueError(f"{name}= must be 'before' or 'after', got {moment!r}")
        if self.corrupt not in (None, "records") and type(self.corrupt) is not int:
            raise ValueError(f"corrupt= must be an index or 'records', got {self.corrupt!r}")
        ends = [self.drop is not None, self.swallow is not None, self.cut, self.corrupt is not None]
        if sum(ends) > 1:
            raise ValueError("drop=, swallow=, cut= and corrupt= exclude each other")
        if self.answer is not None and "before" in (self.drop, self.swallow):
            raise ValueError("answer= and a connection that ends before it exclude each other")
        if not any((*ends, self.answer is not None, self.delay, self.delay_answer, self.hold)):
            raise ValueError("a fault rule needs an action: answer, drop, swallow, cut, corrupt, delay or delay_answer")
        if self.answer is not None:
            self._check_answer(api)

    def _check_answer(self, api: ApiKey | None) -> None:
        allowed = "an ErrorCode, a response, or a function of the request and the broker's response"
        if not isinstance(self.answer, ErrorCode | Response) and (
            isinstance(self.answer, type) or not callable(self.answer)
        ):
            raise TypeError(f"answer= must be {allowed}, got {self.answer!r}")
        if inspect.iscoroutinefunction(self.answer):
            raise TypeError(f"answer= must be {allowed}, not async, got {self.answer!r}")
        if self.answer is ErrorCode.NONE:
            raise ValueError("ErrorCode.NONE is no error; to let requests through, use after=")
        if isinstance(self.answer, Response):
            if api is None:
                raise ValueError("answer= with a response needs an API")
            if not isinstance(self.answer, request_of(api).response):
                raise ValueError(f"{type(self.answer).__name__} does not answer {api.name}")

    def __str__(self) -> str:
        given = [(field.name, getattr(self, field.name), field.default) for field in attrs.fields(type(self))]
        parts = [
            f"{name}={value.name if isinstance(value, ErrorCode) else value!r}"
            for name, value, default in given
            if value != default
        ]
        return ", ".join(parts)


class FaultRule:
    """A fault rule: the requests that it matches, its action, and the number of times it was applied."""

    def __init__(
        self, selector: Selector, action: Action, *, times: int | None = 1, after: int = 0, gate: "Hold | None" = None
    ) -> None:
        action.check(selector.api)
        for name, number in (("times", times), ("after", after)):
            if isinstance(number, bool) or (not isinstance(number, int) and (number is not None or name == "after")):
                raise TypeError(
                    f"{name}= must be an integer" + (" or None" if name == "times" else "") + f", got {number!r}"
                )
        if after < 0 or (times is not None and times < 1):
            raise ValueError(f"times={times}, after={after}: times= must be None or 1 or more, after= 0 or more")
        self.selector = selector
        self.action = action
        self.times = times
        self.after = after
        self.gate = gate
        self.count: int = 0
        """The number of requests the rule was applied to; a request counts when its response is ready or suppressed."""
        self.removed: bool = False
        self._taken = 0
        self._passed = 0
        self._bell = Bell()

    @property
    def is_met(self) -> bool:
        """Whether the rule was applied to ``times`` requests, or to at least one if ``times`` is None."""
        return self.count >= (1 if self.times is None else self.times)

    @property
    def is_active(self) -> bool:
        """Whether the rule can take a request now: it is not removed, and has taken fewer than ``times`` requests."""
        return not self.removed and (self.times is None or self._taken < self.times)

    @property
    def is_over(self) -> bool:
        """Whether the rule was removed or applied to ``times`` requests; from then on, it never takes a request."""
        return self.removed or (self.times is not None and self.is_met)

    def remove(self) -> None:
        """Remove the rule, unless it was removed already. Requests that it delays or holds now are not affected."""
        self.removed = True

    async def met(self, count: int | None = None, *, timeout: float = PATIENCE) -> None:
        """Wait until the rule was applied to ``count`` requests: by default ``times``, or 1 if ``times`` is None.

        Raises:
            TimeoutError: the rule was applied to fewer requests within ``timeout`` seconds.
        """
        expected = count if count is not None else self.times or 1
        with time_limit(timeout, lambda: f"{self!r} was to be applied {expected} times"):
            while self.count < expected:
                await self._bell.wait()

    def take(self, asked: LoggedRequest) -> bool:
        """Return whether the rule applies to this request; if so, take the request, which counts towards ``times``."""
        if not self.is_active or not self.selector.fits(asked):
            return False
        if self._passed < self.after:
            self._passed += 1
            return False
        self._taken += 1
        return True

    def done(self) -> None:
        """Record that the rule was applied to a request that it had taken."""
        self.count += 1
        self._bell.ring()

    def give_back(self) -> None:
        """Undo :meth:`take` for a request to which the rule cannot be applied; the rule may take another request."""
        self._taken -= 1

    def __repr__(self) -> str:
        often = "for ever" if self.times is None else f"{self.times} times"
        return f"<on {self.selector}: {self.action}; {often}, {self.count} so far>"


class Hold:
    """A context in which certain requests wait until the test releases them::

        async with broker.hold(ApiKey.SYNC_GROUP) as held:
            ...
            await held.arrived()
            ...  # the test's actions meanwhile
            held.release()

    The context can be entered once, holds no request before that, and releases all requests when it is left.
    """

    def __init__(self, rules: "FaultRules", selector: Selector, at: When, times: int | None, after: int) -> None:
        self.rule: FaultRule = FaultRule(selector, Action(hold=at), times=times, after=after, gate=self)
        self.requests: list[LoggedRequest] = []
        """All requests that the context has held, including released ones."""
        self._rules = rules
        self._let_go = 0
        self._open = False
        self._entered = False
        self._came = Bell()
        self._went = Bell()

    @property
    def waiting(self) -> list[LoggedRequest]:
        """The requests that are held now."""
        return [] if self._open else self.requests[self._let_go :]

    async def arrived(self, count: int = 1, *, timeout: float | None = None) -> LoggedRequest:
        """Wait until the context has held ``count`` requests, including released ones, and return the ``count``-th.

        Raises:
            TimeoutError: fewer requests arrived within ``timeout`` seconds; None waits without end.
            RuntimeError: the context was not entered.
        """
        self._check_entered()
        with time_limit(timeout, lambda: f"{len(self.requests)} of {count} requests to hold have arrived"):
            while len(self.requests) < count:
                await self._came.wait()
        return self.requests[count - 1]

    def release(self, count: int | None = None) -> None:
        """Release the ``count`` oldest held requests; without ``count`` release all, and hold no further ones.

        Raises:
            RuntimeError: the context was not entered.
        """
        self._check_entered()
        if count is None:
            self._open = True
            self.rule.remove()
        else:
            self._let_go = min(self._let_go + count, len(self.requests))
        self._went.ring()

    async def wait(self, asked: LoggedRequest) -> None:
        """Hold this request until the test releases it or leaves the context."""
        index = len(self.requests)
        self.requests.append(asked)
        self._came.ring()
        while not self._open and index >= self._let_go:
            await self._went.wait()

    def _check_entered(self) -> None:
        if not self._entered:
            raise RuntimeError("this hold was not entered: use async with broker.hold(...) as held")

    async def __aenter__(self) -> Self:
        if self._entered:
            raise RuntimeError("a hold can be entered once; call broker.hold(...) for another one")
        self._entered = True
        self._rules.add(self.rule)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


class FaultRules:
    """The fault rules, frozen brokers and paused partitions of a cluster."""

    def __init__(self) -> None:
        self._given: list[FaultRule] = []
        self._asked: list[FaultRule] = []  # the rules that may still take a request
        self._frozen: dict[int, anyio.Event] = {}
        self._paused: dict[tuple[str, int], anyio.Event] = {}

    def __iter__(self) -> Iterator[FaultRule]:
        return iter(list(self._given))

    def add(self, rule: FaultRule) -> None:
        """Add a rule, which is tried after all earlier rules."""
        self._given.append(rule)
        self._asked.append(rule)

    def take(self, asked: LoggedRequest) -> FaultRule | None:
        """Let the first rule that applies take this request, and return the rule; None if no rule applies."""
        if not self._asked:
            return None
        if any(rule.is_over for rule in self._asked):
            self._given = [rule for rule in self._given if not rule.removed]
            self._asked = [rule for rule in self._asked if not rule.is_over]
        return next((rule for rule in self._asked if rule.take(asked)), None)

    def clear(self) -> None:
        """Remove all rules, thaw all brokers and resume all partitions."""
        for rule in self._given:
            rule.remove()
        self._given.clear()
        self._asked.clear()
        for node in list(self._frozen):
            self.thaw(node)
        for topic, partition in list(self._paused):
            self.resume(topic, partition)

    def check(self) -> None:
        """Raise UnusedFaultRules if there is a rule that was not removed and is not met."""
        unmet = [rule for rule in self._given if not rule.removed and not rule.is_met]
        if unmet:
            raise UnusedFaultRules("fault rules were applied less often than planned: " + "; ".join(map(repr, unmet)))

    # --- frozen nodes and paused partitions ------------------------------------------------------------------------

    def freeze(self, node: int) -> None:
        """Keep a broker from handling and answering requests."""
        self._frozen.setdefault(node, anyio.Event())

    def thaw(self, node: int) -> None:
        """Let a frozen broker continue."""
        event = self._frozen.pop(node, None)
        if event is not None:
            event.set()

    async def thawed(self, node: int) -> None:
        """Wait until this broker is not frozen."""
        while (event := self._frozen.get(node)) is not None:
            await event.wait()

    def pause(self, topic: str, partition: int) -> None:
        """Pause reads and writes of a partition."""
        self._paused.setdefault((topic, partition), anyio.Event())

    def resume(self, topic: str, partition: int) -> None:
        """Resume reads and writes of a partition."""
        event = self._paused.pop((topic, partition), None)
        if event is not None:
            event.set()

    @property
    def has_paused(self) -> bool:
        """Whether a partition is paused."""
        return bool(self._paused)

    def is_paused(self, topic: str, partition: int) -> bool:
        """Return whether this partition is paused."""
        return (topic, partition) in self._paused

    async def resumed(self, asked: LoggedRequest) -> None:
        """Wait until no partition in this request is paused."""
        while self._paused:
            waits = [event for partition, event in self._paused.items() if partition in asked.targets.partitions]
            if not waits:
                return
            await waits[0].wait()
