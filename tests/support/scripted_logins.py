"""Scripted brokers that ask for a login, and answer it as the test wants."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)

from .scripted_broker import Asked, ScriptedBroker

__all__ = ("handshake", "let_in", "scripted", "tokens")


def handshake(asked: Asked) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])


def let_in(said: bytes = b"", lifetime_ms: int = 0) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=said, session_lifetime_ms=lifetime_ms)


def tokens(broker: ScriptedBroker) -> list[bytes]:
    """What clients have said, in order."""
    return [bytes(one.auth_bytes) for one in broker.seen if isinstance(one, SaslAuthenticateRequest)]


@asynccontextmanager
async def scripted(answer: SaslAuthenticateResponse) -> AsyncIterator[ScriptedBroker]:
    """A broker that answers every token so."""
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        broker.on[ApiKey.SASL_AUTHENTICATE] = lambda _: answer
        yield broker
