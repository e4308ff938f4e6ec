"""Constants in the responses of several APIs."""

from typing import Final

__all__ = (
    "GROUP_OPERATIONS",
    "MALFORMED",
    "NO_OPERATIONS",
    "RELAXED_EPOCHS_SINCE",
    "SHARE_GROUPS_SINCE",
    "TOPIC_OPERATIONS",
    "UNSUPPORTED",
)

MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
NO_OPERATIONS: Final = -(2**31)
"""The authorized operations in the response to a request that does not ask for them (KIP-430)."""
TOPIC_OPERATIONS: Final = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
"""The operations on a topic, of which an authorizer leaves some; bit n is the AclOperation of code n."""
GROUP_OPERATIONS: Final = 3400
"""The operations on a group, of which an authorizer leaves some; bit n is the AclOperation of code n."""
RELAXED_EPOCHS_SINCE: Final = "4.3"
"""The first release that accepts commits with older member epochs (KIP-1251)."""
SHARE_GROUPS_SINCE: Final = "4.2"
"""The first release that enables share groups by default (``share.version``); 4.1 refuses their requests."""
UNSUPPORTED: Final = "The version of API is not supported."
