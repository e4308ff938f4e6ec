"""The reports of one connection of a tap: the request log's entries, and the events for the tap's user."""

from collections.abc import Callable
from functools import partial
from time import time

import anyio
import attrs

from ...protocol.api import ApiKey
from ...types import Address
from ..faults.request_log import LoggedRequest, RequestLog, RequestOutcome
from ..faults.rules import FaultRule
from .listeners import TapListener
from .observed_cluster import ObservedCluster
from .request_frames import ParsedRequest, ParsedResponse
from .tap_events import TapEvent, TapNotice, TappedRequest, TappedResponse, errors_in

__all__ = ("ExchangeReports", "TapExchange")


@attrs.define(eq=False)
class TapExchange:
    """A request on its way through a tap, and the response of the broker.

    ``arrived`` is set if the response is for the task that applies a fault rule, and not for the client at once.
    """

    event: TappedRequest
    asked: LoggedRequest | None
    """The request's entry in the request log; None for a request that cannot be decoded."""
    started: float
    """The time of arrival, by the event loop's clock, in seconds."""
    arrived: anyio.Event | None = None
    response: ParsedResponse | None = None
    is_settled: bool = False


@attrs.frozen(eq=False, kw_only=True)
class ExchangeReports:
    """Reports the requests of one connection, and how each of them ends."""

    requests: RequestLog
    cluster: ObservedCluster
    emit: Callable[[TapEvent], None]
    listener: TapListener
    connection: int
    """The number of the connection."""
    client: Address

    @property
    def node(self) -> int:
        """The broker's id; -1 if it is not known."""
        return -1 if self.listener.node_id is None else self.listener.node_id

    def arrived(self, request: ParsedRequest) -> TapExchange:
        """Report a request, and add it to the request log if it is decoded."""
        event = TappedRequest(
            time=time(),
            connection=self.connection,
            node=self.listener.node_id,
            client=str(self.client),
            api=request.api,
            api_key=request.api_key,
            version=request.version,
            correlation_id=request.correlation_id,
            client_id=request.client_id,
            size=len(request.frame),
            note=request.note,
            message=request.message,
        )
        exchange = TapExchange(event, self._logged(request), anyio.current_time())
        self.emit(event)
        return exchange

    def settle(
        self,
        exchange: TapExchange,
        outcome: RequestOutcome,
        response: ParsedResponse | None = None,
        size: int = 0,
        rule: FaultRule | None = None,
    ) -> None:
        """Report the end of a request, unless it was reported.

        Args:
            exchange: the request.
            outcome: how it ends.
            response: the response that the client gets, if any.
            size: the size of its frame, in bytes.
            rule: the fault rule that was applied, if any.
        """
        if exchange.is_settled:
            return
        exchange.is_settled = True
        message = None if response is None else response.message
        if exchange.asked is not None:
            self.requests.settle(exchange.asked, outcome, message, size)
        self.emit(
            TappedResponse(
                time=time(),
                request=exchange.event,
                size=size,
                seconds=anyio.current_time() - exchange.started,
                outcome=outcome,
                errors={} if message is None or response is None else errors_in(message, response.version),
                rewritten=response is not None and response.changed,
                fault="" if rule is None else str(rule.action),
                note="" if response is None else response.note,
                message=message,
            )
        )

    def notice(self, text: str) -> None:
        """Report a change that concerns the connection as a whole."""
        self.emit(TapNotice(f"connection {self.connection} of {self.client}: {text}"))

    def _logged(self, request: ParsedRequest) -> LoggedRequest | None:
        if request.message is None:
            return None
        node = self.node
        logged = LoggedRequest(
            time=anyio.current_time(),
            node=node,
            connection=self.connection,
            client_id=request.client_id,
            api=ApiKey(request.api_key),
            version=request.version,
            request=request.message,
            size=len(request.frame),
            name_of=self.cluster.name_of,
            session_of=partial(self.cluster.session, node),
            share_session_of=partial(self.cluster.share_session, node),
        )
        self.requests.add(logged)
        return logged
