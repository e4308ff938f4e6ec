"""Reports what happens on one connection to the observers: its beginning, its requests, throttling and its end."""

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import KafkaError
from ..event_log import TroubleLog
from ..observe import ConnectionClosed, ConnectionFailed, ConnectionOpened, Observers, RequestEnded, Throttled
from ..protocol.schema import Request
from ..protocol.throttling import leading_throttle_ms
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

    __slots__ = ("_at", "_broker", "_lane", "_node_ids", "_observers", "_throttling", "now", "throttle_seconds")

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
        self._observers, self._at, self._lane, self._node_ids = observers, at, lane, node_ids
        self._broker = str(at)
        self.now: Callable[[], float] = now
        """Returns the time in seconds."""
        self.throttle_seconds: float = 0.0
        """The throttle time of the last response that was decoded while its request ended."""

    @property
    def _node_id(self) -> int | None:
        return self._node_ids.get(self._at)

    def opened(self, seconds: float) -> None:
        """Report that the connection was opened, in so many seconds."""
        if (notify := self._observers.connection_opened) is not None:
            notify(ConnectionOpened(broker=self._broker, node_id=self._node_id, lane=self._lane, seconds=seconds))

    def failed(self, seconds: float, error: KafkaError) -> None:
        """Report that the connection could not be opened."""
        if (notify := self._observers.connection_failed) is not None:
            broker, node_id, lane = self._broker, self._node_id, self._lane
            notify(ConnectionFailed(broker=broker, node_id=node_id, lane=lane, seconds=seconds, error=error))

    def closed(self, error: KafkaError | None) -> None:
        """Report that the connection, which was open, has ended."""
        if (notify := self._observers.connection_closed) is not None:
            notify(ConnectionClosed(broker=self._broker, node_id=self._node_id, lane=self._lane, error=error))

    def throttled(self, api: str, seconds: float) -> None:
        """Report that the response to a request names a throttle time."""
        self.throttle_seconds = seconds
        if self._throttling is not None:
            message = "broker %(broker)s throttles %(api)s for %(delay).1f s, since the client has exceeded a quota"
            self._throttling.failed((self._broker, api), message, broker=self._broker, api=api, delay=seconds)
        if (notify := self._observers.throttled) is not None:
            notify(Throttled(broker=self._broker, node_id=self._node_id, api=api, seconds=seconds))

    def not_throttled(self, api: str) -> None:
        """Log the end of a throttling that was logged."""
        if self._throttling:
            message = "broker %(broker)s throttles %(api)s no more"
            self._throttling.ended((self._broker, api), message, broker=self._broker, api=api)

    def request(
        self, handler: ResponseHandler | None, request: type[Request[Any]], spoken: int, called_at: float
    ) -> "ObservedRequest | None":
        """Return the object that reports this request's end; None without observers of requests.

        Args:
            handler: receives the response; None if the broker sends none.
            request: the request's type.
            spoken: the request's version.
            called_at: the time of the call that sends the request.
        """
        if self._observers.request_ended is None and self._observers.later is None:
            return None
        return ObservedRequest(self, handler, request, spoken, called_at)

    def ended(
        self, request: "ObservedRequest", seconds: float, throttle: float, error: KafkaError | None, now: float
    ) -> None:
        """Report the end of a request at the time ``now``, ``seconds`` after it was sent."""
        request.handler = None  # metrics may keep the request for a while, and no response
        observers = self._observers
        if observers.later is not None:
            observers.later(self._event, (request, seconds, throttle, error), now)
        if observers.request_ended is not None:
            observers.request_ended(self._event(request, seconds, throttle, error))

    def _event(
        self, request: "ObservedRequest", seconds: float, throttle: float, error: KafkaError | None
    ) -> RequestEnded:
        return RequestEnded(
            broker=self._broker,
            node_id=self._node_ids.get(self._at),
            lane=self._lane,
            api=request.request.__name__.removesuffix("Request"),
            version=request.version,
            sent_bytes=request.sent_bytes,
            received_bytes=request.received_bytes,
            queued_seconds=request.queued_seconds,
            seconds=seconds,
            throttle_seconds=throttle,
            error=error,
        )


class ObservedRequest:
    """A response handler that passes the response on to another, if there is one, and reports the request's end."""

    __slots__ = (
        "_called_at",
        "_has_response",
        "_reports",
        "_sent_at",
        "handler",
        "queued_seconds",
        "received_bytes",
        "request",
        "sent_bytes",
        "version",
    )

    def __init__(
        self,
        reports: ConnectionReports,
        handler: ResponseHandler | None,
        request: type[Request[Any]],
        version: int,
        called_at: float,
    ) -> None:
        self._reports, self._called_at = reports, called_at
        self._sent_at: float | None = None
        self._has_response = handler is not None
        self.handler: ResponseHandler | None = handler
        """Receives the response; None if the broker sends none, and after the end."""
        self.request: type[Request[Any]] = request
        self.version: int = version
        self.sent_bytes: int = 0
        self.received_bytes: int = 0
        self.queued_seconds: float = 0.0
        """The time between the call and the beginning of the request's write, or its end if it was not written."""

    def sent(self) -> None:
        """Take notice that the write of the request begins; a request without a response ends now."""
        now = self._sent_at = self._reports.now()
        self.queued_seconds = now - self._called_at
        if not self._has_response:
            self._reports.ended(self, 0.0, 0.0, None, now)

    def resolve(self, frame: bytes, position: int) -> None:
        """Pass the response on."""
        now, self._reports.throttle_seconds = self._reports.now(), 0.0
        self.received_bytes = len(frame)
        if self.handler is not None:
            self.handler.resolve(frame, position)
        throttle = self._reports.throttle_seconds
        throttle = throttle or leading_throttle_ms(self.request.response, self.version, frame, position) / 1000
        self._reports.ended(self, self._seconds(now), throttle, None, now)

    def fail(self, error: KafkaError) -> None:
        """Pass the error on."""
        now = self._reports.now()
        if self._sent_at is None:
            self.queued_seconds = now - self._called_at
        if self.handler is not None:
            self.handler.fail(error)
        self._reports.ended(self, self._seconds(now), 0.0, error, now)

    def _seconds(self, now: float) -> float:
        return 0.0 if self._sent_at is None else now - self._sent_at
