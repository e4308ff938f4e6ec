"""The events of a tap: requests and responses that it passes on, and notices about connections and listeners."""

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

import attrs

from ...error_codes import ErrorCode
from ...protocol.schema import Request, Response
from ..faults.error_responses import error_places
from ..faults.request_log import RequestOutcome

__all__ = ("TapEvent", "TapNotice", "TappedRequest", "TappedResponse", "errors_in")


@attrs.frozen(kw_only=True)
class TappedRequest:
    """A request that a client has sent."""

    time: float
    """The time of arrival, in seconds since the epoch."""
    connection: int
    """The number of the client's connection, counted from 1."""
    node: int | None
    """The broker's id; None at the first address until the broker's id is known."""
    client: str
    """The client's address."""
    api: str
    """The API's name in Kafka's documentation; ``API 99`` for an unknown one."""
    api_key: int
    """The API's number; -1 if the request has no header."""
    version: int
    correlation_id: int
    client_id: str | None
    size: int
    """The size of the frame, without its size field, in bytes."""
    note: str = ""
    """The reason why the request is passed on without being decoded; empty for a decoded one."""
    message: Request[Response] | None = attrs.field(default=None, repr=False)
    """The decoded request."""


@attrs.frozen(kw_only=True)
class TappedResponse:
    """The end of a request: the response that its client gets, or none."""

    time: float
    """The time at which the client gets the response, in seconds since the epoch."""
    request: TappedRequest
    size: int
    """The size of the frame, without its size field, in bytes; 0 if the client gets none."""
    seconds: float
    """The time since the request's arrival, delays of fault rules included."""
    outcome: RequestOutcome
    errors: Mapping[str, int] = attrs.field(factory=dict)
    """The error codes in the response by name, and how often it has each."""
    rewritten: bool = False
    """Whether the response differs from the broker's, in addresses or by a fault rule."""
    fault: str = ""
    """The fault rule that was applied; empty if there was none."""
    note: str = ""
    """The reason why the response is passed on without being decoded; empty for a decoded one."""
    message: Response | None = attrs.field(default=None, repr=False)
    """The decoded response."""


@attrs.frozen
class TapNotice:
    """A change that concerns no single request, such as a broker that cannot be reached."""

    text: str


TapEvent: TypeAlias = TappedRequest | TappedResponse | TapNotice


def errors_in(response: Response, version: int) -> dict[str, int]:
    """Return the names of the error codes in a response, and how often it has each."""
    codes = (getattr(place.struct, place.field) for place in error_places(response, version))
    counts = Counter(code for code in codes if code)
    return {_name(code): count for code, count in counts.items()}


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
