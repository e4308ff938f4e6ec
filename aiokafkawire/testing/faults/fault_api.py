"""The methods of Broker that inject faults."""

from collections.abc import Mapping
from typing import Literal, Unpack

from ...protocol.api import ApiKey
from ..broker_options import check_index, check_name
from ..cluster.state import ClusterState
from ..serving.listening import NodeServer
from .request_log import RequestLog, Selector, Which
from .rules import Action, Answer, FaultRule, Hold, When

__all__ = ("Faults",)


class Faults:
    """The part of :class:`~.broker.Broker` for fault rules, the request log, frozen brokers and paused partitions."""

    _cluster: ClusterState
    _servers: Mapping[int, NodeServer]

    @property
    def requests(self) -> RequestLog:
        """The log of the requests received since the broker was opened."""
        return self._cluster.requests

    @property
    def orders(self) -> list[FaultRule]:
        """All fault rules that were added and not removed."""
        return [rule for rule in self._cluster.fault_rules if not rule.removed]

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
        self._cluster.fault_rules.add(rule)
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
        return Hold(self._cluster.fault_rules, self._selector(api, which), at, times, after)

    def _selector(self, api: ApiKey | None, which: Which) -> Selector:
        selector = Selector.made_of(api, which)
        known = [node.node_id for node in self._cluster.nodes]
        if selector.node is not None and selector.node not in known:
            raise ValueError(f"no node={selector.node}; known: {', '.join(map(str, known))}")
        return selector

    def clear_orders(self) -> None:
        """Remove all fault rules, thaw brokers and resume partitions. Held requests stay held until released."""
        self._cluster.fault_rules.clear()
        for partition in self._cluster.topics.partitions():
            self._cluster.changed(partition)

    def freeze_node(self, node_id: int) -> None:
        """Let a broker accept connections and read requests but answer none, as a suspended process does.

        The broker still leads its partitions; ``fence_node`` lets other brokers take over.

        Raises:
            KeyError: there is no such broker.
        """
        self._cluster.fault_rules.freeze(self._cluster.node(node_id).node_id)

    def thaw_node(self, node_id: int) -> None:
        """Let a frozen broker continue with the requests that have arrived. Raises as :meth:`freeze_node`."""
        self._cluster.fault_rules.thaw(self._cluster.node(node_id).node_id)

    async def refuse_connections(self, node_id: int) -> None:
        """Refuse new connections to a broker and keep the existing ones.

        Raises:
            KeyError: there is no such broker.
        """
        await self._servers[self._cluster.node(node_id).node_id].refuse()

    async def accept_connections(self, node_id: int) -> None:
        """Let a broker accept connections again, at its previous address.

        Raises:
            KeyError: there is no such broker.
            OSError: another process took the broker's port.
        """
        await self._servers[self._cluster.node(node_id).node_id].accept()

    def pause_partition(self, topic: str, partition: int = 0) -> None:
        """Let fetches return no records of a partition, and let produce requests wait, until :meth:`resume_partition`.

        Raises:
            ApiError: there is no such partition.
        """
        check_name("a topic's name", topic)
        check_index("a partition", partition)
        self._cluster.topics.partition(topic, partition)
        self._cluster.fault_rules.pause(topic, partition)

    def resume_partition(self, topic: str, partition: int = 0) -> None:
        """Let fetches and produce requests of a paused partition continue. Raises as :meth:`pause_partition`."""
        check_name("a topic's name", topic)
        check_index("a partition", partition)
        found = self._cluster.topics.partition(topic, partition)
        self._cluster.fault_rules.resume(topic, partition)
        self._cluster.changed(found)
