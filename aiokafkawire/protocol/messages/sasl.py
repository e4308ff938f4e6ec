"""Authenticating a connection.

SaslHandshake picks the mechanism, then SaslAuthenticate goes back and forth until the mechanism is done. ApiVersions
may come before the handshake; any other request has to wait.
"""

from ..api import ApiKey
from ..primitives import Array, Bytes, Int16, Int64, String
from ..schema import Request, Response, field, message

__all__ = (
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
)


@message(ApiKey.SASL_HANDSHAKE, versions="0-1")
class SaslHandshakeResponse(Response):
    """The mechanisms that the broker takes; UNSUPPORTED_SASL_MECHANISM if ours is none of them."""

    error_code: Int16 = field("0+")
    mechanisms: Array[String] = field("0+")


@message(ApiKey.SASL_HANDSHAKE, versions="0-1")
class SaslHandshakeRequest(Request[SaslHandshakeResponse]):
    """The mechanism to log in with, as PLAIN or SCRAM-SHA-512 (KIP-43).

    After v1 the mechanism's messages travel in SaslAuthenticate (KIP-152); after v0 each follows a bare Int32 length.
    """

    mechanism: String = field("0+")


@message(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Response):
    """The mechanism's next message from the broker, or why the login failed."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    auth_bytes: Bytes = field("0+", secret=True)
    # KIP-368: log in again on this connection before; 0: not needed
    session_lifetime_ms: Int64 = field("1+", default=0, ignorable=True)


@message(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Request[SaslAuthenticateResponse]):
    """The mechanism's next message from the client (KIP-152)."""

    auth_bytes: Bytes = field("0+", secret=True)
