"""Interceptors: objects that see, and may change, the records that a producer sends or a consumer returns.

``kafka.producer(interceptors=[...])`` takes producer interceptors, and ``kafka.consumer(interceptors=[...])`` takes
consumer interceptors. They are called in the order of the list, on the client's event loop, and must not wait.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from reprlib import Repr
from typing import Any, Final, Generic, TypeVar

import attrs

from .argument_checks import methods_of, shown
from .errors import ConfigError
from .event_log import EventLog, TroubleLog
from .records.batch import ConsumerRecord
from .types import Header, OffsetAndMetadata, RecordMetadata, TopicPartition

__all__ = (
    "ConsumerInterceptor",
    "ConsumerInterceptors",
    "ProducerInterceptor",
    "ProducerInterceptors",
    "ProducerRecord",
)

K = TypeVar("K")
V = TypeVar("V")

_log = EventLog("aiokafkawire.interceptors")


@attrs.frozen(kw_only=True)
class ProducerRecord(Generic[K, V]):
    """A record that the user sends, before its key and value are serialized and its partition is chosen.

    To change it, return ``attrs.evolve(record, value=...)`` or :meth:`with_header`.
    """

    topic: str
    value: V | None = None
    key: K | None = None
    partition: int | None = None
    """The partition that the user has given; None if the partitioner chooses."""
    timestamp_ms: int | None = None
    """The timestamp that the user has given, in ms since the epoch; None for the current time."""
    headers: tuple[Header, ...] = ()

    def with_header(self, name: str, content: bytes | None) -> "ProducerRecord[K, V]":
        """Return this record with one more header, after the others."""
        return attrs.evolve(self, headers=(*self.headers, (name, content)))


class ProducerInterceptor:
    """The base of producer interceptors: override the methods that you need.

    An exception of a method is logged, and is not raised to the user.
    """

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Return the record to send: this one, or a changed one, which the next interceptor gets.

        If this raises, or returns something else, the record goes on as it was.
        """
        return record

    def on_acknowledgement(
        self, metadata: RecordMetadata, error: Exception | None, headers: tuple[Header, ...]
    ) -> None:
        """Take notice that a record was acknowledged, or has failed, even before it was sent.

        Args:
            metadata: as the user gets it. After an error, ``offset`` and ``timestamp`` are -1, and so is ``partition``
                if it was not chosen yet.
            error: why the record has failed; None if it was acknowledged.
            headers: the record's headers, as the last interceptor has left them.
        """

    def close(self) -> None:
        """Release what the interceptor holds: the producer is closed."""


class ConsumerInterceptor:
    """The base of consumer interceptors: override the methods that you need.

    An exception of a method is logged, and is not raised to the user.
    """

    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> Iterable[ConsumerRecord[Any, Any]]:
        """Return the records for the user: these, fewer, others or more, which the next interceptor gets.

        Positions and commits count the records that were left out as read. If this raises, or returns something else,
        the records go on as they were.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Take notice that the group's coordinator has accepted these offsets, of any commit of this consumer."""

    def close(self) -> None:
        """Release what the interceptor holds: the consumer is closed."""


_PREFIX: Final = "on_"
_LISTENERS: Final = ("on_assigned", "on_revoked", "on_lost")
"""The methods of rebalance listeners, which an interceptor may be as well."""
_PRODUCER_METHODS: Final = ("on_send", "on_acknowledgement", "close")
_CONSUMER_METHODS: Final = ("on_consume", "on_commit", "close")
_KNOWN: Final = (*_PRODUCER_METHODS, *_CONSUMER_METHODS, *_LISTENERS)


_EXITS: Final = (KeyboardInterrupt, SystemExit)
"""The exceptions of interceptors that are raised. A CancelledError is not: it would end the task that calls them."""

_REPR: Final = Repr()
"""Shows interceptors, also those whose own ``__repr__`` fails."""
_REPR.maxother = 200


class _Chain:
    """Interceptors in order, and the methods that they have.

    Raises:
        ConfigError: an interceptor has none of the methods, one that is a coroutine function, or one whose name begins
            with ``on_`` and is unknown.
    """

    def __init__(
        self, interceptors: Iterable[object], now: Callable[[], float], base: type[Any], methods: tuple[str, ...]
    ) -> None:
        self._trouble = TroubleLog(_log, now, tracebacks=True)
        named = f"aiokafkawire.interceptors.{base.__name__}"
        if isinstance(interceptors, str | Mapping) or not isinstance(interceptors, Iterable):
            raise ConfigError(f"interceptors must be a list of objects, such as [MyAudit()], got {shown(interceptors)}")
        self._methods: dict[str, list[Callable[..., Any]]] = {name: [] for name in methods}
        for interceptor in interceptors:
            found = {name: method for name in methods if callable(method := getattr(interceptor, name, None))}
            _check_names(interceptor)
            if isinstance(interceptor, type) or not found.keys() - {"close"}:
                raise ConfigError(f"an interceptor must be an object with methods of {named}, got {shown(interceptor)}")
            for name, method in found.items():
                if inspect.iscoroutinefunction(method):
                    raise ConfigError(
                        f"{name} of {type(interceptor).__name__} must not be a coroutine function: interceptors do not "
                        "wait"
                    )
                if getattr(method, "__func__", None) is not vars(base)[name]:
                    self._methods[name].append(method)

    def _failed(self, method: Callable[..., Any], consequence: str) -> None:
        message, text = "%(method)s has failed; %(consequence)s", {"method": _name(method), "consequence": consequence}
        self._trouble.failed(id(method), message, text=text, error=sys.exception())

    def _worked(self, method: Callable[..., Any]) -> None:
        if self._trouble:  # a method has failed before
            self._trouble.ended(id(method), "%(method)s works again", text={"method": _name(method)})

    def close(self) -> None:
        """Call close() of each interceptor, once."""
        methods, self._methods["close"] = self._methods["close"], []
        for method in methods:
            try:
                method()
            except _EXITS:
                raise
            except BaseException:
                self._failed(method, "the next interceptor is closed")


class ProducerInterceptors(_Chain):
    """The interceptors of one producer. No method raises an interceptor's exception.

    Args:
        interceptors: the objects, in the order in which they are called.
        now: returns the time in seconds, by which failures that repeat are logged.
    """

    def __init__(self, interceptors: Iterable[object], now: Callable[[], float]) -> None:
        super().__init__(interceptors, now, ProducerInterceptor, _PRODUCER_METHODS)

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Return the record that the interceptors make of this one."""
        for method in self._methods["on_send"]:
            try:
                changed = method(record)
                if not isinstance(changed, ProducerRecord):
                    raise TypeError(f"on_send must return a ProducerRecord, got {shown(changed)}")
            except _EXITS:
                raise
            except BaseException:
                self._failed(method, f"a record for topic {record.topic!r:.100} goes on as it was before the call")
            else:
                record = changed
                self._worked(method)
        return record

    def on_acknowledgement(
        self, metadata: RecordMetadata, error: Exception | None, headers: tuple[Header, ...]
    ) -> None:
        """Call the interceptors with a record's result."""
        for method in self._methods["on_acknowledgement"]:
            try:
                method(metadata, error, headers)
            except _EXITS:
                raise
            except BaseException:
                self._failed(method, f"the result of a record of topic {metadata.topic!r:.100} stays as it is")
            else:
                self._worked(method)


class ConsumerInterceptors(_Chain):
    """The interceptors of one consumer, as :class:`ProducerInterceptors`."""

    def __init__(self, interceptors: Iterable[object], now: Callable[[], float]) -> None:
        super().__init__(interceptors, now, ConsumerInterceptor, _CONSUMER_METHODS)

    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        """Return the records that the interceptors make of these."""
        for method in self._methods["on_consume"]:
            try:
                changed = list(method(list(records)))
                for record in changed:
                    if not isinstance(record, ConsumerRecord):
                        raise TypeError(f"on_consume must return ConsumerRecords, got {shown(record)}")
            except _EXITS:
                raise
            except BaseException:
                self._failed(method, f"{len(records)} records go on as they were before the call")
            else:
                records = changed
                self._worked(method)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Call the interceptors with offsets that were committed."""
        for method in self._methods["on_commit"]:
            try:
                method(dict(offsets))
            except _EXITS:
                raise
            except BaseException:
                self._failed(method, f"the commit of {len(offsets)} offsets stays as it is")
            else:
                self._worked(method)


def _check_names(interceptor: object) -> None:
    """Raise ConfigError if an interceptor has a method that looks like one of ours, and would never be called."""
    for name in methods_of(interceptor):
        if name.startswith(_PREFIX) and name not in _KNOWN:
            near = get_close_matches(name, _KNOWN, 1)
            known = [each for each in _KNOWN if each.startswith(_PREFIX) and each not in _LISTENERS]
            hint = f"did you mean {near[0]}?" if near else f"the methods are {', '.join(known)}"
            raise ConfigError(f"{type(interceptor).__name__} has an unknown method {name} of interceptors: {hint}")


def _name(method: Callable[..., Any]) -> str:
    name, interceptor = getattr(method, "__name__", "a method"), getattr(method, "__self__", method)
    return f"{name} of the interceptor {_REPR.repr_instance(interceptor, 1)}"
