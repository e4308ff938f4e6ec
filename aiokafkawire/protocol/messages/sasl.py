"""Authenticating a connection."""

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
    """DOC."""

    error_code: Int16 = field("0+")
    mechanisms: Array[String] = field("0+")


@message(ApiKey.SASL_HANDSHAKE, versions="0-1")
class SaslHandshakeRequest(Request[SaslHandshakeResponse]):
    """DOC."""

    mechanism: String = field("0+")


@message(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    auth_bytes: Bytes = field("0+")
    session_lifetime_ms: Int64 = field("1+", default=0, ignorable=True)


@message(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Request[SaslAuthenticateResponse]):
    """DOC."""

    auth_bytes: Bytes = field("0+")
