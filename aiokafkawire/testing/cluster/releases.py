"""The API versions of each release of Apache Kafka, and other properties of old releases.

Releases up to 3.2 are described as they run with ZooKeeper; later ones with KRaft, which is ready for production since
3.3. Unstable versions (``unstable.api.versions.enable``) are left out.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

import attrs

from ...errors import ConfigError
from ...protocol.api import ApiKey
from ...protocol.schema import Versions

__all__ = (
    "DEFAULT_RELEASE",
    "RELEASES",
    "Release",
    "Served",
    "controllers_release",
    "release_named",
    "versions_of",
)

DEFAULT_RELEASE: Final = "4.3"
"""The release that a broker emulates unless it is told to emulate another."""

_CHANGES: Final = {
    "0.8.0": "0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0",
    "0.8.1": "8:0 9:0",
    "0.8.2": "8:0-1 9:0-1 10:0",
    "0.9.0": "0:0-1 1:0-1 6:0-1 7:1 8:0-2 11:0 12:0 13:0 14:0 15:0 16:0",
    "0.10.0": "0:0-2 1:0-2 3:0-1 6:0-2 17:0 18:0",
    "0.10.1": "1:0-3 2:0-1 3:0-2 11:0-1 19:0 20:0",
    "0.10.2": "6:0-3 9:0-2 19:0-1",
    "0.11.0": "0:0-3 1:0-5 2:0-2 3:0-4 8:0-3 9:0-3 10:0-1 11:0-2 12:0-1 13:0-1 14:0-1 15:0-1 16:0-1 18:0-1 19:0-2"
    " 20:0-1 21:0 22:0 23:0 24:0 25:0 26:0 27:0 28:0 29:0 30:0 31:0 32:0 33:0",
    "1.0": "0:0-5 1:0-6 3:0-5 4:0-1 6:0-4 7:0-1 17:0-1 34:0 35:0 36:0 37:0",
    "1.1": "1:0-7 32:0-1 38:0 39:0 40:0 41:0 42:0",
    "2.0": "0:0-6 1:0-8 2:0-3 3:0-6 8:0-4 9:0-4 10:0-2 11:0-3 12:0-2 13:0-2 14:0-2 15:0-2 16:0-2 18:0-2 19:0-3"
    " 20:0-2 21:0-1 22:0-1 23:0-1 24:0-1 25:0-1 26:0-1 28:0-1 29:0-1 30:0-1 31:0-1 32:0-2 33:0-1 34:0-1"
    " 35:0-1 37:0-1 38:0-1 39:0-1 40:0-1 41:0-1 42:0-1",
    "2.1": "0:0-7 1:0-10 2:0-4 3:0-7 8:0-6 9:0-5 20:0-3 23:0-2 28:0-2",
    "2.2": "2:0-5 4:0-2 5:0-1 6:0-5 7:0-2 11:0-4 36:0-1 43:0",
    "2.3": "1:0-11 3:0-8 8:0-7 11:0-5 12:0-3 14:0-3 15:0-3 23:0-3 44:0",
    "2.4": "0:0-8 3:0-9 4:0-4 5:0-2 6:0-6 7:0-3 8:0-8 9:0-6 10:0-3 11:0-6 12:0-4 13:0-4 14:0-4 15:0-5 16:0-3"
    " 18:0-3 19:0-5 20:0-4 22:0-2 38:0-2 42:0-2 43:0-2 44:0-1 45:0 46:0 47:0",
    "2.5": "9:0-7 11:0-7 14:0-5 22:0-3 28:0-3 29:0-2 30:0-2 31:0-2 36:0-2 37:0-2 39:0-2 40:0-2 41:0-2",
    "2.6": "5:0-3 16:0-4 21:0-2 32:0-3 35:0-2 48:0 49:0",
    "2.7": "1:0-12 19:0-6 20:0-5 22:0-4 24:0-2 25:0-2 26:0-2 37:0-3 50:0 51:0 56:0 57:0",
    "2.8": "0:0-9 2:0-6 3:0-11 4:0-5 6:0-7 19:0-7 20:0-6 23:0-4 24:0-3 25:0-3 26:0-3 27:0-1 32:0-4 33:0-2 34:0-2"
    " 48:0-1 49:0-1 60:0 61:0",
    "3.0": "2:0-7 9:0-8 10:0-4 65:0 66:0 67:0",
    "3.1": "1:0-13 3:0-12",
    "3.2": "4:0-6 11:0-9 13:0-5 35:0-3 56:0-1",
    "3.3": "29:0-3 30:0-3 31:0-3 35:0-4 55:0-1 57:0-1 64:0 4:none 5:none 6:none 7:none 38:none 39:none 40:none"
    " 41:none 50:none 51:none 56:none 67:none",
    "3.5": "1:0-15 2:0-8 50:0 51:0",
    "3.6": "24:0-4 38:0-3 39:0-2 40:0-2 41:0-3",
    "3.7": "0:0-10 1:0-16 8:0-9 9:0-9 60:0-1 68:0 71:0 72:0 74:0",
    "3.8": "0:0-11 10:0-5 16:0-5 22:0-5 24:0-5 25:0-4 26:0-4 28:0-4 66:0-1 69:0 75:0",
    "3.9": "1:0-17 2:0-9 10:0-6 18:0-4 55:0-2 80:0 81:0",
    "4.0": "0:0-12 1:4-17 2:1-10 3:0-13 8:2-9 9:1-9 15:0-6 19:2-7 20:1-6 23:2-4 26:0-5 27:1 28:0-5 29:1-3 30:1-3"
    " 31:1-3 32:1-4 34:1-2 35:1-4 38:1-3 39:1-2 40:1-2 41:1-3 57:0-2 60:0-2 68:0-1 69:0-1",
    "4.1": "0:0-13 1:4-18 45:0-1 66:0-2 74:0-1 76:1 77:1 78:1 79:1 83:0 84:0 85:0 86:0 87:0 90:0 91:0 92:0",
    "4.2": "2:1-11 8:2-10 9:1-10 27:1-2 78:1-2 79:1-2 80:0-1 85:0-1 87:0-1 88:0 89:0 90:0-1",
    "4.3": "35:1-5",
    "4.4": "18:0-5 28:0-6 42:0-3 88:0-1 89:0-1 93:0 94:0",
}
"""The changes of each release: API keys, each with the versions supported from that release on.

Brokers before 0.10 advertise no versions; the table lists the versions that they understand. 4.x does not support
Produce v0-2, and advertises them only because librdkafka needs them (KIP-896).
"""

_NEVER: Final = Versions.parse("none")
_UNCHANGED: Final = ("3.4",)
_OF_CONTROLLERS: Final = frozenset(
    {
        *(17, 18, 19, 20, *range(29, 34), *range(36, 42), 43, 44, 45, 46, 49, *range(50, 61)),
        *(62, 63, 64, 67, 70, 73, 80, 81, 82, 94),
    }
)
"""The API keys that controllers serve, as Kafka's definitions of the messages say (``listeners``).

Fetch is left out, by which controllers replicate the metadata log."""
_UNDERSTOOD: Final = {
    ApiKey.PRODUCE: "0-2",
    ApiKey.FETCH: "0-3",
    ApiKey.LIST_OFFSETS: "0",
    ApiKey.OFFSET_COMMIT: "0-1",
    ApiKey.OFFSET_FETCH: "0",
    ApiKey.CREATE_TOPICS: "0-1",
    ApiKey.DELETE_TOPICS: "0",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "0-1",
    ApiKey.WRITE_TXN_MARKERS: "0",
    ApiKey.DESCRIBE_ACLS: "0",
    ApiKey.CREATE_ACLS: "0",
    ApiKey.DELETE_ACLS: "0",
    ApiKey.DESCRIBE_CONFIGS: "0",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "0",
    ApiKey.DESCRIBE_LOG_DIRS: "0",
    ApiKey.CREATE_DELEGATION_TOKEN: "0",
    ApiKey.RENEW_DELEGATION_TOKEN: "0",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "0",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "0",
}
"""Versions that the newest release has dropped and that this broker still answers if it emulates an older release."""


def _number(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))


def _tables() -> dict[str, Mapping[int, Versions]]:
    tables, spoken = dict[str, Mapping[int, Versions]](), dict[int, Versions]()
    for name in sorted((*_CHANGES, *_UNCHANGED), key=_number):
        for change in _CHANGES.get(name, "").split():
            key, _, versions = change.partition(":")
            spoken[int(key)] = Versions.parse(versions)
        there = {key: versions for key, versions in sorted(spoken.items()) if versions.last >= versions.first}
        tables[name] = MappingProxyType(there)
    return tables


RELEASES: Final[Mapping[str, Mapping[int, Versions]]] = MappingProxyType(_tables())
"""For each release, by its name without the patch level: the supported versions of every API, by API key."""


@attrs.frozen
class Release:
    """A release of Apache Kafka that the broker emulates, with the API versions that the broker supports."""

    name: str
    advertised: Mapping[int, Versions] = attrs.field(repr=False)
    """The versions of each API that the ApiVersions response lists: those of the release that have a handler."""
    served: Mapping[int, Versions] = attrs.field(repr=False)
    """The versions of each API that the broker answers."""

    def since(self, name: str) -> bool:
        """Return whether this is the named release or a later one."""
        return _number(self.name) >= _number(name)

    @property
    def keeps_silent(self) -> bool:
        """Whether the broker ignores unknown requests and keeps the connection open.

        Only 0.9 ignores them, because its network thread fails at the request; all other releases disconnect.
        """
        return self.since("0.9.0") and not self.since("0.10.0")


class Served(Protocol):
    """The versions of one API that the broker supports, as declared by the API's handler."""

    @property
    def served(self) -> Versions:
        """The versions that the handler answers."""


def versions_of(name: str) -> Mapping[int, Versions]:
    """Return the versions of each API that a release supports, whether or not this broker has a handler for the API.

    Args:
        name: a release such as "2.4" or "0.10.2"; a patch level is ignored.

    Raises:
        ValueError: the release is unknown.
    """
    return RELEASES[_known(name)]


def release_named(name: str, apis: Mapping[ApiKey, Served]) -> Release:
    """Return a release by its name, with those of its API versions that the handlers in ``apis`` support.

    Raises:
        ConfigError: the release is unknown.
    """
    name = _known(name)
    advertised, served = dict[int, Versions](), dict[int, Versions]()
    for key, api in apis.items():
        theirs = RELEASES[name].get(key, _NEVER)
        older = Versions.parse(_UNDERSTOOD.get(key, "none"))
        ours = Versions(older.first, api.served.last) if older.last + 1 == api.served.first else api.served
        both = Versions(max(theirs.first, ours.first), min(theirs.last, ours.last))
        if both.last >= both.first:
            advertised[int(key)] = served[int(key)] = both
    if name == "0.8.2":  # 0.8.2 has no group members, but answers Heartbeat with an error
        served[ApiKey.HEARTBEAT] = Versions(0, 0)
    if _number(name) >= (4, 0):
        served[ApiKey.PRODUCE] = Versions(3, served[ApiKey.PRODUCE].last)
    return Release(name, MappingProxyType(advertised), MappingProxyType(served))


def controllers_release(release: Release) -> Release:
    """Return the release with the APIs that controllers serve (KIP-919)."""
    advertised = {key: versions for key, versions in release.advertised.items() if key in _OF_CONTROLLERS}
    served = {key: versions for key, versions in release.served.items() if key in _OF_CONTROLLERS}
    return Release(release.name, MappingProxyType(advertised), MappingProxyType(served))


def _known(name: str) -> str:
    found = re.fullmatch(r"(0\.\d+\.\d+|[1-9]\d*\.\d+)(?:\.\d+)?", name)
    if found is None or found[1] not in RELEASES:
        first, *_, last = RELEASES
        raise ConfigError(f"unknown release {name!r} of Apache Kafka; known: {first} to {last}")
    return found[1]
