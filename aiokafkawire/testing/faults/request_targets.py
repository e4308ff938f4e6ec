"""The topics, partitions, groups and transactional ids in a request, found by the request's schema.

Thus fault rules and the request log need no code per API. A topic is a struct or a string in an array whose name
contains "topic". Its partitions are numbers or structs in an array of that struct whose name contains "partition".
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import attrs

from ...protocol.api import ApiKey
from ...protocol.primitives import ZERO_UUID
from ...protocol.schema import FieldSchema, Request, Response, schema_of

__all__ = ("NameOf", "Target", "Targets", "divided", "evolved", "targets_of", "topic_name")

NameOf: TypeAlias = Callable[[UUID], str | None]
"""A function that returns the name of a topic by its id; None if there is no such topic."""

Chosen: TypeAlias = Callable[[str | None, int | None], bool]

T = TypeVar("T")

_TOPIC_RESOURCE: Final = 2  # in DescribeConfigs, AlterConfigs and ACLs
_KEY_IS_TRANSACTIONAL: Final = 1
_NAMES: Final = ("topic", "topic_name", "name")
_INDEXES: Final = ("partition", "partition_index", "index")
_GROUPS: Final = ("group_id", "group_ids", "groups", "groups_names")
_TRANSACTIONS: Final = ("transactional_id", "transactional_ids", "v3_and_below_transactional_id")


class Target(NamedTuple):
    """A partition, or a whole topic if ``partition`` is None; ``topic`` is None if the topic's id is unknown."""

    topic: str | None
    partition: int | None


@attrs.define
class Targets:
    """The topics, partitions, groups and transactional ids in one request."""

    partitions: list[Target] = attrs.field(factory=list)
    groups: list[str] = attrs.field(factory=list)
    transactional_ids: list[str] = attrs.field(factory=list)


def targets_of(request: Request[Response], version: int, name_of: NameOf) -> Targets:
    """Return the targets that a request names; "all topics" names none. ``name_of`` returns the name of a topic id."""
    found = Targets()
    _collect(request, version, name_of, found)
    if request.api_key == ApiKey.FIND_COORDINATOR:
        keys = [getattr(request, "key")] if version < 4 else getattr(request, "coordinator_keys")  # noqa: B009
        of_transactions = getattr(request, "key_type") == _KEY_IS_TRANSACTIONAL  # noqa: B009
        (found.transactional_ids if of_transactions else found.groups).extend(keys)
    return found


def _collect(struct: Any, version: int, name_of: NameOf, found: Targets) -> None:
    for field in schema_of(type(struct)).fields:
        value = getattr(struct, field.name) if version in field.versions else None
        if value is None:
            continue
        values = value if field.array else (value,)
        if _names_topics(field):
            for topic in values:
                found.partitions += _partitions(topic, version, name_of)
        elif isinstance(field.kind, type):
            for inner in values:
                _collect(inner, version, name_of, found)
        elif field.name in _GROUPS:
            found.groups += values
        elif field.name in _TRANSACTIONS:
            found.transactional_ids += values
    if getattr(struct, "resource_type", None) == _TOPIC_RESOURCE:
        found.partitions.append(Target(struct.resource_name, None))


def _names_topics(field: FieldSchema) -> bool:
    """Return whether a field is an array of topics, but not of the topics that a Fetch removes from its session."""
    return field.array and "topic" in field.name and not field.name.startswith("forgotten")


def _partition_field(struct: Any, version: int) -> FieldSchema | None:
    """Return the field with the partitions in a topic's struct; None if there is no such field."""
    for field in schema_of(type(struct)).fields:
        if field.array and "partition" in field.name and version in field.versions:
            return field
    return None


def _partitions(topic: Any, version: int, name_of: NameOf) -> list[Target]:
    name = topic_name(topic, version, name_of)
    field = None if isinstance(topic, str) else _partition_field(topic, version)
    if field is None:
        return [Target(name, None)]
    return [Target(name, _index(partition)) for partition in getattr(topic, field.name) or ()]


def topic_name(topic: Any, version: int, name_of: NameOf) -> str | None:
    """Return the name of a topic, which is a string or a struct of a request; None if its id is unknown."""
    if isinstance(topic, str):
        return topic
    fields = {field.name for field in schema_of(type(topic)).fields if version in field.versions}
    name = next((getattr(topic, name) for name in _NAMES if name in fields), None)
    if not name and "topic_id" in fields and topic.topic_id != ZERO_UUID:
        return name_of(topic.topic_id)
    return name or None


def _index(partition: Any) -> int | None:
    if isinstance(partition, int):
        return partition
    return next((getattr(partition, name) for name in _INDEXES if hasattr(partition, name)), None)


# --- splitting requests ----------------------------------------------------------------------------------------


def divided(request: T, version: int, name_of: NameOf, chosen: Chosen) -> tuple[T | None, T | None]:
    """Split a request in two: one with the chosen topics and partitions, and one with all other topics and partitions.

    A part that would have no topic is None. ``chosen(topic, partition)`` returns whether a partition is chosen; for a
    topic that has no array of partitions, ``partition`` is None.
    """

    def others(topic: str | None, partition: int | None) -> bool:
        return not chosen(topic, partition)

    return _kept(request, version, name_of, chosen), _kept(request, version, name_of, others)


def evolved(struct: Any, **changes: Any) -> Any:
    """Return a copy of a message or struct with these fields changed."""
    return attrs.evolve(struct, **changes)


def _kept(struct: T, version: int, name_of: NameOf, keep: Chosen) -> T | None:
    """Return a copy with only the topics and partitions for which ``keep`` is true; None if no topic would be left."""
    changes: dict[str, Any] = {}
    lost = False
    for field in schema_of(type(struct)).fields:
        value = getattr(struct, field.name) if field.array and version in field.versions else None
        if not value:
            continue
        if _names_topics(field):
            parts = [_kept_topic(topic, version, name_of, keep) for topic in value]
        elif isinstance(field.kind, type):
            parts = [_kept(inner, version, name_of, keep) for inner in value]
        else:
            continue
        changes[field.name] = [part for part in parts if part is not None]
        lost = lost or not changes[field.name]
    made: T = evolved(struct, **changes)
    return None if lost else made


def _kept_topic(topic: T, version: int, name_of: NameOf, keep: Chosen) -> T | None:
    name = topic_name(topic, version, name_of)
    field = None if isinstance(topic, str) else _partition_field(topic, version)
    if field is None:
        return topic if keep(name, None) else None
    partitions = [partition for partition in getattr(topic, field.name) or () if keep(name, _index(partition))]
    made: T = evolved(topic, **{field.name: partitions})
    return made if partitions else None
