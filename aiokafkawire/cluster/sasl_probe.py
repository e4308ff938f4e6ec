"""Whether a listener that hung up on a client without a login wants one: it says so itself, if it is asked by SASL."""

from typing import Final

from ..errors import ErrorCode, KafkaError, SecurityMismatch
from ..network.sasl import printable
from ..protocol.api import ApiKey
from ..protocol.messages.sasl import SaslHandshakeRequest
from ..types import Address
from .connection_pool import ConnectionPool

__all__ = ("login_wanted",)

_LANE: Final = "a question about logins"


async def login_wanted(brokers: ConnectionPool, address: Address, within: float | None) -> SecurityMismatch | None:
    """What to say of a listener that takes nothing but a login; None of any other, and where it cannot be asked.

    Listeners without logins answer SaslHandshake as well, and by another error than those with logins.

    Args:
        brokers: to open a connection of its own for the question.
        address: the listener.
        within: how long that may take, in seconds.
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
    taken = printable(", ".join(answer.mechanisms)) or "no mechanism that it names"
    return SecurityMismatch(
        f"{address} asks for a SASL login, by {taken}: set security_protocol to SASL_SSL or SASL_PLAINTEXT, and "
        "sasl_mechanism, or take the port of another listener"
    )
