"""The subjects under which the schemas of keys and values are registered."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from ..argument_checks import shown
from ..errors import SchemaMismatch, UsageError
from ..serialization import SerializationContext

__all__ = (
    "SubjectNameStrategy",
    "record_subject",
    "subject_function",
    "topic_record_subject",
    "topic_subject",
)

_SubjectFunction: TypeAlias = Callable[[SerializationContext, str | None], str]
SubjectNameStrategy: TypeAlias = Literal["topic", "record", "topic-record"] | _SubjectFunction
"""How a subject is named: a strategy's name, or a function of the context and the full name of the record's type."""


def topic_subject(context: SerializationContext, record_name: str | None) -> str:
    """Return ``<topic>-key`` or ``<topic>-value``: one type for the keys of a topic, and one for its values."""
    return f"{context.topic}-{'key' if context.is_key else 'value'}"


def record_subject(context: SerializationContext, record_name: str | None) -> str:
    """Return the full name of the record's type: several types in a topic, each the same in all topics.

    Raises:
        SchemaMismatch: the schema has no name.
    """
    if not record_name:
        raise SchemaMismatch(
            f"the schema for topic {context.topic!r} has no name, which subject_name_strategy needs: name the record "
            "(JSON Schema: title), or use subject_name_strategy='topic'"
        )
    return record_name


def topic_record_subject(context: SerializationContext, record_name: str | None) -> str:
    """Return ``<topic>-<full name of the record's type>``: several types in a topic, each with its own versions there.

    Raises:
        SchemaMismatch: the schema has no name.
    """
    return f"{context.topic}-{record_subject(context, record_name)}"


_STRATEGIES: Final[Mapping[object, _SubjectFunction]] = {
    "topic": topic_subject,
    "record": record_subject,
    "topic-record": topic_record_subject,
}


def subject_function(strategy: object) -> _SubjectFunction:
    """Return the function of a strategy. Raise UsageError for an unknown one."""
    if callable(strategy):
        return strategy
    if not isinstance(strategy, str) or strategy not in _STRATEGIES:
        raise UsageError(
            "subject_name_strategy must be 'topic', 'record', 'topic-record', or a function of the context and the "
            f"record's name, got {shown(strategy)}"
        )
    return _STRATEGIES[strategy]
