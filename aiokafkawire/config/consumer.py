"""The settings of a consumer."""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, TypedDict, get_args

import attrs

from .._lazy_classes import frozen
from ..errors import ConfigError
from ..types import IsolationLevel
from .fields import choice, integer, optional_integer, optional_text, text

__all__ = ("AssignmentStrategy", "AutoOffsetReset", "ConsumerConfig", "ConsumerOptions", "duration_ms")

AutoOffsetReset = str
"""``"earliest"``, ``"latest"``, ``"none"``, or ``"by_duration:"`` with an ISO 8601 duration (KIP-1106)."""
AssignmentStrategy = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _check_strategies(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    names = get_args(AssignmentStrategy)
    if not isinstance(value, tuple) or not value or any(name not in names for name in value):
        named = ", ".join(repr(name) for name in names)
        raise ConfigError(
            f"{attribute.name} must be a sequence of some of {named}, got {value!r:.200}", setting=attribute.name
        )
    if len(set(value)) < len(value):
        raise ConfigError(f"{attribute.name} names an assignor twice: {value!r}", setting=attribute.name)


_DURATION: Final = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?")


def _check_reset(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value in ("earliest", "latest", "none") or (isinstance(value, str) and duration_ms(value) is not None):
        return
    known = "'earliest', 'latest', 'none' or 'by_duration:' with an ISO 8601 duration such as P7DT12H"
    raise ConfigError(f"{attribute.name} must be {known}, got {value!r:.200}", setting=attribute.name)


def duration_ms(reset: str) -> int | None:
    """Return the duration in ms of an ``auto_offset_reset`` of ``"by_duration:..."``; None for other values.

    A day has 24 hours. Months and years, which have no fixed length, are refused, as in Java.
    """
    prefix, colon, text = reset.partition(":")
    found = _DURATION.fullmatch(text) if prefix == "by_duration" and colon else None
    if found is None:
        return None
    days, hours, minutes, seconds = (min(float(part or 0), 1e15) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


class ConsumerOptions(TypedDict, total=False):
    """Keyword arguments of ``Client.consumer``; :class:`ConsumerConfig` describes them."""

    group_id: str | None
    group_protocol: Literal["classic", "consumer", "auto"]
    group_remote_assignor: str | None
    group_instance_id: str | None
    client_rack: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    partition_assignment_strategy: Sequence[AssignmentStrategy]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    heartbeat_thread: bool
    stall_timeout_ms: int | None
    auto_offset_reset: AutoOffsetReset
    isolation_level: Literal["read_uncommitted", "read_committed"]
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    check_crcs: bool
    on_error: Literal["raise", "skip", "dead_letter"]
    dead_letter_topic: str | None


@frozen(kw_only=True)
class ConsumerConfig:
    """The settings of a consumer. Sizes are in bytes, times in ms."""

    group_id: str | None = optional_text()
    """The consumer group, whose members share the partitions of the topics, and whose offsets are committed."""
    group_protocol: Literal["classic", "consumer", "auto"] = choice("classic", "classic", "consumer", "auto")
    """The protocol of the group: ``"classic"``, whose members assign the partitions; ``"consumer"``, where the
    coordinator does (KIP-848, Kafka 4.0 and later); or ``"auto"``, the consumer protocol if the brokers offer it and
    the group has no members of the classic one."""
    group_remote_assignor: str | None = optional_text(empty=False)
    """The assignor of the coordinator in the consumer protocol, such as ``"uniform"`` or ``"range"``; None leaves the
    choice to the coordinator."""
    group_instance_id: str | None = optional_text()
    """The name of a static member, which keeps its partitions without a rebalance if it rejoins within the session
    timeout (KIP-345)."""
    client_rack: str = text("")
    """The rack of this consumer. Assignors prefer to give it partitions with a replica in this rack (KIP-881), and it
    fetches from that replica (KIP-392)."""
    session_timeout_ms: int = integer(45_000, minimum=1)
    """How long a member may send no heartbeat before the coordinator removes it and reassigns its partitions."""
    heartbeat_interval_ms: int = integer(3_000, minimum=1)
    """The interval of a member's heartbeats, whose responses report rebalances; usually a third of
    ``session_timeout_ms``."""
    max_poll_interval_ms: int = integer(300_000, minimum=1)
    """How long a member may process records between two polls before it leaves the group, and how long a rebalance
    waits for members (KIP-62)."""
    partition_assignment_strategy: Sequence[AssignmentStrategy] = attrs.field(
        default=("range", "cooperative-sticky"), converter=_tuple, validator=_check_strategies
    )
    """The assignors that this member supports, in order of preference. The group uses an assignor that all members
    support. The member rebalances cooperatively if all of its assignors support that (KIP-429)."""
    enable_auto_commit: bool = choice(True, True, False)
    """Whether the offsets of finished records are committed automatically: at intervals, before partitions are revoked,
    and on closing. A record or batch is finished once the user requests the next one."""
    auto_commit_interval_ms: int = integer(5_000, minimum=1)
    """The interval of automatic commits. The first commit after an assignment is earlier."""
    heartbeat_thread: bool = choice(False, True, False)
    """Whether a thread sends heartbeats while user code blocks the event loop, up to ``max_poll_interval_ms``."""
    stall_timeout_ms: int | None = optional_integer(minimum=1)
    """How long the consumer may receive no records before it raises ConsumerStalled, if its ``health()`` shows a
    problem; None for no limit."""
    auto_offset_reset: AutoOffsetReset = attrs.field(default="latest", validator=_check_reset)
    """Where to start if no offset is committed or the position is out of range: ``"earliest"``, ``"latest"``, or
    ``"by_duration:P7DT12H"`` for the records of the last 7.5 days (an ISO 8601 duration, KIP-1106). ``"none"`` raises
    OffsetOutOfRange."""
    isolation_level: Literal["read_uncommitted", "read_committed"] = choice(
        "read_uncommitted", "read_uncommitted", "read_committed"
    )
    """Whether records of open and aborted transactions are returned."""
    fetch_min_bytes: int = integer(1, minimum=0)
    """How much data a broker waits for, up to ``fetch_max_wait_ms``, before it answers a fetch."""
    fetch_max_bytes: int = integer(52_428_800, minimum=1)
    """How much data one fetch may return, and how much fetched data the consumer buffers."""
    fetch_max_wait_ms: int = integer(500)
    """How long a broker may wait for ``fetch_min_bytes`` before it answers a fetch."""
    max_partition_fetch_bytes: int = integer(1_048_576, minimum=1)
    """How much data one fetch may return per partition. A first batch that is larger is returned completely
    (KIP-74)."""
    check_crcs: bool = choice(True, True, False)
    """Whether the checksum of every batch is verified."""
    on_error: Literal["raise", "skip", "dead_letter"] = choice("raise", "raise", "skip", "dead_letter")
    """The treatment of a record that cannot be deserialized: ``"raise"`` raises DeserializationError; ``"skip"`` logs
    the record and leaves it out; ``"dead_letter"`` writes it to ``dead_letter_topic`` and leaves it out."""
    dead_letter_topic: str | None = optional_text(empty=False)
    """The topic that gets the raw records which cannot be deserialized, with their origin and error in headers. The
    consumer's position passes such a record once it is acknowledged there."""

    @property
    def isolation(self) -> IsolationLevel:
        """The ``isolation_level`` in the form that requests have."""
        return IsolationLevel[self.isolation_level.upper()]
