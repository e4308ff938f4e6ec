"""What the answers of several APIs tell."""

from typing import Final

__all__ = ("MALFORMED", "NO_OPERATIONS", "TOPIC_OPERATIONS")

MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
NO_OPERATIONS: Final = -(2**31)
"""Nobody asked what is allowed (KIP-430)."""
TOPIC_OPERATIONS: Final = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
"""What anyone may do with a topic where no authorizer is set; bits are the codes of AclOperation."""
