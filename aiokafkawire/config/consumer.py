"""Settings of a consumer."""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, TypedDict, get_args

import attrs

from ..errors import ConfigError
from ..types import IsolationLevel
from .fields import choice, optional_text, optional_whole, text, whole

__all__ = ("AssignmentStrategy", "AutoOffsetReset", "ConsumerConfig", "ConsumerOptions", "duration_ms")

AutoOffsetReset = str
"""``"earliest"``, ``"latest"``, ``"none"``, or ``"by_duration:"`` with an ISO 8601 duration (KIP-1106)."""
AssignmentStrategy = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _check_strategies(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    names = get_args(AssignmentStrategy)
    if not isinstance(value, tuple) or not value or any(one not in names for one in value):
        named = ", ".join(repr(name) for name in names)
        raise ConfigError(f"{attribute.name} must be a sequence of some of {named}, got {value!r:.200}")
    if len(set(value)) < len(value):
        raise ConfigError(f"{attribute.name} names an assignor twice: {value!r}")


_DURATION: Final = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?")


def _check_reset(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value in ("earliest", "latest", "none") or (isinstance(value, str) and duration_ms(value) is not None):
        return
    known = "'earliest', 'latest', 'none' or 'by_duration:' with an ISO 8601 duration such as P7DT12H"
    raise ConfigError(f"{attribute.name} must be {known}, got {value!r:.200}")


def duration_ms(reset: str) -> int | None:
    """How far back, in ms, an ``auto_offset_reset`` of ``"by_duration:..."`` goes; None if it is none of these.

    Days are of 24 hours; months and years, which are of no fixed length, are not taken, as in Java.
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


@attrs.frozen(kw_only=True)
class ConsumerConfig:
    """What is read, and how much at once. Sizes are in bytes, times in ms."""

    group_id: str | None = optional_text()
    """The group that shares the partitions of the topics, and under whose name offsets are committed."""
    group_instance_id: str | None = optional_text()
    """Makes a static member: who comes back under this name within the session timeout keeps its partitions, without
    a rebalance (KIP-345)."""
    client_rack: str = text("")
    """Where this consumer runs, to be given partitions with a replica there and to fetch from it (KIP-392, KIP-881)."""
    session_timeout_ms: int = whole(45_000, least=1)
    """A member that the coordinator has not heard of for so long is out, and others get its partitions."""
    heartbeat_interval_ms: int = whole(3_000, least=1)
    """How often it hears of the member, and the member of a rebalance; a third of the session timeout is usual."""
    max_poll_interval_ms: int = whole(300_000, least=1)
    """How long the member may go without asking for more records before it leaves the group, and how long a rebalance
    waits for members (KIP-62)."""
    partition_assignment_strategy: Sequence[AssignmentStrategy] = attrs.field(
        default=("range", "cooperative-sticky"), converter=_tuple, validator=_check_strategies
    )
    """The assignors that this member knows, the preferred one first; the group uses one that all members know. It
    rebalances cooperatively if all that are named can (KIP-429)."""
    enable_auto_commit: bool = choice(True, True, False)
    """Whether the offsets of what was finished are committed by itself: at intervals, before partitions are given up,
    and on closing. Finished is a record, or a batch, once the next was asked for."""
    auto_commit_interval_ms: int = whole(5_000, least=1)
    """How often; after an assignment sooner at first."""
    heartbeat_thread: bool = choice(False, True, False)
    """Whether a thread sends heartbeats while user code blocks the event loop, up to ``max_poll_interval_ms``."""
    stall_timeout_ms: int | None = optional_whole(least=1)
    """With a number, a consumer that could have got records but has got none for so long raises ConsumerStalled."""
    auto_offset_reset: AutoOffsetReset = attrs.field(default="latest", validator=_check_reset)
    """Where to begin without a position, or with one that is gone: ``"earliest"``, ``"latest"``, or so long ago as
    ``"by_duration:P7DT12H"`` says (ISO 8601, KIP-1106); ``"none"`` raises OffsetOutOfRange instead."""
    isolation_level: Literal["read_uncommitted", "read_committed"] = choice(
        "read_uncommitted", "read_uncommitted", "read_committed"
    )
    """Whether records of open and aborted transactions are shown."""
    fetch_min_bytes: int = whole(1, least=0)
    """How much a broker should gather before it answers a fetch."""
    fetch_max_bytes: int = whole(52_428_800, least=1)
    """How much one fetch may return, and how much fetched data the consumer holds unread."""
    fetch_max_wait_ms: int = whole(500)
    """How long a broker may gather."""
    max_partition_fetch_bytes: int = whole(1_048_576, least=1)
    """How much one fetch may return of one partition; a larger first batch comes whole (KIP-74)."""
    check_crcs: bool = choice(True, True, False)
    """Whether the checksum of every batch is verified."""

    @property
    def isolation(self) -> IsolationLevel:
        """``isolation_level`` as the wire says it."""
        return IsolationLevel[self.isolation_level.upper()]
