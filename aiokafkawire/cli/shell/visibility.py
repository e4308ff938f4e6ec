"""Says on standard error that rights may lack, where brokers leave out what a client may not see."""

from typing import Final

from ...errors import KafkaError
from .output import note
from .session import Session

__all__ = ("note_none_visible",)

_EVERYTHING: Final = frozenset({"ALTER", "CREATE", "DESCRIBE"})
"""A client that may do this to the cluster sees all; without an authorizer, all clients may."""


async def note_none_visible(session: Session, what: str) -> None:
    """Print a line that nothing is visible, unless this client may see everything.

    Args:
        session: the client.
        what: what the brokers filter, such as "topics".
    """
    try:
        cluster = await session.kafka.admin.describe_cluster(include_authorized_operations=True)
    except KafkaError:
        return  # brokers before 2.3 do not say what a client may do
    allowed = cluster.authorized_operations
    if allowed is not None and not allowed >= _EVERYTHING:
        note(f"aiokafkawire: no {what} are visible; brokers leave out those that you have no right to describe")
