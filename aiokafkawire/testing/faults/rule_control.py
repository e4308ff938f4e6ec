"""The methods that add fault rules and return the request log, for brokers and for taps."""

from collections.abc import Sequence
from typing import Literal, Unpack

from ...protocol.api import ApiKey
from .request_log import RequestLog, Selector, Which
from .rules import Action, Answer, FaultRule, FaultRules, Hold, When

__all__ = ("RuleControl",)


class RuleControl:
    """The part of :class:`~.broker.Broker` and :class:`~.tap.tap.Tap` for fault rules and the request log."""

    @property
    def _fault_rules(self) -> FaultRules:
        """The rules that apply to requests."""
        raise NotImplementedError

    @property
    def _known_nodes(self) -> Sequence[int] | None:
        """The ids of all brokers; None if some brokers may be unknown."""
        raise NotImplementedError

    @property
    def requests(self) -> RequestLog:
        """The log of the requests received since the broker was opened."""
        raise NotImplementedError

    @property
    def orders(self) -> list[FaultRule]:
        """All fault rules that were added and not removed."""
        return [rule for rule in self._fault_rules if not rule.removed]

    def on(
        self,
        api: ApiKey | None,
        *,
        answer: Answer | None = None,
        drop: When | None = None,
        swallow: When | None = None,
        cut: bool = False,
        corrupt: int | Literal["records"] | None = None,
        delay: float = 0.0,
        delay_answer: float = 0.0,
        times: int | None = 1,
        after: int = 0,
        **which: Unpack[Which],
    ) -> FaultRule:
        """Add a fault rule for certain requests; see :mod:`aiokafkawire.testing.faults.rules`.

        Args:
            api: the API; None for any.
            answer: an error code, a response or a function. An error is for the selected ``topic`` or ``partition``
                (the rest of the request is handled), or without these selectors for the whole request. A response is
                sent without handling the request. A function gets the request and the broker's response, and returns
                the response to send, or None to send none.
            drop: close the connection instead of sending a response, "before" or "after" the request is handled.
            swallow: send no response to this request, and ignore all later requests on the connection. With "after",
                this request is still handled; with "before", it is not.
            cut: send half of the response frame, and close the connection. The rule passes over requests without a
                response, such as Produce with acks=0; this holds for ``corrupt``, too.
            corrupt: send the response with a wrong byte: an index in the frame after the size field, negative from the
                end; or "records" for a byte in the first record batch of the selected topic and partition, so that the
                batch's CRC is wrong. The rule passes over responses without such records.
            delay: the delay before the request is handled, in seconds.
            delay_answer: the delay before the response is sent, in seconds.
            times: how many requests the rule applies to; None for no limit.
            after: how many matching requests to let through first.
            **which: ``node``, ``client_id``, ``version``, ``topic``, ``partition``, ``group``, ``transactional_id``,
                and ``where``, a function of the request: see :class:`~aiokafkawire.testing.faults.request_log.Which`.

        Returns:
            The rule, with ``count``, ``remove()`` and ``await met()``.

        Raises:
            ValueError: arguments are invalid, contradictory or missing, the response belongs to another API, or there
                is no such broker.
            TypeError: a selector is unknown, or the API or the answer has a wrong type.
        """
        action = Action(
            answer=answer, drop=drop, swallow=swallow, cut=cut, corrupt=corrupt, delay=delay, delay_answer=delay_answer
        )
        rule = FaultRule(self._selector(api, which), action, times=times, after=after)
        self._fault_rules.add(rule)
        return rule

    def hold(
        self,
        api: ApiKey | None,
        at: When = "before",
        *,
        times: int | None = None,
        after: int = 0,
        **which: Unpack[Which],
    ) -> Hold:
        """Return a context that holds certain requests until the test releases them; other requests continue.

        Args:
            api: the API; None for any.
            at: when to hold a request: "before" it is handled, or "after", before the response is sent.
            times: how many requests to hold in total; None for no limit.
            after: how many matching requests to let through first.
            **which: as in :meth:`on`.

        Raises:
            ValueError: ``at``, ``times``, ``after`` or a selector is invalid.
            TypeError: a selector is unknown, or the API is not an ApiKey.
        """
        return Hold(self._fault_rules, self._selector(api, which), at, times, after)

    def _selector(self, api: ApiKey | None, which: Which) -> Selector:
        selector, known = Selector.made_of(api, which), self._known_nodes
        if known is not None and selector.node is not None and selector.node not in known:
            raise ValueError(f"no node={selector.node}; known: {', '.join(map(str, known))}")
        return selector
