"""Brokers from before ApiVersions (Kafka 0.10, KIP-35): what they speak without telling it, and how to know them.

To what they do not know, Kafka 0.8 answers by closing the connection, and 0.9 not at all. What they are is told by
what they do answer (see :func:`probes`). The questions are cheap, and change nothing: FindCoordinator, which 0.8.2
brought, is not among them, since it creates the topic of the offsets.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from .api import ApiKey
from .schema import Request, Versions

__all__ = ("ANSWERS_API_VERSIONS", "SPOKEN_UNTOLD", "BrokerVersion", "probes", "release_told_by")


def _table(spoken: str) -> Mapping[int, Versions]:
    pairs = (one.split(":") for one in spoken.split())
    return MappingProxyType({int(ApiKey[name]): Versions.parse(versions) for name, versions in pairs})


_WITHOUT_OFFSETS: Final = "PRODUCE:0 FETCH:0 LIST_OFFSETS:0 METADATA:0"
_WITHOUT_COORDINATORS: Final = f"{_WITHOUT_OFFSETS} OFFSET_COMMIT:0 OFFSET_FETCH:0"
_BEFORE_GROUPS: Final = f"{_WITHOUT_OFFSETS} OFFSET_COMMIT:0-1 OFFSET_FETCH:0-1 FIND_COORDINATOR:0"
_WITH_GROUPS: Final = (
    "PRODUCE:0-1 FETCH:0-1 LIST_OFFSETS:0 METADATA:0 OFFSET_COMMIT:0-2 OFFSET_FETCH:0-1 FIND_COORDINATOR:0 JOIN_GROUP:0"
    " HEARTBEAT:0 LEAVE_GROUP:0 SYNC_GROUP:0 DESCRIBE_GROUPS:0 LIST_GROUPS:0"
)

_FIRST: Final = Versions.parse("0")

SPOKEN_UNTOLD: Final[Mapping[str, Mapping[int, Versions]]] = MappingProxyType(
    {
        "0.8.0": _table(_WITHOUT_OFFSETS),
        "0.8.1": _table(_WITHOUT_COORDINATORS),
        "0.8.2": _table(_BEFORE_GROUPS),
        "0.9.0": _table(_WITH_GROUPS),
    }
)
"""What brokers of each release without ApiVersions speak, of what clients ask; from old to new."""


@attrs.frozen(eq=False)
class BrokerVersion:
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


ANSWERS_API_VERSIONS: Final = BrokerVersion()
"""A broker of Kafka 0.10 or later."""


def probes() -> "tuple[tuple[Request[Any], Versions], ...]":
    """Return the requests that tell old brokers apart, to be sent one after the other, with their versions.

    Each release answers one more of them than the release before it. 0.8.2 answers Heartbeat by an error, and is not
    asked to join groups: it has no group membership.
    """
    from .messages.group import HeartbeatRequest
    from .messages.group_admin import ListGroupsRequest
    from .messages.group_offsets import OffsetFetchRequest
    from .messages.offsets import ListOffsetsRequest

    return (
        (ListOffsetsRequest(replica_id=-1, topics=[]), _FIRST),
        (OffsetFetchRequest(group_id="", topics=[]), _FIRST),
        (HeartbeatRequest(group_id="", generation_id=-1, member_id=""), _FIRST),
        (ListGroupsRequest(), _FIRST),
    )


def release_told_by(answered: int) -> str | None:
    """The release of a broker that answered so many of the :func:`probes`; None if it is no old broker."""
    return (None, *SPOKEN_UNTOLD)[answered]
