"""What a test tells a running broker to do, beside answering as Kafka does: the part of Broker about that."""

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
    """Orders, the journal, and nodes and partitions that stand still; :class:`~.broker.Broker` has all of it."""

    _cluster: ClusterState
    _servers: Mapping[int, NodeServer]

    @property
    def requests(self) -> RequestLog:
        """Every request that was received, since the broker was opened."""
        return self._cluster.requests

    @property
    def orders(self) -> list[FaultRule]:
        """All orders that were given, and not taken back."""
        return [order for order in self._cluster.orders if not order.removed]

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
        """Order what to do with certain requests; see :mod:`aiokafkawire.testing.faults.rules` for the rules.

        Args:
            api: which API; None for any.
            answer: an error code, which goes where the API puts errors: with ``topic`` or ``partition`` only there, and
                the rest of the request is handled; or a response as it is, without handling the request; or a function
                that is given the request and the true answer, and returns the answer.
            drop: close the connection, before handling the request or after; then the answer is lost.
            swallow: answer nothing to it, and nothing after it on this connection.
            cut: send half of the answer's frame, and close the connection. A request without an answer, as with acks=0,
                goes by and does not count; so with ``corrupt``.
            corrupt: send the answer with a wrong byte: the one at this index in the frame, behind its size, negative
                from the end; "records" for one in the first record batch of the topic and partition that are
                chosen, so that its CRC is wrong: an answer without such records goes by and does not count.
            delay: seconds before the request is handled.
            delay_answer: seconds before the answer is sent.
            times: how often; None for ever.
            after: how many such requests are to pass before.
            **which: ``node``, ``client_id``, ``version``, ``topic``, ``partition``, ``group``, ``transactional_id``,
                and ``where``, a function of the request: see :class:`~aiokafkawire.testing.faults.request_log.Which`.

        Returns:
            The order: ``count``, ``remove()``, ``await met()``.

        Raises:
            ValueError: it contradicts itself, says nothing, the response does not belong to the API, or there is no
                such node.
            TypeError: there is no such selector, or the API or the answer is of another kind.
        """
        action = Action(
            answer=answer, drop=drop, swallow=swallow, cut=cut, corrupt=corrupt, delay=delay, delay_answer=delay_answer
        )
        order = FaultRule(self._selector(api, which), action, times=times, after=after)
        self._cluster.orders.add(order)
        return order

    def hold(
        self,
        api: ApiKey | None,
        at: When = "before",
        *,
        times: int | None = None,
        after: int = 0,
        **which: Unpack[Which],
    ) -> Hold:
        """Hold certain requests, inside a context, until the test releases them; the others go on.

        Args:
            api: which API; None for any.
            at: before the request is handled, or after, and before it is answered.
            times: how many requests are held at most; None for all.
            after: how many such requests are to pass before.
            **which: as in :meth:`on`.

        Raises:
            ValueError: ``at``, ``times``, ``after`` or a selector makes no sense.
            TypeError: there is no such selector, or the API is no ApiKey.
        """
        return Hold(self._cluster.orders, self._selector(api, which), at, times, after)

    def _selector(self, api: ApiKey | None, which: Which) -> Selector:
        selector = Selector.made_of(api, which)
        there = [node.node_id for node in self._cluster.nodes]
        if selector.node is not None and selector.node not in there:
            raise ValueError(f"node={selector.node}: there are {', '.join(map(str, there))}")
        return selector

    def clear_orders(self) -> None:
        """Take all orders back, thaw all nodes and resume all partitions. What is held stays so until its release."""
        self._cluster.orders.clear()
        for partition in self._cluster.topics.partitions():
            self._cluster.changed(partition)

    def freeze_node(self, node_id: int) -> None:
        """Let a broker accept connections and read, and answer nothing, as a process that was stopped does.

        The cluster does not notice; ``fence_node`` makes it.

        Raises:
            KeyError: there is no such broker.
        """
        self._cluster.orders.freeze(self._cluster.node(node_id).node_id)

    def thaw_node(self, node_id: int) -> None:
        """Let a frozen broker go on, with what it was asked meanwhile.

        Raises:
            KeyError: there is no such broker.
        """
        self._cluster.orders.thaw(self._cluster.node(node_id).node_id)

    async def refuse_connections(self, node_id: int) -> None:
        """Take no more connections, and keep those that there are.

        Raises:
            KeyError: there is no such broker.
        """
        await self._servers[self._cluster.node(node_id).node_id].refuse()

    async def accept_connections(self, node_id: int) -> None:
        """Take connections again, at the address it had.

        Raises:
            KeyError: there is no such broker.
            OSError: its port was taken meanwhile.
        """
        await self._servers[self._cluster.node(node_id).node_id].accept()

    def pause_partition(self, topic: str, partition: int = 0) -> None:
        """Let fetches find nothing new in a partition, and produce requests to it wait.

        Raises:
            Refused: there is no such partition.
        """
        check_name("a topic's name", topic)
        check_index("a partition", partition)
        self._cluster.topics.partition(topic, partition)
        self._cluster.orders.pause(topic, partition)

    def resume_partition(self, topic: str, partition: int = 0) -> None:
        """Let records in and out again.

        Raises:
            Refused: there is no such partition.
        """
        check_name("a topic's name", topic)
        check_index("a partition", partition)
        found = self._cluster.topics.partition(topic, partition)
        self._cluster.orders.resume(topic, partition)
        self._cluster.changed(found)
