"""The options of ``spark.read.format("aiokafkawire")`` and its writers, with the JVM source's names and meanings."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal

import attrs

from ..config.properties import KafkaSettings
from ..errors import ConfigError, UsageError
from ..types import TopicPartition, check_topic_name
from .offsets import EARLIEST, LATEST, Offsets, parse_assign, parse_offsets, parse_times
from .settings import read_settings, write_settings
from .value_format import VALUE_OPTIONS, ValueFormat, read_value_format

__all__ = (
    "Bound",
    "ReadOptions",
    "TopicSelection",
    "WriteOptions",
    "read_options",
    "reading_options",
    "write_options",
)

_READING: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "includeHeaders",
    "pushFilters",
    *VALUE_OPTIONS,
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)
_WRITING: Final = ("topic", "includeHeaders")
_SERVERS: Final = "kafka.bootstrap.servers"
_SPARKS_OWN: Final = frozenset({"checkpointlocation", "path", "queryname"})
"""Options of the query, which Spark also passes to a sink."""
_STRATEGIES: Final = ("subscribe", "subscribePattern", "assign")
_DURATION: Final = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?")
_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, None: 1e-3}


@attrs.frozen
class TopicSelection:
    """The topics to read: by name, by a pattern that matches whole names, or as single partitions."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics that match {self.pattern!r}"
        return ", ".join(self.names) or ", ".join(map(str, self.assigned))


@attrs.frozen
class Bound:
    """The start or end of reading; exactly one of ``everywhere``, ``offsets``, ``times`` and ``time`` is set.

    ``everywhere`` and ``time`` apply to all partitions, ``offsets`` and ``times`` name every partition. Times are ms
    since the epoch.
    """

    everywhere: int | None = None
    """EARLIEST or LATEST, for all partitions."""
    offsets: Offsets | None = None
    times: Offsets | None = None
    time: int | None = None
    option: str = "startingOffsets"
    """The name of the option that sets this bound, for errors."""


@attrs.frozen(kw_only=True)
class ReadOptions:
    """The options of a source, as plain data, which is pickled for every task."""

    settings: KafkaSettings
    topics: TopicSelection
    start: Bound
    end: Bound
    too_late: Literal["error", "latest"]
    """The handling of a starting time after the last record (``startingOffsetsByTimestampStrategy``)."""
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay: float
    """The maximum wait for ``min_offsets_per_trigger``, in seconds."""
    include_headers: bool
    values: ValueFormat | None
    """The form of the values; None for values as bytes."""
    value_struct: Any = None
    """The Arrow type of the values' structs, once Spark has parsed their schema."""
    push_filters: bool
    """Whether a batch query's conditions narrow what is read."""
    poll_timeout: float
    """Seconds without records after which a task fails."""


@attrs.frozen
class WriteOptions:
    """The options of a sink. ``topic``, if set, overrides the column ``topic``."""

    settings: KafkaSettings
    topic: str | None


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """Read and check the options of a source.

    Raises:
        ConfigError: an option is missing, unknown, invalid, or contradicts another; the message names the option.
    """
    given = reading_options(options)
    settings = read_settings(options)
    start = _start(given, EARLIEST if not streaming else LATEST)
    end = _end(given)
    if streaming and end.option.lower() in given:
        raise ConfigError(f"{end.option}: a streaming query has no end")
    if streaming and _boolean(given, "pushFilters", default=False):
        raise ConfigError("pushFilters: Spark passes the conditions of batch queries only")
    if not streaming:
        _check_batch(start, end)
    strategy = given.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(f"startingOffsetsByTimestampStrategy must be error or latest, got {strategy!r}")
    minimum, maximum = (_integer(given, f"{name}OffsetsPerTrigger") for name in ("min", "max"))
    if minimum is not None and maximum is not None and minimum > maximum:
        raise ConfigError(f"minOffsetsPerTrigger ({minimum}) must not be more than maxOffsetsPerTrigger ({maximum})")
    for name in ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs"):
        _integer(given, name, minimum=0)
    return ReadOptions(
        settings=settings,
        topics=_topics(given),
        start=start,
        end=end,
        too_late="latest" if strategy == "latest" else "error",
        fail_on_data_loss=_boolean(given, "failOnDataLoss", default=True),
        min_partitions=_integer(given, "minPartitions"),
        max_records_per_partition=_integer(given, "maxRecordsPerPartition"),
        max_offsets_per_trigger=maximum,
        min_offsets_per_trigger=minimum,
        max_trigger_delay=_seconds(given.get("maxtriggerdelay", "15m"), "maxTriggerDelay"),
        include_headers=_boolean(given, "includeHeaders", default=False),
        values=read_value_format(given),
        push_filters=_boolean(given, "pushFilters", default=False),
        poll_timeout=(_integer(given, "kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
    )


def reading_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a source except ``kafka.*``, with names in lower case.

    Raises:
        ConfigError: an option is unknown; the message suggests a known one.
    """
    return _known(options, _READING)


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Read and check the options of a sink. Raise as :func:`read_options`."""
    given = _known({key: text for key, text in options.items() if key.lower() not in _SPARKS_OWN}, _WRITING)
    topic = given.get("topic")
    if topic is not None:
        _topic(topic, "topic")
    _boolean(given, "includeHeaders", default=False)
    return WriteOptions(write_settings(options), topic)


def _known(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the options except ``kafka.*``, with names in lower case as Spark passes them; reject unknown options."""
    given = {key.lower(): text for key, text in options.items() if not key.lower().startswith("kafka.")}
    known = {name.lower(): name for name in names}
    for key in given:
        if key not in known:
            near = get_close_matches(key, [*known, _SERVERS], n=1)
            hint = (
                f"did you mean {known.get(near[0], near[0])}?" if near else f"known are {', '.join(names)}, and kafka.*"
            )
            raise ConfigError(f"unknown option {key!r}: {hint}")
    return given


def _topics(given: Mapping[str, str]) -> TopicSelection:
    strategies = [name for name in _STRATEGIES if name.lower() in given]
    if len(strategies) != 1:
        got = " and ".join(strategies) or "none"
        raise ConfigError(f"exactly one of {', '.join(_STRATEGIES)} must be set, got {got}")
    strategy = strategies[0]
    text = given[strategy.lower()].strip()
    if strategy == "assign":
        return TopicSelection(assigned=parse_assign(text))
    if strategy == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(f"subscribePattern must be a regular expression, got {text!r}: {error}") from error
        if not text:
            raise ConfigError("subscribePattern must not be empty")
        return TopicSelection(pattern=text)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ConfigError("subscribe must name a topic, or several separated by commas")
    for name in names:
        _topic(name, "subscribe")
    return TopicSelection(names=names)


def _start(given: Mapping[str, str], default: int) -> Bound:
    """Read the start: a time for all partitions, or else times by partition, or else offsets, or else ``default``."""
    return _bound(given, "starting", default)


def _end(given: Mapping[str, str]) -> Bound:
    return _bound(given, "ending", LATEST)


def _bound(given: Mapping[str, str], which: str, default: int) -> Bound:
    time, times, offsets = f"{which}timestamp", f"{which}offsetsbytimestamp", f"{which}offsets"
    if time in given:
        return Bound(time=_time(given[time], _named(time)), option=_named(time))
    if times in given:
        return Bound(times=parse_times(given[times], _named(times)), option=_named(times))
    text = given.get(offsets, "").strip()
    if text.lower() in ("", "earliest", "latest"):
        named = {"earliest": EARLIEST, "latest": LATEST}
        return Bound(everywhere=named.get(text.lower(), default), option=_named(offsets))
    return Bound(offsets=parse_offsets(text, _named(offsets)), option=_named(offsets))


def _check_batch(start: Bound, end: Bound) -> None:
    if start.everywhere == LATEST or (start.offsets and LATEST in start.offsets.values()):
        raise ConfigError("startingOffsets: a batch query cannot start at latest, where there is nothing to read")
    if end.everywhere == EARLIEST or (end.offsets and EARLIEST in end.offsets.values()):
        raise ConfigError("endingOffsets: a batch query cannot end at earliest, where there is nothing to read")
    for partition, offset in (start.offsets or {}).items():
        end_offset = (end.offsets or {}).get(partition, offset)
        if 0 <= end_offset < offset:
            raise ConfigError(f"startingOffsets: {partition} starts at {offset}, after its end at {end_offset}")


def _named(lower: str) -> str:
    return next((name for name in _READING if name.lower() == lower), lower)


def _integer(given: Mapping[str, str], name: str, *, minimum: int = 1) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isascii() or not text.strip().isdecimal() or int(text) < minimum:
        raise ConfigError(f"{name} must be an integer of at least {minimum}, got {text!r}")
    return int(text)


def _time(text: str, name: str) -> int:
    if not text.strip().isascii() or not text.strip().isdecimal():
        raise ConfigError(f"{name} must be ms since the epoch, got {text!r}")
    return int(text)


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} must be true or false, got {text!r}")
    return text == "true"


def _seconds(text: str, name: str) -> float:
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise ConfigError(f"{name} must be a duration such as 500ms, 30s or 15m, got {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def _topic(name: str, option: str) -> None:
    try:
        check_topic_name(name)
    except UsageError as error:
        raise ConfigError(f"{option}: {error}") from error
