"""Reads the arguments that several verbs take."""

import re
from collections.abc import Iterable

from ...argument_checks import INT32
from ...types import TopicPartition
from ..exit_status import MISSING, CommandFailed

__all__ = ("chosen_partitions", "key_values", "one_partition")


def key_values(option: str, texts: Iterable[str], *, form: str = "KEY=VALUE") -> dict[str, str]:
    """Return the keys and values of ``KEY=VALUE`` texts, which the error calls by their form; a later key wins.

    Raises:
        CommandFailed: a text is something else; the message names the option (exit status 2).
    """
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise CommandFailed(f"{option} takes {form}, got {text!r}", MISSING)
        values[key] = value
    return values


def chosen_partitions(option: str, texts: Iterable[str]) -> dict[str, tuple[int, ...] | None]:
    """Return the partitions of ``TOPIC`` or ``TOPIC:0,1`` texts by topic; None for all partitions of a topic.

    Raises:
        CommandFailed: a text is something else; the message names the option (exit status 2).
    """
    chosen: dict[str, tuple[int, ...] | None] = {}
    for text in texts:
        topic, colon, listed = text.partition(":")
        if not topic or (colon and not re.fullmatch(r"\d{1,10}(,\d{1,10})*", listed)):
            raise CommandFailed(f"{option} takes TOPIC or TOPIC:0,1, got {text!r}", MISSING)
        indexes = tuple(map(int, listed.split(","))) if colon else None
        if indexes is not None and max(indexes) > INT32:
            raise CommandFailed(f"{option}: no topic has a partition {max(indexes)}", MISSING)
        before = chosen.get(topic, ())
        chosen[topic] = None if indexes is None or before is None else tuple(sorted({*before, *indexes}))
    return chosen


def one_partition(text: str) -> TopicPartition:
    """Return the partition of a ``TOPIC:0`` text.

    Raises:
        CommandFailed: the text is something else (exit status 2).
    """
    (chosen,) = chosen_partitions("PARTITION", [text]).items()
    topic, indexes = chosen
    if indexes is None or len(indexes) != 1:
        raise CommandFailed(f"a partition is written as TOPIC:0, got {text!r}", MISSING)
    return TopicPartition(topic, indexes[0])
