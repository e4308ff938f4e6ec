"""Topics and partitions to create, as users give them, and the checks of their arguments."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, overload

import attrs

from ..argument_checks import INT16, INT32, check_mapping, check_text, is_integer, items_of, shown
from ..errors import UsageError
from ..types import check_topic_name

__all__ = (
    "Assignments",
    "NewPartitions",
    "NewTopic",
    "NewTopics",
    "checked_partitions",
    "checked_replicas",
    "named_topics",
)

Assignments: TypeAlias = Sequence[Sequence[int]]
"""The brokers of each new partition, the preferred leader first: ``[[1, 2], [2, 3]]`` is for two partitions."""


@attrs.frozen(init=False)
class NewTopic:
    """A topic to create: ``NewTopic("orders", 6)``, or ``{"orders": NewTopic(6)}`` if a mapping gives the name.

    Args:
        name: the topic's name; left out in a mapping.
        partitions: the number of partitions; -1 means the brokers' default (``num.partitions``).
        replication_factor: the number of replicas; -1 means the brokers' default (``default.replication.factor``).
        configs: settings of the topic, such as ``{"cleanup.policy": "compact"}``.
        assignments: the ids of the brokers of each partition, the preferred leader first, such as
            ``[[1, 2], [2, 3]]``; instead of ``partitions`` and ``replication_factor``.
    """

    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = attrs.field(factory=dict)
    name: str | None = None
    assignments: Assignments | None = None

    @overload
    def __init__(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] = ...,
        *,
        assignments: Assignments | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] = ...,
        *,
        name: str | None = None,
        assignments: Assignments | None = None,
    ) -> None: ...
    def __init__(self, *given: Any, **named: Any) -> None:
        if given and isinstance(given[0], str):
            if "name" in named:
                raise TypeError("NewTopic() got multiple values for argument 'name'")
            named["name"], given = given[0], given[1:]
        for name in named:
            if name in _FOREIGN:
                wrong = f"NewTopic() got an unexpected keyword argument {name!r}"
                raise TypeError(f"{wrong}; here: {_FOREIGN[name]}")
        if named.get("configs", {}) is None:
            del named["configs"]
        self.__attrs_init__(*given, **named)


_FOREIGN: Final = {
    "topic": "name",
    "num_partitions": "partitions",
    "topic_configs": "configs",
    "config": "configs",
    "replica_assignment": "assignments",
    "replica_assignments": "assignments",
}


NewTopics: TypeAlias = Mapping[str, int | NewTopic] | Iterable[NewTopic] | NewTopic
"""The forms in which ``create_topics`` accepts topics."""


@attrs.frozen
class NewPartitions:
    """The number of partitions that a topic shall have, and the brokers of the new ones.

    Args:
        total_count: the number of partitions, with those that exist.
        assignments: the ids of the brokers of each new partition, the preferred leader first, such as
            ``[[1, 2], [2, 3]]`` for two more; None to let the controller choose.
    """

    total_count: int
    assignments: Assignments | None = None


def named_topics(topics: object) -> dict[str, NewTopic]:
    """Return the topics to create, by name, from the user's argument.

    Raises:
        UsageError: the argument is neither a mapping nor NewTopics with names, two topics have the same name, or a
            topic's name or field is not valid.
    """
    if isinstance(topics, Mapping):
        return {name: _checked(name, topic) for name, topic in topics.items()}
    known = "{'orders': 6} or [NewTopic('orders', 6)]"
    found: dict[str, NewTopic] = {}
    for topic in [topics] if isinstance(topics, NewTopic) else items_of("topics", topics, known):
        if not isinstance(topic, NewTopic) or topic.name is None:
            raise UsageError(f"topics must be like {known}, each with a name; got {shown(topic)}")
        check_topic_name(topic.name)
        if topic.name in found:
            raise UsageError(f"topic {topic.name!r} is given twice in one call")
        found[topic.name] = _checked(topic.name, topic)
    return found


def _checked(name: str, topic: object) -> NewTopic:
    check_topic_name(name)
    new = topic if isinstance(topic, NewTopic) else NewTopic(partitions=topic)  # type: ignore[call-overload]
    if new.name not in (None, name):
        raise UsageError(f"topic {name!r} has a NewTopic of another name, {new.name!r}")
    if not (is_integer(new.partitions, -1, INT32) and new.partitions):
        text = shown(topic)
        raise UsageError(f"topic {name!r} needs at least 1 partition, or -1 for the brokers' default; got {text}")
    if not (is_integer(new.replication_factor, -1, INT16) and new.replication_factor):
        text = shown(new.replication_factor)
        raise UsageError(f"topic {name!r} needs at least 1 replica, or -1 for the brokers' default; got {text}")
    check_mapping(f"configs of topic {name!r}", new.configs, "{'cleanup.policy': 'compact'}")
    for key, value in new.configs.items():
        check_text(f"a setting's name of topic {name!r}", key)
        if value is not None:
            check_text(f"{key} of topic {name!r}", value, empty=True)
    if new.assignments is not None:
        assignments = _checked_assignments(f"assignments of topic {name!r}", new.assignments)
        if (new.partitions, new.replication_factor) != (-1, -1):
            raise UsageError(
                f"topic {name!r} has assignments, which give its number of partitions and of replicas: "
                "leave out partitions and replication_factor"
            )
        return NewTopic(configs=new.configs, name=new.name, assignments=assignments)
    return new


def _checked_assignments(name: str, given: object) -> list[list[int]]:
    """Return the broker ids of each partition as lists, since an iterator gives its items only once.

    Raises:
        UsageError: the value is not a collection with the broker ids of each of some partitions.
    """
    assignments = items_of(name, given, "[[1, 2], [2, 3]]")
    if not assignments:
        raise UsageError(f"{name} must have the brokers of each partition, such as [[1, 2], [2, 3]]; got no partition")
    return [checked_replicas(f"{name}, at {index},", replicas) for index, replicas in enumerate(assignments)]


def checked_replicas(name: str, given: object) -> list[int]:
    """Return broker ids as a list; raise UsageError unless the value is a collection of some different broker ids."""
    replicas = items_of(name, given, "[1, 2, 3]")
    if not replicas or not all(is_integer(node_id, 0, INT32) for node_id in replicas):
        raise UsageError(f"{name} must be the ids of brokers, such as [1, 2, 3]; got {shown(given)}")
    if len(set(replicas)) < len(replicas):
        raise UsageError(f"{name} must be the ids of different brokers; got {shown(given)}")
    return replicas


def checked_partitions(topics: object) -> dict[str, NewPartitions]:
    """Return the numbers of partitions to create, by topic, from the user's argument.

    Raises:
        UsageError: the argument is not a mapping of topics, or a number or an assignment is not valid.
    """
    check_mapping("topics", topics, "{'orders': 12}")
    assert isinstance(topics, Mapping)
    found = {}
    for name, given in topics.items():
        check_topic_name(name)
        new = given if isinstance(given, NewPartitions) else NewPartitions(given)
        if not is_integer(new.total_count, 1, INT32):
            expected = "the number of partitions that it shall have, such as 12, or a NewPartitions"
            raise UsageError(f"topic {name!r} needs {expected}; got {shown(given)}")
        if new.assignments is not None:
            of_topic = _checked_assignments(f"assignments of topic {name!r}", new.assignments)
            new = attrs.evolve(new, assignments=of_topic)
        found[name] = new
    return found
