"""Member ids that clients make (KIP-1082)."""

from base64 import urlsafe_b64encode
from random import Random
from uuid import UUID

__all__ = ("new_member_id",)


def new_member_id(chance: Random) -> str:
    """Return a random member id: a UUID in the form of Kafka's tools, which take no leading dash."""
    while True:
        number = UUID(int=chance.getrandbits(128), version=4)
        member_id = urlsafe_b64encode(number.bytes).decode().rstrip("=")
        if not member_id.startswith("-"):
            return member_id
