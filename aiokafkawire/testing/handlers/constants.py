"""Constants in the responses of several APIs."""

from typing import Final

__all__ = ("MALFORMED", "NO_OPERATIONS", "TOPIC_OPERATIONS")

MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
NO_OPERATIONS: Final = -(2**31)
"""The value if the request did not ask for authorized operations (KIP-430)."""
TOPIC_OPERATIONS: Final = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
"""The operations on a topic without an authorizer; bits are the codes of AclOperation."""
