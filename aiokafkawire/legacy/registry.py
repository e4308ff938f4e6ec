"""The paths and data of the ZooKeeper nodes of Kafka 0.7's brokers and groups."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import attrs

from ..errors import UsageError, WireError
from ..types import Address
from .topic_filter import compile_filter, normalize_filter

__all__ = (
    "BROKERS",
    "TOPICS",
    "BrokerPartition",
    "GroupPaths",
    "LegacySubscription",
    "check_segment",
    "parse_broker",
    "parse_count",
    "parse_offset",
    "parse_subscription",
)

BROKERS: Final = "/brokers/ids"
"""The parent of the brokers' ephemeral nodes; the data of each is ``creator:host:port``."""
TOPICS: Final = "/brokers/topics"
"""The parent of the topics' nodes. Each has an ephemeral node per broker, whose data is the number of partitions."""


_OFFSET: Final = re.compile("-?[0-9]{1,19}")
_MOST: Final = 100_000
"""The largest valid number of a topic's partitions on one broker, and of a member's streams."""


class BrokerPartition(NamedTuple):
    """A broker, and the number of a topic's partition on this broker. Each broker numbers its partitions from 0."""

    broker: int
    partition: int

    def __str__(self) -> str:
        return f"{self.broker}-{self.partition}"


def parse_broker(data: bytes | None, path: str) -> Address:
    """Return a broker's address from the data of its node; raise WireError if the data is invalid."""
    parts = _text(data, path).rsplit(":", 2)
    port = parts[2] if len(parts) == 3 else ""
    # Five digits at most, since Python raises ValueError for very long numbers.
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536 and parts[1]):
        raise WireError(f"{path} holds {data!r:.300}, not a broker's creator:host:port")
    return Address(parts[1], int(parts[2]))


def parse_count(data: bytes | None, path: str) -> int:
    """Return the number of a topic's partitions on a broker from the node's data; raise WireError for invalid data."""
    return _number(data, path, "a number of partitions", most=_MOST)


def parse_offset(data: bytes | None, path: str) -> int:
    """Return a group's committed offset from the data of its node; raise WireError if the data is invalid.

    The offset may be negative: Java's consumers commit -1 if the broker did not return a partition's first or last
    offset.
    """
    found = _OFFSET.fullmatch(_text(data, path))
    if found is None or not -(2**63) <= int(found[0]) < 2**63:
        raise WireError(f"{path} holds {data!r:.300}, not an offset")
    return int(found[0])


def _number(data: bytes | None, path: str, what: str, most: int) -> int:
    text = _text(data, path)
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise WireError(f"{path} holds {data!r:.300}, not {what}")
    return int(text)


def _text(data: bytes | None, path: str) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as cause:
        raise WireError(f"{path} holds {data!r:.300}, which is not UTF-8") from cause


@attrs.frozen
class LegacySubscription:
    """The topics that a member reads: each with its number of streams, or a pattern that selects or excludes topics."""

    topics: Mapping[str, int] = attrs.field(factory=dict)
    pattern: str | None = None
    """The topic filter, in the form that ``normalize_filter`` returns; None if ``topics`` are named."""
    streams: int = 1
    allow: bool = True
    """Whether to read the topics that match the pattern; if false, to read all other topics."""

    def encode(self) -> bytes:
        """Return the data of the member's node."""
        if self.pattern is not None:
            mark = "*" if self.allow else "!"
            return f"{mark}{self.streams}{mark}{self.pattern}".encode()
        pairs = ", ".join(f"{json.dumps(topic, ensure_ascii=False)}: {count}" for topic, count in self.topics.items())
        return f"{{ {pairs} }}".encode()

    def of(self, known: Mapping[str, object]) -> dict[str, int]:
        """Return the number of streams of each topic to read; a pattern is matched with the ``known`` topics."""
        if self.pattern is None:
            return dict(self.topics)
        matches = compile_filter(self.pattern).fullmatch
        return {topic: self.streams for topic in known if bool(matches(topic)) is self.allow}


def parse_subscription(data: bytes | None, path: str) -> LegacySubscription:
    """Return a member's subscription from the data of its node; raise WireError if the data is invalid."""
    text = _text(data, path)
    found = re.fullmatch(r"([*!])([0-9]{1,5})\1(.*)", text, re.DOTALL)
    try:
        if found is not None:
            compile_filter(found[3])
            pattern = normalize_filter(found[3])
            return LegacySubscription(pattern=pattern, streams=int(found[2]), allow=found[1] == "*")
        topics: Any = json.loads(text)
    except (ValueError, OverflowError, RecursionError) as cause:
        raise WireError(f"{path} holds {data!r:.300}, not what a member of a group reads: {cause}") from cause
    counts = topics.values() if isinstance(topics, dict) else [None]
    if not all(isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MOST for count in counts):
        raise WireError(f"{path} holds {data!r:.300}, not topics with a number of streams each")
    return LegacySubscription(topics=topics)


def check_segment(what: str, name: str) -> None:
    """Raise UsageError if ``name`` cannot be a segment of a path: if it is empty, ".", "..", or has a slash or NUL."""
    if not isinstance(name, str) or not name or "/" in name or "\0" in name or name in (".", ".."):
        raise UsageError(f"{what} has to be a name without slashes, got {name!r:.300}")


@attrs.frozen
class GroupPaths:
    """The paths of a group's nodes in ZooKeeper."""

    group: str

    @property
    def ids(self) -> str:
        """The path of the node with an ephemeral child per member, whose data is the member's subscription."""
        return f"/consumers/{self.group}/ids"

    def member(self, member: str) -> str:
        """Return the path of a member's ephemeral node."""
        return f"{self.ids}/{member}"

    def owners(self, topic: str) -> str:
        """Return the path of the node with an ephemeral child per partition, whose data is the owning stream's name."""
        return f"/consumers/{self.group}/owners/{topic}"

    def owner(self, topic: str, partition: BrokerPartition) -> str:
        """Return the path of a partition's owner node."""
        return f"{self.owners(topic)}/{partition}"

    def offsets(self, topic: str) -> str:
        """Return the path of the node with a persistent child per partition, whose data is the committed offset."""
        return f"/consumers/{self.group}/offsets/{topic}"

    def offset(self, topic: str, partition: BrokerPartition) -> str:
        """Return the path of the node with a partition's committed offset."""
        return f"{self.offsets(topic)}/{partition}"
