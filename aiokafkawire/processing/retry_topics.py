"""The retry topics of a call of ``Client.process``: where a failed record goes next, and how long it waits there."""

import re
from collections.abc import Collection, Sequence
from typing import Final

import attrs

from ..argument_checks import INT32, is_integer, items_of, shown
from ..errors import ConfigError, UsageError
from ..types import SubscriptionPattern, check_topic_name
from .failures import Failure

__all__ = ("RetryTopic", "RetryTopics", "checked_retry_topics", "topics_to_read")


def _check_name(_: object, __: "attrs.Attribute[str]", value: object) -> None:
    check_topic_name(value)


def _check_delay(_: object, __: "attrs.Attribute[int]", value: object) -> None:
    if not is_integer(value, 1, INT32):
        raise ConfigError(f"delay_ms must be an integer from 1 to {INT32}, got {shown(value)}")


@attrs.frozen
class RetryTopic:
    """A topic whose records :meth:`Client.process` handles again after a delay.

    Raises:
        ConfigError, UsageError: a value is wrong.
    """

    name: str = attrs.field(validator=_check_name)
    """The topic's name."""
    delay_ms: int = attrs.field(validator=_check_delay)
    """How long a record waits in the topic, the same for all of its records."""


_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NAMED_DELAY: Final = re.compile(r".*[._-]([0-9]{1,10})(ms|s|m|h|d)", re.DOTALL)


def _of_name(name: str) -> RetryTopic:
    """Return the retry topic whose name ends in its delay.

    Raises:
        ConfigError, UsageError: it ends in no delay, or in a wrong one, or it is no name of a topic.
    """
    found = _NAMED_DELAY.fullmatch(name)
    if found is None:
        raise ConfigError(
            f"retry topic {name!r} needs a delay: use RetryTopic({name!r}, delay_ms=60_000), or a name that ends in it "
            "(ms, s, m, h, d), such as 'orders.retry.1m'"
        )
    return RetryTopic(name, int(found[1]) * _UNITS[found[2]])


class RetryTopics:
    """The retry topics of one call, in the order in which a record goes through them."""

    def __init__(self, topics: Sequence[RetryTopic] = ()) -> None:
        self._topics = tuple(topics)
        self._places = {topic.name: place for place, topic in enumerate(self._topics)}

    def __contains__(self, topic: object) -> bool:
        return topic in self._places

    def after(self, topic: str) -> RetryTopic | None:
        """Return the retry topic for a record of this topic that has failed; None if there is no further one."""
        place = self._places.get(topic, -1) + 1
        return self._topics[place] if place < len(self._topics) else None

    def wait(self, topic: str, failure: Failure | None, wall_ms: int) -> float:
        """Return the seconds until a record of a retry topic is due; 0 if it is, or if no failure is known.

        A clock that is wrong, here or where the record was written, makes it at most the delay of the topic.
        """
        if failure is None:
            return 0.0
        delay_ms = self._topics[self._places[topic]].delay_ms
        return max(0, min(failure.not_before_ms - wall_ms, delay_ms)) / 1000


def checked_retry_topics(
    given: object, topics: Collection[str | SubscriptionPattern], dead_letter_topic: str | None, *, share: bool
) -> tuple[RetryTopic, ...]:
    """Return the retry topics of a call that reads ``topics``.

    Raises:
        ConfigError, UsageError: they are no retry topics, or one is named twice, or has another role already.
    """
    if given is None:
        return ()
    items = items_of("retry_topics", given, "[RetryTopic('orders.retry', delay_ms=60_000)]")
    found = tuple(_of_name(item) if isinstance(item, str) else item for item in items)
    seen: set[str] = set()
    for topic in found:
        if not isinstance(topic, RetryTopic):
            raise ConfigError(f"retry_topics must be RetryTopic objects or names of topics, got {shown(topic)}")
        if topic.name in topics:
            raise ConfigError(
                f"retry topic {topic.name!r} is a topic that process() reads: failed records need another"
            )
        if topic.name == dead_letter_topic:
            raise ConfigError(f"retry topic {topic.name!r} is the dead_letter_topic: its records are not handled again")
        if topic.name in seen:
            raise ConfigError(f"retry topic {topic.name!r} is there twice: a record that fails goes to the next one")
        seen.add(topic.name)
    if found and share:
        raise UsageError(
            "a share group has no retry_topics: with share=True the broker hands out released records again"
        )
    return found


def topics_to_read(
    topics: Sequence[str | SubscriptionPattern], retry_topics: Sequence[RetryTopic]
) -> tuple[str | SubscriptionPattern, ...]:
    """Return what to subscribe to: the topics, or their pattern, and the retry topics."""
    names = [topic.name for topic in retry_topics]
    if not names or not isinstance(topics[0], SubscriptionPattern):
        return (*topics, *names)
    alternatives = [f"({topics[0].pattern})", *(name.replace(".", r"\.") for name in names)]
    return (SubscriptionPattern("|".join(alternatives)),)
