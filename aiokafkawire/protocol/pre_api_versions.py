"""Brokers older than ApiVersions (Kafka 0.10, KIP-35): their API versions, and requests that detect their release.

After an unknown request, Kafka 0.8 closes the connection, and 0.9 does not answer. The requests that a broker answers
identify its release (see :func:`probes`). These requests are cheap and have no side effects: FindCoordinator of 0.8.2
is not used, because it creates the offsets topic.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from .api import ApiKey
from .schema import Request, Versions

__all__ = ("SPOKEN_UNTOLD", "BrokerVersion", "probes", "release_told_by")


def _table(spoken: str) -> Mapping[int, Versions]:
    pairs = (pair.split(":") for pair in spoken.split())
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
"""The API versions that brokers without ApiVersions support for clients, by release, the oldest release first."""


@attrs.frozen(eq=False)
class BrokerVersion:
    """The result of detecting a broker's release. Two results are equal only if they are the same object."""

    release: str | None = None
    """A key of :data:`SPOKEN_UNTOLD`; None for brokers that support ApiVersions."""
    api_versions: int | None = None
    """The version of ApiVersions that the broker has answered, to begin with on its next connection; None if it has
    answered none."""

    @property
    def is_untold(self) -> bool:
        """Whether the broker's versions are known from its release instead of ApiVersions."""
        return self.release is not None

    @property
    def versions(self) -> Mapping[int, Versions]:
        """The API versions of the broker's release; empty if the broker supports ApiVersions."""
        return SPOKEN_UNTOLD[self.release] if self.release is not None else {}


def probes() -> "tuple[tuple[Request[Any], Versions], ...]":
    """Return the requests that distinguish old brokers, in the order to send them, each with its version.

    Each release answers one more of these requests than the previous release. 0.8.2 answers Heartbeat with an error,
    since this release does not support group membership.
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
    """Return the release of a broker that answered this number of :func:`probes`; None for 0 answers."""
    return (None, *SPOKEN_UNTOLD)[answered]
