"""SaslHandshake and SaslAuthenticate, and the check that a client authenticates before it sends other requests."""

from typing import Final

from anyio import sleep

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ...protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ...protocol.schema import Request, Response
from ..cluster.api_error import ApiError, Disconnect
from ..cluster.state import BrokerNode
from ..faults.error_responses import refusal
from ..security.authentication import LoginFailed
from ..serving.call import Peer, ServerCall

__all__ = ("admit", "bare_token", "sasl_authenticate", "sasl_handshake")

_TOO_LATE: Final = "SaslAuthenticate request received after successful authentication"


async def admit(call: ServerCall, request: Request[Response]) -> Response | None:
    """Return None if the state of the client's authentication allows the request, or else an error response.

    Raises:
        Disconnect: the request is not allowed, and gets no response.
    """
    login = call.peer.login
    if login is None:
        return None
    try:
        login.admit(ApiKey(request.api_key), call.cluster.timers.now())
    except ApiError as refused:
        await _delay(call.node)
        return refusal(request, call.version, refused.code)
    except Disconnect:
        if not login.complete:
            await _delay(call.node)
        raise
    return None


async def sasl_handshake(call: ServerCall, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Return the enabled mechanisms, and whether the requested one is among them."""
    login = call.peer.login
    if login is None or not login.expects_handshake:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    error = ErrorCode.NONE
    if not login.handshake(request.mechanism, call.version):
        error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        await _delay(call.node)
    return SaslHandshakeResponse(error_code=error, mechanisms=login.mechanisms)


async def sasl_authenticate(call: ServerCall, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Return the mechanism's response to the client's token."""
    login = call.peer.login
    if login is None or not login.expects_token:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TOO_LATE, auth_bytes=b""
        )
    try:
        response, lifetime = login.answer(bytes(request.auth_bytes), call.cluster.timers.now())
    except LoginFailed as failure:
        await _delay(call.node)
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=login.why(failure), auth_bytes=b""
        )
    _remember(call.peer)
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE, error_message="", auth_bytes=response, session_lifetime_ms=lifetime
    )


async def bare_token(node: BrokerNode, peer: Peer, token: bytes) -> bytes:
    """Return the response to a token that was sent without a SaslAuthenticate request, as after SaslHandshake v0.

    Raises:
        Disconnect: authentication failed.
    """
    login = peer.login
    assert login is not None
    try:
        response, _ = login.answer(token, node.cluster.timers.now())
    except LoginFailed as failure:
        await _delay(node)
        raise Disconnect(f"authentication failed: {failure}") from failure
    _remember(peer)
    return response


def _remember(peer: Peer) -> None:
    assert peer.login is not None
    if peer.login.user is not None:
        peer.principal = f"User:{peer.login.user}"


async def _delay(node: BrokerNode) -> None:
    """Delay the response to a failed authentication, to slow down the guessing of passwords (KIP-306)."""
    await sleep(node.cluster.settings.connection_failed_authentication_delay_ms / 1000)
