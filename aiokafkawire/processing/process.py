"""Makes the parts of one call of ``Client.process``, and runs them."""

import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs

from ..argument_checks import INT32, check_flag, check_seconds, check_stop, is_integer, items_of, shown
from ..cluster.cluster import Cluster
from ..config import ConsumerOptions
from ..consumer.consumer import Consumer
from ..errors import ConfigError, DeliveryFailed, UsageError
from ..producer.producer import Producer
from ..records.deserialization import RecordDeserializer
from ..types import SubscriptionPattern, check_topic_name
from .failed_record_writer import FailedRecordWriter
from .group_source import GroupSource
from .handler_call import HandlerCall
from .handler_pool import HandlerPool
from .health import ProcessingHealth
from .lanes import Lanes, Ordering
from .processing_run import OnProgress, ProcessingRun, require_main_thread
from .record_source import RecordSource
from .retry import Retry
from .retry_topics import RetryTopic, RetryTopics, topics_to_read
from .summary import ProcessSummary
from .undeserializable_records import SkippedRecords

if TYPE_CHECKING:
    from ..share.share_consumer import ShareConsumer

__all__ = ("ProcessSettings", "check_producer_options", "checked_topics", "consumer_options", "run_group", "run_share")

_IN_HAND: Final = 1000
"""The smallest default of ``max_in_hand``."""
_CLOSE_SECONDS: Final = 1.0
"""How long closing may wait for failed records of cancelled calls."""
_ORDERINGS: Final = ("key", "partition", "none")


@attrs.frozen(kw_only=True)
class ProcessSettings:
    """The arguments of :meth:`Client.process`, which has the description of each.

    Raises:
        UsageError, ConfigError: an argument is wrong.
    """

    handle: Callable[[Any], object]
    group_id: str
    concurrency: int
    ordering: Ordering
    max_batch: int | None
    retry: Retry
    retry_topics: tuple[RetryTopic, ...]
    dead_letter_topic: str | None
    skips_undeserializable: bool
    """Whether records that cannot be deserialized count as finished (``on_error="skip"``)."""
    deserializer: RecordDeserializer
    handler_timeout: float | None
    max_in_hand: int | None
    commit_interval_ms: int
    stop: anyio.Event | None
    drain_timeout: float
    handle_signals: bool
    on_progress: OnProgress | None
    healths: dict[str, Callable[[], ProcessingHealth]]
    """What the client's health has of its calls, by the names of their consumers."""
    max_poll_interval_ms: int

    def __attrs_post_init__(self) -> None:
        if not callable(self.handle):
            raise UsageError(f"handle must be a function that takes a record, got {shown(self.handle)}")
        _check_takes_one(self.handle)
        if _yields(self.handle):
            raise UsageError(f"handle must not yield, since nothing would run it: got {shown(self.handle)}")
        if not isinstance(self.group_id, str) or not self.group_id:
            raise ConfigError("process() needs a group_id: the group whose members share the records")
        for name, number in (
            ("concurrency", self.concurrency),
            ("max_batch", 1 if self.max_batch is None else self.max_batch),
            ("max_in_hand", 1 if self.max_in_hand is None else self.max_in_hand),
            ("commit_interval_ms", self.commit_interval_ms),
        ):
            if not is_integer(number, 1, INT32):
                raise ConfigError(f"{name} must be an integer of at least 1, got {shown(number)}")
        if self.ordering not in _ORDERINGS:
            raise ConfigError(f"ordering must be 'key', 'partition' or 'none', got {shown(self.ordering)}")
        if not isinstance(self.retry, Retry):
            raise ConfigError(f"retry must be a Retry, got {shown(self.retry)}; Retry(attempts=1) tries once")
        if self.dead_letter_topic is not None:
            check_topic_name(self.dead_letter_topic)
        check_seconds("handler_timeout", self.handler_timeout)
        check_seconds("drain_timeout", self.drain_timeout, optional=False)
        check_flag("handle_signals", self.handle_signals)
        check_stop(self.stop)
        if self.on_progress is not None and not callable(self.on_progress):
            raise UsageError(f"on_progress must be a function that takes a summary, got {shown(self.on_progress)}")
        if self.handle_signals:
            require_main_thread()

    @property
    def in_hand_limit(self) -> int:
        """The largest number of records in hand."""
        if self.max_in_hand is not None:
            return self.max_in_hand
        return max(_IN_HAND, 2 * self.concurrency * (self.max_batch or 1))


async def run_group(
    cluster: Cluster,
    settings: ProcessSettings,
    topics: Sequence[Any],
    consumer: Consumer[Any, Any],
    producer: Producer[Any, Any] | None,
) -> ProcessSummary:
    """Process the records of these topics as a member of a group; open and close the consumer and the producer.

    Raises:
        Exception: the error of a handler, or of the client, that has ended it.
    """
    lanes: Lanes[Any] = Lanes(settings.ordering, settings.concurrency, settings.max_batch or 1)
    source = GroupSource(
        cluster,
        consumer,
        topics_to_read(topics, settings.retry_topics),
        lanes,
        retry_topics=RetryTopics(settings.retry_topics),
        dead_letter_topic=settings.dead_letter_topic,
        deserializer=settings.deserializer,
        max_in_hand=settings.in_hand_limit,
        commit_interval_ms=settings.commit_interval_ms,
    )
    async with _failed_record_writer(settings, producer) as writer, consumer:
        return await _run(cluster, settings, consumer.name, lanes, source, writer)


async def run_share(
    cluster: Cluster,
    settings: ProcessSettings,
    consumer: "ShareConsumer[Any, Any]",
    producer: Producer[Any, Any] | None,
) -> ProcessSummary:
    """Process the records of a share consumer; open and close the consumer and the producer.

    Raises:
        Exception: the error of a handler, or of the client, that has ended it.
    """
    from .share_source import ShareSource

    lanes: Lanes[Any] = Lanes("none", settings.concurrency, settings.max_batch or 1)
    limit = (
        2 * settings.concurrency * (settings.max_batch or 1) if settings.max_in_hand is None else settings.max_in_hand
    )
    source = ShareSource(
        consumer,
        settings.group_id,
        lanes,
        deserializer=settings.deserializer,
        max_in_hand=limit,
        now=cluster.runtime.now,
    )
    async with _failed_record_writer(settings, producer) as writer, consumer:
        return await _run(cluster, settings, consumer.name, lanes, source, writer)


async def _run(
    cluster: Cluster,
    settings: ProcessSettings,
    name: str,
    lanes: Lanes[Any],
    source: RecordSource,
    writer: FailedRecordWriter | None,
) -> ProcessSummary:
    call = HandlerCall(
        cluster,
        settings.handle,
        group=settings.group_id,
        takes_batch=settings.max_batch is not None,
        timeout=settings.handler_timeout,
        threads=settings.concurrency,
    )
    run = ProcessingRun(
        source,
        partial(_require_topics, cluster, settings),
        lanes,
        drain_timeout=settings.drain_timeout,
        stop=settings.stop,
        handle_signals=settings.handle_signals,
        on_progress=settings.on_progress,
    )
    run.pool = HandlerPool(
        cluster,
        lanes,
        call,
        settings.retry,
        retry_topics=RetryTopics(settings.retry_topics),
        dead_letter_topic=settings.dead_letter_topic,
        writer=writer,
        concurrency=settings.concurrency,
        skipped=SkippedRecords(cluster.runtime.now) if settings.skips_undeserializable else None,
        source=source,
        on_failed=run.work_failed,
    )
    limit = settings.max_poll_interval_ms / 1000 if settings.handler_timeout is None else settings.handler_timeout
    settings.healths[name] = partial(run.health, settings.group_id, limit)
    try:
        return await run.run()
    finally:
        del settings.healths[name]


async def _require_topics(cluster: Cluster, settings: ProcessSettings) -> None:
    """Wait until the topics for failed records exist.

    Raises:
        TopicNotReady: one does not.
    """
    deadline = cluster.deadline(cluster.config.default_api_timeout_ms / 1000)
    for topic in (*(topic.name for topic in settings.retry_topics), settings.dead_letter_topic):
        if topic is not None:
            await cluster.metadata.topic(topic, deadline)


@asynccontextmanager
async def _failed_record_writer(
    settings: ProcessSettings, producer: Producer[Any, Any] | None
) -> AsyncIterator[FailedRecordWriter | None]:
    """Open the producer of failed records, and close it in the end."""
    if producer is None:
        yield None
        return
    await producer.__aenter__()
    try:
        yield FailedRecordWriter(producer, settings.group_id, RetryTopics(settings.retry_topics))
    finally:
        # The failed records that are not written are not committed, so closing need not report them.
        with suppress(DeliveryFailed):
            await producer._close(_CLOSE_SECONDS)


def _check_takes_one(handle: Callable[[Any], object]) -> None:
    """Raise UsageError if the handler cannot be called with one argument."""
    try:
        signature = inspect.signature(handle)
    except (TypeError, ValueError):  # as of some functions in C
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise UsageError(f"handle must be a function that takes one argument, and {shown(handle)}: {error}") from None


def _yields(handle: Callable[[Any], object]) -> bool:
    """Return whether a function, or the ``__call__`` of an object, is a generator function."""
    calls: tuple[object, ...] = handle, type(handle).__call__
    return any(inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call) for call in calls)


def check_producer_options(options: Mapping[str, Any]) -> None:
    """Check the options of the producer that writes failed records.

    Raises:
        ConfigError: one would lose the records, or refuse them.
    """
    if options.get("acks") == 0:
        raise ConfigError("producer_options: acks=0 would lose failed records: a record is finished once it is written")
    for name in ("transactional_id", "key_serializer", "value_serializer"):
        if options.get(name) is not None:
            raise ConfigError(
                f"producer_options: {name} is not for failed records, which are written as they were read"
            )


def checked_topics(topics: object, group_protocol: object) -> Sequence[str | SubscriptionPattern]:
    """Return the topics to subscribe to.

    Raises:
        UsageError: they are no topics, or a pattern that only members of the consumer protocol may have.
    """
    if isinstance(topics, SubscriptionPattern):
        if group_protocol not in ("consumer", "auto"):
            raise UsageError("process() takes a SubscriptionPattern with group_protocol='consumer': brokers match it")
        return (topics,)
    names = (topics,) if isinstance(topics, str) else tuple(items_of("topics", topics, "'orders' or ['orders']"))
    if not names:
        raise UsageError("process() needs a topic to read")
    for name in names:
        check_topic_name(name)
    return names


def consumer_options(options: Mapping[str, Any]) -> ConsumerOptions:
    """Return the options of the consumer of :meth:`Client.process`.

    Raises:
        ConfigError: an option is one that process() sets itself.
    """
    for name in ("enable_auto_commit", "auto_commit_interval_ms"):
        if name in options:
            raise ConfigError(f"{name} is not for process(), which commits what is finished (commit_interval_ms)")
    for name in ("assignors", "interceptors"):
        if name in options:
            raise ConfigError(f"{name} are for client.consumer() alone: process() has no such argument")
    defaults = ConsumerOptions(auto_offset_reset="earliest")
    return ConsumerOptions(**{**defaults, **options, "enable_auto_commit": False})  # type: ignore[typeddict-item]
