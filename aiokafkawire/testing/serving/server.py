"""One connection of a broker: frames in, requests handled one after the other, frames out."""

import logging
import ssl
from functools import partial
from struct import Struct
from typing import Any, Final

import anyio
import attrs
from anyio.abc import ByteStream

from ...errors import ErrorCode, WireError
from ...protocol.api import ApiKey, RequestHeader, request_header_version, response_header_version
from ...protocol.compiler import decode_prefix
from ...protocol.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from ...protocol.schema import Response
from ..access.gate import authorized
from ..cluster.api_error import Disconnect
from ..cluster.state import BrokerNode
from ..faults.interception import Ended, OutgoingResponse, exchange
from ..faults.request_log import LoggedRequest, RequestOutcome
from ..handlers.metadata import unsupported_api_versions
from ..handlers.quotas import throttled
from ..handlers.sasl import admit, bare_token
from ..security.authentication import MAX_TOKEN_FRAME
from .apis import APIS, TELEMETRY_APIS, Api
from .call import Blamed, Peer, ServerCall
from .frames import Frames, frame_of

__all__ = ("serve",)

_KEY_AND_VERSION: Final = Struct(">hh")
# An SSLError after the handshake means that the client sent bytes other than TLS; it ends the connection, too.
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, ssl.SSLError)

_log = logging.getLogger(__name__)


async def serve(node: BrokerNode, stream: ByteStream, peer: Peer) -> None:
    """Handle the requests of one connection in order, until it ends or fails.

    The stream is closed at the end. An unexpected exception of a handler is raised, with a note that names the request
    and the client.
    """
    frames = Frames(stream, node.cluster.settings.socket_request_max_bytes)
    node.connections[peer.host] += 1
    try:
        if node.connections[peer.host] > node.cluster.settings.max_connections_per_ip:
            raise Disconnect(
                f"{node.connections[peer.host]} connections from {peer.host} exceed max_connections_per_ip"
            )
        while (frame := await frames.next(None if peer.authenticated else MAX_TOKEN_FRAME)) is not None:
            await _serve_one(node, stream, peer, frame)
            if peer.login is not None and peer.login.failed is not None:
                raise Disconnect(peer.login.failed)
    except Disconnect as reason:
        _log.warning("node %d disconnects %s: %s", node.node_id, peer.name, reason)
    except Ended as end:
        _log.info("node %d: the response to %s is %s", node.node_id, peer.name, end.outcome)
        if end.outcome is RequestOutcome.SWALLOWED:
            await _forget(frames)
    except _GONE:
        _log.debug("node %d: %s disconnected", node.node_id, peer.name)
    finally:
        node.connections[peer.host] -= 1
        if not node.connections[peer.host]:
            del node.connections[peer.host]
        node.connection_closed(peer.number)
        with anyio.CancelScope(shield=True):  # closing takes no time, and must not be left half done
            await stream.aclose()


async def _forget(frames: Frames) -> None:
    """Read and discard all further requests: clients expect responses in order, so none can follow a suppressed one."""
    try:
        await frames.drain()
    except _GONE:
        return


@attrs.frozen
class _Received:
    """A parsed request, with its API, header and version."""

    api: Api
    header: RequestHeader
    version: int
    request: Any


async def _serve_one(node: BrokerNode, stream: ByteStream, peer: Peer, frame: bytes) -> None:
    """Parse one request, handle it and send the response, if any.

    Raises:
        Disconnect: no response is possible.
        Ended: a fault rule ended the exchange.
    """
    rules = node.cluster.fault_rules
    if peer.login is not None and peer.login.expects_bare_token:
        await rules.thawed(node.node_id)
        response = await bare_token(node, peer, frame)
        await stream.send(len(response).to_bytes(4) + response)
        return
    received = _read(node, frame)
    if received is None:
        return
    if isinstance(received, bytes):
        await rules.thawed(node.node_id)
        await stream.send(received)
        return
    requests, asked = node.cluster.requests, _asked(node, peer, received, len(frame))
    requests.add(asked)
    try:
        await _reply(ServerCall(node, peer, asked.version, asked.client_id), stream, received, asked)
    except Ended as end:
        requests.settle(asked, end.outcome, asked.response)
        raise
    except (*_GONE, Disconnect):
        raise
    except Exception as fault:
        description = f"{asked.api.name} v{asked.version}"
        fault.add_note(f"node {node.node_id}, {peer.name} (connection {peer.number}): {description}")
        raise
    finally:
        if asked.outcome is RequestOutcome.PENDING:
            requests.settle(asked, RequestOutcome.FAILED)


def _asked(node: BrokerNode, peer: Peer, received: _Received, size: int) -> LoggedRequest:
    return LoggedRequest(
        time=node.cluster.timers.now(),
        node=node.node_id,
        connection=peer.number,
        client_id=received.header.client_id,
        api=ApiKey(received.header.request_api_key),
        version=received.version,
        request=received.request,
        size=size,
        name_of=node.cluster.topic_name,
        session_of=node.sessions.read_by,
        share_session_of=node.share_sessions.read_by,
    )


async def _reply(call: ServerCall, stream: ByteStream, received: _Received, asked: LoggedRequest) -> None:
    requests, rules, version = call.cluster.requests, call.cluster.fault_rules, received.version
    await rules.thawed(asked.node)
    refused = await admit(call, received.request)  # fault rules apply to allowed requests only
    if refused is not None:
        outgoing = OutgoingResponse(refused)
    else:
        outgoing = await exchange(rules, asked, partial(_handle, received.api, call))
    response = outgoing.response
    if response is None:
        requests.settle(asked, RequestOutcome.UNANSWERED)
        await _mute(throttled(call, received.request, None, asked.size))
        return
    if isinstance(response, ApiVersionsResponse) and response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        version = 0  # a fault rule's response, in v0 as in _read
    pause = throttled(call, received.request, response, asked.size)
    head = response_header_version(received.api.request, version)
    data, outcome = outgoing.spoiled(frame_of(received.header.correlation_id, head, response, version))
    # The outcome is logged before the response is sent, so that a test whose client has the response finds the outcome.
    requests.settle(asked, outcome, response, len(data))
    try:
        await stream.send(data)
    except BaseException:
        asked.outcome = RequestOutcome.FAILED
        raise
    if outcome is RequestOutcome.CUT:
        raise Ended(outcome)
    await _mute(pause)


async def _mute(pause: int) -> None:
    """Let the client's next requests wait for so many ms (KIP-219)."""
    if pause:
        await anyio.sleep(pause / 1000)


async def _handle(api: Api, call: ServerCall, request: Any, blamed: Blamed | None = None) -> Response | None:
    if blamed is not None:
        call = attrs.evolve(call, blamed=blamed)
    return await authorized(api.handle, call, request)


def _read(node: BrokerNode, frame: bytes) -> _Received | bytes | None:
    """Parse a frame and return the request; None if this release ignores the request.

    For ApiVersions in an unknown version, return the frame of the response instead.

    Raises:
        Disconnect: the frame is invalid, or the API or its version is not served.
    """
    if len(frame) < _KEY_AND_VERSION.size:
        raise Disconnect(f"a request of {len(frame)} bytes is too short")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    api, served = APIS.get(key) or TELEMETRY_APIS.get(key), node.release.served.get(key)
    if api is None or served is None:
        if node.release.keeps_silent:
            return None
        raise Disconnect(f"API key {key} is not served")
    if version not in served:
        if key == ApiKey.API_VERSIONS:
            header, _ = _header(frame, request_header_version(ApiVersionsRequest, version))
            # Only this response has a version other than the request's: v0, which every client can read (KIP-511).
            return frame_of(header.correlation_id, 0, unsupported_api_versions(node), 0)
        if node.release.keeps_silent:
            return None
        raise Disconnect(f"{api.request.__name__} v{version} is not served; served: {served}")
    header, position = _header(frame, request_header_version(api.request, version))
    try:
        # Kafka ignores bytes after a request, and librdkafka's Metadata v13 has three.
        request, _ = decode_prefix(api.request, version, frame, position)
    except WireError as fault:
        raise Disconnect(str(fault)) from fault
    return _Received(api, header, version, request)


def _header(frame: bytes, version: int) -> tuple[RequestHeader, int]:
    try:
        return decode_prefix(RequestHeader, version, frame)
    except WireError as fault:
        raise Disconnect(str(fault)) from fault
