"""Brokers from before ApiVersions (Kafka 0.10, KIP-35): what they speak without telling it, and how to know them.

To what they do not know, Kafka 0.8 answers by closing the connection, and 0.9 not at all. What they are is told by
what they do answer: both know ListOffsets v0, and of the two only 0.9 knows groups. Both questions are cheap, and
change nothing.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from .api import ApiKey
from .schema import Request, Versions

__all__ = ("ANSWERS_API_VERSIONS", "SPOKEN_UNTOLD", "Known", "probes", "release_told_by")


def _table(spoken: str) -> Mapping[int, Versions]:
    pairs = (one.split(":") for one in spoken.split())
    return MappingProxyType({int(ApiKey[name]): Versions.parse(versions) for name, versions in pairs})


_BEFORE_GROUPS: Final = (
    "PRODUCE:0 FETCH:0 LIST_OFFSETS:0 METADATA:0 OFFSET_COMMIT:0-1 OFFSET_FETCH:0-1 FIND_COORDINATOR:0"
)
_WITH_GROUPS: Final = (
    "PRODUCE:0-1 FETCH:0-1 LIST_OFFSETS:0 METADATA:0 OFFSET_COMMIT:0-2 OFFSET_FETCH:0-1 FIND_COORDINATOR:0 JOIN_GROUP:0"
    " HEARTBEAT:0 LEAVE_GROUP:0 SYNC_GROUP:0 DESCRIBE_GROUPS:0 LIST_GROUPS:0"
)

SPOKEN_UNTOLD: Final[Mapping[str, Mapping[int, Versions]]] = MappingProxyType(
    {"0.8.2": _table(_BEFORE_GROUPS), "0.9.0": _table(_WITH_GROUPS)}
)
"""What brokers of each release without ApiVersions speak, of what clients ask."""


@attrs.frozen(eq=False)
class Known:
    """What a broker was found to be, once: whoever finds it again makes another."""

    release: str | None = None
    """One of :data:`SPOKEN_UNTOLD`; None for all that answer ApiVersions."""

    @property
    def is_untold(self) -> bool:
        """Whether its versions are known without its having told them."""
        return self.release is not None

    @property
    def versions(self) -> Mapping[int, Versions]:
        """What it speaks without telling; nothing for those that tell."""
        return SPOKEN_UNTOLD[self.release] if self.release is not None else {}


ANSWERS_API_VERSIONS: Final = Known()
"""A broker of Kafka 0.10 or later."""


def probes() -> "tuple[Request[Any], ...]":
    """What to ask, one after the other, to tell old brokers apart: see :func:`release_told_by`."""
    from .messages.group_admin import ListGroupsRequest
    from .messages.offsets import ListOffsetsRequest

    return ListOffsetsRequest(replica_id=-1, topics=[]), ListGroupsRequest()


def release_told_by(answered: int) -> str | None:
    """The release of a broker that answered so many of the :func:`probes`; None if it is no old broker."""
    return (None, *SPOKEN_UNTOLD)[answered]
