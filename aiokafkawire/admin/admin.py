"""The admin: creates, deletes, lists and describes topics, and looks up offsets.

For groups see :mod:`.groups` and :mod:`.share_groups`, for configs :mod:`.configs`, for ACLs :mod:`.acls`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, overload

import attrs

from ..argument_checks import INT16, INT32, check_flag, check_mapping, check_text, is_integer, items_of, shown
from ..cluster.cluster import controller
from ..cluster.list_offsets import look_up_offsets
from ..cluster.metadata import EMPTY, Topic, is_large, merge
from ..cluster.request_variants import RequestVariant, in_newest_form
from ..cluster.retry import Deadline
from ..errors import ErrorCode, NotController, UnsupportedVersion, UsageError, WireError, broker_error
from ..other_clients_names import ADMIN, add_hints
from ..protocol.messages.metadata import MetadataResponseTopic
from ..protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ..protocol.schema import Request, Versions
from ..types import OffsetAndTimestamp, OffsetSpec, TopicPartition, check_topic_name, normalize_specs
from .acls import AclAdmin
from .configs import ConfigAdmin
from .groups import GroupAdmin
from .share_groups import ShareGroupAdmin

__all__ = ("Admin", "NewTopic", "NewTopics")

_LANE = "admin"


@attrs.frozen(init=False)
class NewTopic:
    """A topic to create: ``NewTopic("orders", 6)``, or ``{"orders": NewTopic(6)}`` if a mapping gives the name.

    Args:
        name: the topic's name; left out in a mapping.
        partitions: the number of partitions; -1 means the brokers' default (``num.partitions``).
        replication_factor: the number of replicas; -1 means the brokers' default (``default.replication.factor``).
        configs: settings of the topic, such as ``{"cleanup.policy": "compact"}``.
    """

    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = attrs.field(factory=dict)
    name: str | None = None

    @overload
    def __init__(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] = ...,
        *,
        name: str | None = None,
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


_FOREIGN: Final = {"topic": "name", "num_partitions": "partitions", "topic_configs": "configs", "config": "configs"}


NewTopics: TypeAlias = Mapping[str, int | NewTopic] | Iterable[NewTopic] | NewTopic
"""The forms in which ``create_topics`` accepts topics."""


class Admin(GroupAdmin, ShareGroupAdmin, ConfigAdmin, AclAdmin):
    """The administration client, at :attr:`Client.admin`.

    Every ``timeout`` is in seconds, by default ``default_api_timeout_ms``; when it has passed, the call raises
    RequestTimeout.
    """

    async def create_topics(
        self, topics: NewTopics, *, validate_only: bool = False, timeout: float | None = None
    ) -> None:
        """Create topics, given as a mapping of names to partition counts or NewTopic, or as NewTopics with names.

        With ``validate_only`` the broker checks the request without creating topics (brokers since 0.10.2).

        Raises:
            TopicAlreadyExists, InvalidPartitions, ...: the broker rejected a topic; other topics may be created.
            UsageError: a topic's name or an argument is not valid.
        """
        check_flag("validate_only", validate_only)
        new_topics = [_creatable(name, topic) for name, topic in _named(topics).items()]
        deadline = self._deadline(timeout)
        request = CreateTopicsRequest(
            topics=new_topics, timeout_ms=self._milliseconds(deadline), validate_only=validate_only
        )
        by_default = any(-1 in (topic.num_partitions, topic.replication_factor) for topic in new_topics)
        versions = _DEFAULTS if by_default else _FLAGGED if validate_only else _ANY
        try:
            response = await self._cluster.ask(
                controller, request, deadline, lane=_LANE, wanted=versions, check=_raise_if_not_controller
            )
        except UnsupportedVersion as refused:
            raise _explained(refused, by_default=by_default, validate_only=validate_only) from None
        for topic in response.topics:
            _raise_for(topic.error_code, f"creating topic {topic.name!r}", topic.error_message)

    async def delete_topics(self, topics: str | Iterable[str], *, timeout: float | None = None) -> None:
        """Delete a topic or several topics, with all their records.

        Raises:
            UnknownTopicOrPartition, ...: the broker rejected a topic; other topics may be deleted.
            UsageError: a topic's name is not valid.
        """
        names = [topics] if isinstance(topics, str) else items_of("topics", topics, "['orders']")
        for name in names:
            check_topic_name(name)
        deadline = self._deadline(timeout)
        milliseconds = self._milliseconds(deadline)
        newer = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=milliseconds)
        older = DeleteTopicsRequest(topic_names=names, timeout_ms=milliseconds)

        async def ask(request: Request[DeleteTopicsResponse], wanted: Versions) -> DeleteTopicsResponse:
            return await self._cluster.ask(
                controller, request, deadline, lane=_LANE, wanted=wanted, check=_raise_if_not_controller
            )

        response = await in_newest_form(
            (RequestVariant(newer, _DELETES_BY_STATE), RequestVariant(older, _DELETES_BY_NAME)), ask
        )
        for topic in response.responses:
            _raise_for(topic.error_code, f"deleting topic {topic.name!r}", topic.error_message)

    async def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> tuple[str, ...]:
        """Return the sorted names of all topics that this client may see; with ``internal`` also internal topics."""
        check_flag("internal", internal)
        response = await self._cluster.ask_metadata(None, self._deadline(timeout), lane=_LANE)
        if is_large(response):
            return await self._cluster.runtime.offload(_names, response.topics, internal)
        return _names(response.topics, internal)

    async def describe_topic(self, name: str, *, timeout: float | None = None) -> Topic:
        """Return a topic's id, partitions, leaders and replicas from a broker's current metadata.

        Raises:
            UnknownTopicOrPartition, ...: the broker answered with an error.
        """
        check_topic_name(name)
        response = await self._cluster.ask_metadata([name], self._deadline(timeout), lane=_LANE)
        topic = merge(EMPTY, response).topics.get(name)
        if topic is None:
            raise WireError(f"the Metadata response lacks the requested topic {name!r}")
        _raise_for(topic.error, f"describing topic {name!r}", None)
        return topic

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up offsets: the beginning, the end, or the first at or after a time; None if no record is that late.

        Brokers before 0.10.1 index time by segment: an offset by time is then up to one segment
        (``log.segment.bytes``) too early, never too late, and has no timestamp (-1). If no record is at or after the
        time, these brokers return the end.

        Raises:
            TopicNotReady: a partition has no leader within the timeout.
            UsageError: a partition does not exist.
        """
        return await look_up_offsets(self._cluster, normalize_specs(specs), self._deadline(timeout))

    def _milliseconds(self, deadline: Deadline) -> int:
        """Return the timeout for the broker in ms: the call's timeout, at most the client's ``request_timeout_ms``."""
        return int(min(deadline.allowed * 1000, self._cluster.config.request_timeout_ms))


add_hints(Admin, ADMIN)


# CreateTopics v0 has no validate_only.
_FLAGGED = Versions.parse("1+")
# Brokers have defaults for partitions and replicas since 2.4 (KIP-464).
_DEFAULTS = Versions.parse("4+")
_ANY = Versions.parse("0+")
_DELETES_BY_STATE = Versions.parse("6+")  # KIP-516
_DELETES_BY_NAME = Versions.parse("0-5")
_UNMARKED: Final = ("__consumer_offsets",)
"""Internal topics that brokers before 0.10 do not mark as internal."""


def _named(topics: object) -> dict[str, object]:
    """Return the topics to create, by name, from the user's argument.

    Raises:
        UsageError: the argument is neither a mapping nor NewTopics with names, or two topics have the same name.
    """
    if isinstance(topics, Mapping):
        return dict(topics)
    known = "{'orders': 6} or [NewTopic('orders', 6)]"
    found: dict[str, object] = {}
    for topic in [topics] if isinstance(topics, NewTopic) else items_of("topics", topics, known):
        if not isinstance(topic, NewTopic) or topic.name is None:
            raise UsageError(f"topics must be like {known}, each with a name; got {shown(topic)}")
        check_topic_name(topic.name)
        if topic.name in found:
            raise UsageError(f"topic {topic.name!r} is given twice in one call")
        found[topic.name] = topic
    return found


def _creatable(name: str, topic: object) -> CreatableTopic:
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
    return CreatableTopic(
        name=name,
        num_partitions=new.partitions,
        replication_factor=new.replication_factor,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in new.configs.items()],
    )


def _explained(refused: UnsupportedVersion, *, by_default: bool, validate_only: bool) -> UnsupportedVersion:
    why = "creating topics needs brokers since 0.10.1"
    if by_default:
        why += ", and defaults need 2.4 (KIP-464): give a NewTopic with partitions and replication_factor"
    elif validate_only:
        why += ", and validate_only needs 0.10.2"
    return UnsupportedVersion(f"{why}: {refused}")


def _names(topics: list[MetadataResponseTopic], internal: bool) -> tuple[str, ...]:
    """Return the sorted names, without those of internal topics unless ``internal``; empty the list ``topics``.

    Freeing the partitions of all topics, perhaps 100,000, at once would block the event loop.
    """
    found = []
    while topics:
        topic = topics.pop()
        if topic.name and (internal or not (topic.is_internal or topic.name in _UNMARKED)):
            found.append(topic.name)
    return tuple(sorted(found))


def _raise_if_not_controller(response: CreateTopicsResponse | DeleteTopicsResponse) -> None:
    """Raise NotController if a topic has this error, the only error that a retry can solve."""
    topics = response.topics if isinstance(response, CreateTopicsResponse) else response.responses
    for topic in topics:
        if topic.error_code == ErrorCode.NOT_CONTROLLER:
            raise NotController(f"topic {topic.name!r}")


def _raise_for(code: int, what: str, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise broker_error(code, f"{what}: {message}" if message else what)
