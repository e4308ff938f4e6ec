"""Logs events with named fields: the fields fill the message, and are attributes of the record for JSON loggers."""

import logging
import traceback
from collections.abc import Callable, Hashable, Mapping
from typing import Final

from ._printable import printable
from .repeated_trouble import RepeatedTrouble, TroubleReport
from .types import TopicPartition

__all__ = ("FIELDS", "EventLog", "TroubleLog")

FIELDS: Final[Mapping[str, str]] = {
    "api": "name of the request, such as `Metadata`",
    "batch_id": "number of Spark's micro-batch",
    "broker": "`host:port` of the broker",
    "client_id": "`client_id` of the client",
    "client_instance_id": "id of the client for the brokers' metrics (KIP-714)",
    "cluster_id": "id of the cluster",
    "correlation_id": "number of the request on its connection, which brokers log as well",
    "count": "how often it has failed, or how many there are",
    "delay": "seconds until the next attempt",
    "elapsed": "seconds that it took, or since the trouble began",
    "error": "class of the error, such as `ConnectionLost`; the message has the error's text",
    "generation": "generation of the group, or epoch of the member (KIP-848)",
    "group": "id of the group",
    "instance": "`group_instance_id` of a static member",
    "lane": "use of the connection: several to one broker do not delay one another",
    "mechanism": "SASL mechanism",
    "member_id": "id of the group's member",
    "node_id": "id of the broker",
    "others": "how many others have the same trouble, which the line covers",
    "partition": "number of the partition",
    "partitions": "partitions in words, such as `flights-0, flights-1 and 7 more`",
    "producer_epoch": "epoch of the producer",
    "producer_id": "id of the producer",
    "protocol": "assignor of the group, or protocol of the group's members",
    "query": "id of Spark's query",
    "reason": "why it happened, in words",
    "records": "number of records",
    "size": "bytes",
    "topic": "name of the topic",
    "topic_id": "id of the topic",
    "topics": "topics in words",
    "transactional_id": "`transactional_id` of the producer",
    "version": "version of the request",
}
"""The names of all fields and what they mean. None is an attribute of :class:`logging.LogRecord`."""


class EventLog:
    """A logger whose lines have named fields.

    A line is ``log.info("joined %(group)r", group="g")``: the message names its fields, and the record has the
    attribute ``group``. Fields of one line may be missing in its message. Values become plain ones for the record: an
    error becomes the name of its class, ``partition=TopicPartition("a", 0)`` becomes ``topic`` and ``partition``, and a
    field that is None is left out. ``text`` has parts of the message that are no fields.

    Args:
        name: the logger's name.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def is_enabled(self, level: int) -> bool:
        """Return whether lines of this level are logged."""
        return self._logger.isEnabledFor(level)

    def debug(self, message: str, /, *, text: Mapping[str, object] | None = None, **fields: object) -> None:
        """Log what a bug report needs."""
        if self._logger.isEnabledFor(logging.DEBUG):
            self._write(logging.DEBUG, message, text, fields)

    def info(self, message: str, /, *, text: Mapping[str, object] | None = None, **fields: object) -> None:
        """Log what an operator needs to know once."""
        if self._logger.isEnabledFor(logging.INFO):
            self._write(logging.INFO, message, text, fields)

    def warning(
        self,
        message: str,
        /,
        *,
        text: Mapping[str, object] | None = None,
        exc_info: BaseException | None = None,
        **fields: object,
    ) -> None:
        """Log trouble that needs attention; ``exc_info`` is as for :meth:`error`."""
        if self._logger.isEnabledFor(logging.WARNING):
            self._write(logging.WARNING, message, text, fields, exc_info)

    def error(
        self,
        message: str,
        /,
        *,
        text: Mapping[str, object] | None = None,
        exc_info: BaseException | None = None,
        **fields: object,
    ) -> None:
        """Log lost work, or the end of a client; ``exc_info`` is the error whose traceback the line has."""
        if self._logger.isEnabledFor(logging.ERROR):
            self._write(logging.ERROR, message, text, fields, exc_info)

    def log(self, level: int, message: str, /, *, text: Mapping[str, object] | None = None, **fields: object) -> None:
        """Log at a level that depends on the event."""
        if self._logger.isEnabledFor(level):
            self._write(level, message, text, fields)

    def _write(
        self,
        level: int,
        message: str,
        text: Mapping[str, object] | None,
        fields: Mapping[str, object],
        exc_info: BaseException | None = None,
        depth: int = 3,
    ) -> None:
        named = {name: _safe(value) for name, value in ({**text, **fields} if text else fields).items()}
        # With one mapping as argument, logging fills the names in the message.
        arguments = (named,) if named else ()
        try:
            self._logger.log(level, message, *arguments, extra=_plain(fields), exc_info=exc_info, stacklevel=depth)
        except Exception:  # of a handler or filter of the program, which must not stop the work that the line is about
            if logging.raiseExceptions:  # as for the errors that handlers of logging catch themselves
                traceback.print_exc()


class TroubleLog:
    """A log of failures that repeat: the first, one per growing interval with a count, and the end with a count.

    All other failures are logged at DEBUG. The keys, such as brokers, are counted apart, up to a limit; see
    :class:`.RepeatedTrouble`.

    Args:
        log: the log to write to.
        now: the clock, in seconds.
        first: the level of the first failure; DEBUG if a failure is trouble only once it has lasted for 10 s.
        lasting: the level of the failures that are logged later.
        tracebacks: whether the lines of failures have the traceback of their error.
    """

    def __init__(
        self,
        log: EventLog,
        now: Callable[[], float],
        *,
        first: int = logging.WARNING,
        lasting: int = logging.WARNING,
        tracebacks: bool = False,
    ) -> None:
        self._log, self._now, self._first, self._lasting = log, now, first, lasting
        self._tracebacks = tracebacks
        self._trouble = RepeatedTrouble(at_once=first > logging.DEBUG)

    def __bool__(self) -> bool:
        """Return whether there may be trouble that can end."""
        return bool(self._trouble)

    def failed(
        self, key: Hashable, message: str, /, *, text: Mapping[str, object] | None = None, **fields: object
    ) -> None:
        """Log a failure of ``key``, at the level that its repetition demands."""
        report = self._trouble.failed(key, self._now())
        level = logging.DEBUG if report is None else self._first if report.count == 1 else self._lasting
        if self._log.is_enabled(level):
            counts = " (%(count)d failures in %(elapsed).0f s)" if report is not None and report.count > 1 else ""
            self._write(level, message, counts, report, text, fields)

    def ended(
        self, key: Hashable, message: str, /, *, text: Mapping[str, object] | None = None, **fields: object
    ) -> bool:
        """Log at INFO that ``key`` works again, if its failures were logged; return whether they were."""
        if not self._trouble or (report := self._trouble.ended(key, self._now())) is None:
            return False
        if self._log.is_enabled(logging.INFO):
            failures = "failures" if report.count > 1 else "failure"
            self._write(logging.INFO, message, f" after %(count)d {failures} in %(elapsed).0f s", report, text, fields)
        return True

    def _write(
        self,
        level: int,
        message: str,
        counts: str,
        report: TroubleReport | None,
        text: Mapping[str, object] | None,
        fields: dict[str, object],
    ) -> None:
        if report is not None:
            fields |= {"count": report.count, "elapsed": report.elapsed}
            if report.others:
                fields["others"] = report.others
                message += "; so %(others)d others"
            message += counts
        error = fields.get("error") if self._tracebacks else None
        exc_info = error if isinstance(error, BaseException) else None
        self._log._write(level, message, text, fields, exc_info, depth=4)


class _SafeText:
    """An error or another object whose text in a line of the log has no control characters."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return printable(str(self._value))

    def __repr__(self) -> str:
        return printable(repr(self._value))


def _safe(value: object) -> object:
    """Return the value of a field for the message of a line, which brokers may not break: numbers stay as they are."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return printable(value) if isinstance(value, str) else _SafeText(value)


def _plain(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields as values of JSON; see :class:`EventLog`."""
    plain: dict[str, object] = {}
    for name, value in fields.items():
        if value is None:
            continue
        if isinstance(value, TopicPartition):
            plain["topic"], plain["partition"] = value
        elif isinstance(value, BaseException):
            plain[name] = type(value).__name__
        else:
            plain[name] = value if isinstance(value, bool | int | float) else printable(str(value))
    return plain
