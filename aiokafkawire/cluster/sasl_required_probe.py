"""Determines whether a listener that closed the connection requires SASL, by its answer to SaslHandshake."""

from typing import Final

from ..errors import ErrorCode, KafkaError, SecurityMismatch
from ..network.sasl import printable
from ..protocol.api import ApiKey
from ..protocol.messages.sasl import SaslHandshakeRequest
from ..types import Address
from .connection_pool import ConnectionPool

__all__ = ("probe_sasl",)

_LANE: Final = "SASL probe"


async def probe_sasl(brokers: ConnectionPool, address: Address, within: float | None) -> SecurityMismatch | None:
    """Return the error for a listener that requires SASL; None if the listener requires none, or does not answer.

    The probe is a SaslHandshake with an empty mechanism. Only a listener with SASL answers UNSUPPORTED_SASL_MECHANISM.

    Args:
        brokers: opens a separate connection for the request.
        address: the listener.
        within: the timeout in seconds.
    """
    try:
        connection = await brokers.connection(address, _LANE, within)
        if ApiKey.SASL_HANDSHAKE not in connection.versions:
            return None
        answer = await connection.request(SaslHandshakeRequest(mechanism=""), timeout=within)
    except KafkaError:
        return None
    finally:
        await brokers.close_lanes(_LANE)
    if answer.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return None
    mechanisms = printable(", ".join(answer.mechanisms)) or "an unknown mechanism"
    return SecurityMismatch(
        f"{address} requires SASL authentication with {mechanisms}: set security_protocol to SASL_SSL or "
        "SASL_PLAINTEXT, and sasl_mechanism, or use the port of another listener"
    )
