"""Reads the arguments that several verbs take."""

import re
from collections.abc import Iterable
from uuid import UUID

from ...argument_checks import INT32
from ...types import TopicPartition
from ..exit_status import MISSING, CommandFailed
from .kafka_uuids import uuid_of

__all__ = ("chosen_partitions", "key_values", "one_partition", "parse_uuid")


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
    """Return the partition of a ``TOPIC:0`` text, or of ``TOPIC-0``, as Kafka's messages have it.

    Raises:
        CommandFailed: the text is something else (exit status 2).
    """
    found = re.fullmatch(r"([^:]+)[:-](\d{1,10})", text)
    if found is None:
        raise CommandFailed(f"a partition is written as TOPIC:0, got {text!r}", MISSING)
    if int(found[2]) > INT32:
        raise CommandFailed(f"no topic has a partition {found[2]}", MISSING)
    return TopicPartition(found[1], int(found[2]))


def parse_uuid(option: str, text: str) -> UUID:
    """Return the UUID that a text means.

    Raises:
        CommandFailed: the text is no UUID; the message names the option (exit status 2).
    """
    found = uuid_of(text)
    if found is None:
        raise CommandFailed(f"{option} takes an id such as PT8P6GwdTu2Kq9jdEFpIkg, got {text!r}", MISSING)
    return found
