"""The check, on the driver, that a sink's topic exists: otherwise each task would wait for the topic for a minute."""

import time
from typing import Final

import anyio

from .. import blocking
from ..client import Client
from ..errors import (
    BrokerError,
    InvalidTopicException,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    broker_error,
)
from ..event_log import EventLog
from .lookup import until_brokers_agree
from .options import WriteOptions

__all__ = ("check_topic",)

_log = EventLog("aiokafkawire.spark")

_FINAL: Final = (UnknownTopicOrPartition, TopicAuthorizationFailed, InvalidTopicException)
"""The errors that fail every task."""
_TIMEOUT: Final = 10.0
"""Seconds to wait for a broker's answer; without an answer the tasks find out."""
_RECENT: Final = 60.0
"""Seconds for which a topic that was found needs no other check: Spark asks for a sink twice in each micro-batch."""

_found: dict[tuple[str, str], float] = {}
"""The topics found by this process: the bootstrap servers and the topic, and when it was found."""


def check_topic(options: WriteOptions) -> None:
    """Check that the topic of a sink exists.

    It passes without the option ``topic``, since rows then name their topics, and with
    ``kafka.allow.auto.create.topics``. It also passes if no broker answers: the tasks retry that.

    Raises:
        UnknownTopicOrPartition: the topic does not exist.
        TopicAuthorizationFailed, InvalidTopicException: the client may not describe the topic, or its name is invalid.
    """
    settings, topic = options.settings, options.topic
    if topic is None or settings.client.get("allow_auto_create_topics"):
        return
    key = settings.bootstrap_servers, topic
    if time.monotonic() - _found.get(key, float("-inf")) < _RECENT:
        return
    try:
        with blocking.Client(settings.bootstrap_servers, **settings.client) as kafka:
            error = kafka.loop.call(_error_of, kafka.asynchronous, topic)
    except KafkaError as unanswered:
        _log.warning(
            "cannot check that topic %(topic)r exists, so the tasks do: %(reason)s", topic=topic, reason=unanswered
        )
        return
    if isinstance(error, UnknownTopicOrPartition):
        creates = "set kafka.allow.auto.create.topics=true where brokers create topics (auto.create.topics.enable)"
        error.add_note(
            f"the query writes to topic {topic!r}, which must exist before the query begins: create it, or {creates}"
        )
    if isinstance(error, _FINAL):
        raise error
    _found[key] = time.monotonic()


async def _error_of(kafka: Client, topic: str) -> BrokerError | None:
    """Return the error of a topic, if any. Repeat the lookup for up to 3 s, since a broker may not know a new topic."""
    error = None
    for wait in until_brokers_agree():
        response = await kafka._cluster.ask_metadata([topic], kafka._cluster.deadline(_TIMEOUT))
        code = next((found.error_code for found in response.topics if found.name == topic), 0)
        error = broker_error(code, f"describing topic {topic!r}") if code else None
        if wait is None or not isinstance(error, UnknownTopicOrPartition):
            break
        await anyio.sleep(wait)
    return error
