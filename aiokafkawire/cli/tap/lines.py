"""The lines that the tap prints: one for each request, and one for the end of each request."""

import json
from datetime import UTC, datetime
from typing import Any

from ...testing.faults.request_log import RequestOutcome
from ...testing.tap.tap_events import TappedRequest, TappedResponse

__all__ = ("json_line", "text_line")


def text_line(event: TappedRequest | TappedResponse) -> str:
    """Return the line for a person; the times of day are those of this machine's time zone."""
    if isinstance(event, TappedRequest):
        return "  ".join((*_head(event.time, event, ">"), _bytes(event.size), *_note(event.note)))
    request = event.request
    parts = [*_head(event.time, request, "<")]
    has_response = event.outcome in (RequestOutcome.ANSWERED, RequestOutcome.CORRUPTED, RequestOutcome.CUT)
    parts.append(_bytes(event.size) if has_response else "no response")
    parts.append(f"{event.seconds * 1000:.1f} ms")
    parts += [name if number == 1 else f"{name} x{number}" for name, number in event.errors.items()]
    if event.outcome is not RequestOutcome.ANSWERED:
        parts.append(event.outcome.value)
    if event.fault:
        parts.append(f"fault: {event.fault}")
    return "  ".join((*parts, *_note(event.note)))


def json_line(event: TappedRequest | TappedResponse) -> str:
    """Return the line for a program: a JSON object. Its keys are listed in docs/tap.md."""
    request = event if isinstance(event, TappedRequest) else event.request
    described: dict[str, Any] = {
        "event": "request" if isinstance(event, TappedRequest) else "response",
        "time": datetime.fromtimestamp(event.time, UTC).isoformat(timespec="microseconds"),
        "connection": request.connection,
        "client": request.client,
        "node_id": request.node,
        "api_name": request.api,
        "api_key": request.api_key,
        "api_version": request.version,
        "correlation_id": request.correlation_id,
        "client_id": request.client_id,
        "size_bytes": event.size,
    }
    if isinstance(event, TappedResponse):
        described |= {
            "duration_ms": round(event.seconds * 1000, 3),
            "errors": dict(event.errors),
            "outcome": event.outcome.value,
            "rewritten": event.rewritten,
            "fault": event.fault or None,
        }
    described["note"] = event.note or None
    return json.dumps(described)


def _head(time: float, request: TappedRequest, arrow: str) -> tuple[str, ...]:
    """Return the time, the connection, the broker, the API, the correlation id and the client id."""
    clock = datetime.fromtimestamp(time).astimezone().strftime("%H:%M:%S.%f")[:-3]
    node = "?" if request.node is None else str(request.node)
    sides = f"{request.connection:>3} {arrow} {node}"
    if request.api_key < 0:
        return clock, sides, request.api
    client = "no client id" if request.client_id is None else json.dumps(request.client_id)
    return clock, sides, f"{request.api} v{request.version}", f"id {request.correlation_id}", client


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size} bytes"


def _note(note: str) -> tuple[str, ...]:
    return (f"({note})",) if note else ()
