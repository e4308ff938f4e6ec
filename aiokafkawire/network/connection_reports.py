"""Reports what happens on one connection to the observers: its beginning, its requests, throttling and its end."""

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import KafkaError
from ..event_log import TroubleLog
from ..notes import ConnectionApi
from ..observe import ConnectionClosed, ConnectionFailed, ConnectionOpened, Observers, RequestEnded, Throttled
from ..protocol.schema import Request
from ..protocol.throttling import leading_throttle_ms, throttle_leads
from ..types import Address
from .connection_protocol import ResponseHandler

__all__ = ("ConnectionReports", "ObservedRequest")


class ConnectionReports:
    """The reports of one connection. Without observers nothing is reported, and no object is made.

    Args:
        observers: the objects to notify.
        at: the broker's address.
        lane: what the connection is for.
        node_ids: the ids of the known brokers, by address.
        now: returns the time in seconds.
        throttling: the log of brokers that throttle the client, if they are logged.
    """

    __slots__ = (
        "_at",
        "_broker",
        "_kinds",
        "_lane",
        "_node_ids",
        "_throttling",
        "now",
        "observers",
        "throttle_seconds",
    )

    def __init__(
        self,
        observers: Observers,
        at: Address,
        lane: str,
        node_ids: Mapping[Address, int],
        now: Callable[[], float],
        throttling: TroubleLog | None = None,
    ) -> None:
        self._throttling = throttling
        self.observers: Observers = observers
        self._at, self._lane, self._node_ids = at, lane, node_ids
        self._broker = str(at)
        self._kinds: dict[tuple[type[Request[Any]], int], ConnectionApi] = {}
        self.now: Callable[[], float] = now
        """Returns the time in seconds."""
        self.throttle_seconds: float = 0.0
        """The throttle time of the last response that was decoded while its request ended."""

    @property
    def _node_id(self) -> int | None:
        return self._node_ids.get(self._at)

    def opened(self, seconds: float) -> None:
        """Report that the connection was opened, in so many seconds."""
        if (notify := self.observers.connection_opened) is not None:
            notify(ConnectionOpened(broker=self._broker, node_id=self._node_id, lane=self._lane, seconds=seconds))

    def failed(self, seconds: float, error: KafkaError) -> None:
        """Report that the connection could not be opened."""
        if (notify := self.observers.connection_failed) is not None:
            broker, node_id, lane = self._broker, self._node_id, self._lane
            notify(ConnectionFailed(broker=broker, node_id=node_id, lane=lane, seconds=seconds, error=error))

    def closed(self, error: KafkaError | None) -> None:
        """Report that the connection, which was open, has ended."""
        if (notify := self.observers.connection_closed) is not None:
            notify(ConnectionClosed(broker=self._broker, node_id=self._node_id, lane=self._lane, error=error))

    def throttled(self, api: str, seconds: float) -> None:
        """Report that the response to a request names a throttle time."""
        self.throttle_seconds = seconds
        if self._throttling is not None:
            message = "broker %(broker)s throttles %(api)s for %(delay).1f s, since the client has exceeded a quota"
            self._throttling.failed((self._broker, api), message, broker=self._broker, api=api, delay=seconds)
        if (notify := self.observers.throttled) is not None:
            notify(Throttled(broker=self._broker, node_id=self._node_id, api=api, seconds=seconds))

    @property
    def has_throttled(self) -> bool:
        """Whether a throttling was logged whose end may have to be logged."""
        return bool(self._throttling)

    def not_throttled(self, api: str) -> None:
        """Log the end of a throttling that was logged."""
        if self._throttling is not None:
            message = "broker %(broker)s throttles %(api)s no more"
            self._throttling.ended((self._broker, api), message, broker=self._broker, api=api)

    def request(
        self, handler: ResponseHandler | None, request: type[Request[Any]], spoken: int, called_at: float
    ) -> "ObservedRequest | None":
        """Return the object that reports this request's end; None if notes suffice, or nothing is reported.

        Observers of requests, and requests without a response, wait for the write itself. For notes a request begins
        when its frame is made, since the write nearly always follows.

        Args:
            handler: receives the response; None if the broker sends none.
            request: the request's type.
            spoken: the request's version.
            called_at: the time of the call that sends the request.
        """
        observers = self.observers
        if observers.request_ended is None and (handler is not None or observers.note_request is None):
            return None
        return ObservedRequest(self, self.kind(request, spoken), handler, called_at)

    def kind(self, request: type[Request[Any]], spoken: int) -> ConnectionApi:
        """Return what all requests of this type and version have in common."""
        kind = self._kinds.get((request, spoken))
        if kind is None:
            api, leads = request.__name__.removesuffix("Request"), throttle_leads(request.response, spoken)
            kind = ConnectionApi(self._lane, api, spoken, self._at, self._node_ids, leads)
            self._kinds[request, spoken] = kind
        return kind

    def resolve(
        self,
        kind: ConnectionApi,
        sent_bytes: int,
        sent_at: float,
        handler: ResponseHandler,
        frame: bytes,
        position: int,
    ) -> None:
        """Pass a response on, and take a note of its request."""
        now, self.throttle_seconds = self.now(), 0.0
        handler.resolve(frame, position)
        throttle = self.throttle_seconds
        if kind.throttle_leads and not throttle:
            throttle = leading_throttle_ms(frame, position) / 1000
        if (note := self.observers.note_request) is not None:
            note((kind, sent_bytes, len(frame), now - sent_at, throttle, None, now))

    def fail(
        self, kind: ConnectionApi, sent_bytes: int, sent_at: float, handler: ResponseHandler, error: KafkaError
    ) -> None:
        """Pass the error of a request on, and take a note of it."""
        now = self.now()
        handler.fail(error)
        if (note := self.observers.note_request) is not None:
            note((kind, sent_bytes, 0, now - sent_at, 0.0, error, now))

    def ended(
        self,
        request: "ObservedRequest",
        received_bytes: int,
        throttle_seconds: float,
        error: KafkaError | None,
        now: float,
    ) -> None:
        """Report the end of a request at the time ``now``."""
        kind, sent_bytes, sent_at = request.kind, request.sent_bytes, request.sent_at
        seconds = 0.0 if sent_at is None else now - sent_at
        observers = self.observers
        if (note := observers.note_request) is not None:
            note((kind, sent_bytes, received_bytes, seconds, throttle_seconds, error, now))
        if (notify := observers.request_ended) is not None:
            notify(
                RequestEnded(
                    broker=self._broker,
                    node_id=kind.node_id,
                    lane=kind.lane,
                    api=kind.api,
                    version=kind.version,
                    sent_bytes=sent_bytes,
                    received_bytes=received_bytes,
                    queued_seconds=(now if sent_at is None else sent_at) - request.called_at,
                    seconds=seconds,
                    throttle_seconds=throttle_seconds,
                    error=error,
                )
            )


class ObservedRequest:
    """A response handler that passes the response on to another, if there is one, and reports the request's end."""

    __slots__ = ("_reports", "called_at", "handler", "kind", "sent_at", "sent_bytes")

    sent_bytes: int

    def __init__(
        self,
        reports: ConnectionReports,
        kind: ConnectionApi,
        handler: ResponseHandler | None,
        called_at: float,
    ) -> None:
        self._reports = reports
        self.kind: ConnectionApi = kind
        self.handler: ResponseHandler | None = handler
        """Receives the response; None if the broker sends none."""
        self.called_at: float = called_at
        self.sent_at: float | None = None
        """When the request's write began; None if it has not begun yet."""

    def sent(self) -> None:
        """Take notice that the write of the request begins; a request without a response ends now."""
        now = self.sent_at = self._reports.now()
        if self.handler is None:
            self._reports.ended(self, 0, 0.0, None, now)

    def resolve(self, frame: bytes, position: int) -> None:
        """Pass the response on."""
        reports = self._reports
        now, reports.throttle_seconds = reports.now(), 0.0
        if self.handler is not None:
            self.handler.resolve(frame, position)
        throttle = reports.throttle_seconds
        if not throttle and self.kind.throttle_leads:
            throttle = leading_throttle_ms(frame, position) / 1000
        reports.ended(self, len(frame), throttle, None, now)

    def fail(self, error: KafkaError) -> None:
        """Pass the error on."""
        now = self._reports.now()
        if self.handler is not None:
            self.handler.fail(error)
        self._reports.ended(self, 0, 0.0, error, now)
