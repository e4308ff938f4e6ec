"""The topics of a cluster: their names, ids, partitions and settings, and the rules for creating them."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

import attrs

from ...errors import ErrorCode
from ...types import TopicPartition
from ..configs.checks import check_topic_configs
from ..configs.configs import Configs
from ..logs.log import PartitionLog
from .api_error import ApiError
from .replicas import HostedPartition

__all__ = (
    "MOST_PARTITIONS",
    "OFFSETS_TOPIC",
    "SHARE_STATE_TOPIC",
    "TRANSACTIONS_TOPIC",
    "HostedTopic",
    "TopicStore",
    "invalid_name",
)

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
MOST_PARTITIONS: Final = 10_000
"""The largest number of partitions that one request may add."""
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_LONGEST_NAME: Final = 249
_INTERNAL: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
_METADATA_LOG: Final = "__cluster_metadata"


@attrs.define
class HostedTopic:
    """One topic; ``configs`` are the topic's own settings, by property name."""

    name: str
    topic_id: UUID
    partitions: list[HostedPartition]
    configs: dict[str, str]
    defaults: Configs = attrs.field(factory=Configs, repr=False, eq=False)

    def config(self, name: str, node: int | None = None) -> str:
        """Return the effective value of a setting such as ``max.message.bytes``: the topic's own, else the brokers'.

        ``node`` and the raised error are as in :meth:`Configs.topic_default`.
        """
        own = self.configs.get(name)
        if own is None:
            return self.defaults.topic_default(name, node)
        return self.defaults.tables.topics[name].parse(own)

    @property
    def is_internal(self) -> bool:
        """Whether this is an internal topic of Kafka."""
        return self.name in _INTERNAL

    @property
    def replication_factor(self) -> int:
        """The number of replicas of each partition."""
        return len(self.partitions[0].replicas)


class TopicStore:
    """All topics of a cluster.

    ``nodes`` are the brokers that can hold replicas, ``new_id`` makes topic ids, ``num_partitions`` and
    ``replication_factor`` are the defaults of new topics.
    """

    def __init__(
        self,
        nodes: Sequence[int],
        new_id: Callable[[], UUID],
        num_partitions: int,
        replication_factor: int = 1,
        configs: Configs | None = None,
    ) -> None:
        self._nodes = nodes
        self._new_id = new_id
        self._num_partitions = num_partitions
        self._replication_factor = replication_factor
        self.configs: Configs = configs or Configs()
        self._down: set[int] = set()
        self._by_name: dict[str, HostedTopic] = {}
        self._by_id: dict[UUID, HostedTopic] = {}
        # The topics' names by their names in metrics, which have '_' for '.'; no two topics may share one.
        self._metrics: dict[str, list[str]] = {}

    def __iter__(self) -> Iterator[HostedTopic]:
        return iter(list(self._by_name.values()))

    def get(self, name: str) -> HostedTopic | None:
        """Return the topic with this name, or None."""
        return self._by_name.get(name)

    def by_id(self, topic_id: UUID) -> HostedTopic | None:
        """Return the topic with this id, or None."""
        return self._by_id.get(topic_id)

    def partition(self, name: str, index: int) -> HostedPartition:
        """Return one partition of a topic, by the topic's name.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        topic = self._by_name.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic.partitions[index]

    def has(self, partition: TopicPartition) -> bool:
        """Return whether the partition exists."""
        topic = self._by_name.get(partition.topic)
        return topic is not None and 0 <= partition.partition < len(topic.partitions)

    def create(
        self,
        name: str,
        *,
        num_partitions: int = -1,
        replication_factor: int = -1,
        assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
        internal: bool = False,
    ) -> HostedTopic:
        """Create a topic with numbers of partitions and replicas, -1 for the default, or with given ``assignments``.

        With ``validate_only`` the arguments are only checked: the returned topic is not stored, and its partitions are
        all the same object. An ``internal`` topic may have any name, and may be created while no broker runs.

        Raises:
            ApiError: the name, count, replication factor, assignment or a setting is invalid.
        """
        if not internal:
            self._check_name(name)
        if assignments:
            if replication_factor != -1:
                raise _manual_but_set("replication factor")
            if num_partitions != -1:
                raise _manual_but_set("numPartitions")
            replicas = self._check_assignments(assignments)
        else:
            replicas = self._place(num_partitions, replication_factor, even_if_down=internal)
        check_topic_configs(self.configs, configs or {})
        topic = HostedTopic(name, self._new_id(), [], dict(configs or {}), self.configs)
        if validate_only:
            self._extend(topic, replicas[:1])
            topic.partitions *= len(replicas)
        else:
            self._extend(topic, replicas)
            self._by_name[name] = self._by_id[topic.topic_id] = topic
            self._metrics.setdefault(_metric(name), []).append(name)
        return topic

    def add_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Extend a topic to ``count`` partitions; ``assignments`` are the replicas of each new partition (KIP-195).

        Raises:
            ApiError: there is no such topic, it has ``count`` partitions or more already, or an assignment is invalid.
        """
        topic = self._by_name.get(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        there = len(topic.partitions)
        if count == there:
            raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {there} partition(s).")
        if count < there:
            fault = f"The topic {name} currently has {there} partition(s); {count} would not be an increase."
            raise ApiError(ErrorCode.INVALID_PARTITIONS, fault)
        if assignments is None:
            self._check_running(topic.replication_factor)
            replicas = self._spread(there, count, topic.replication_factor)
        else:
            if len(assignments) != count - there:
                raise _bad_assignment(
                    f"Attempted to add {count - there} additional partition(s), but only {len(assignments)} "
                    "assignment(s) were specified."
                )
            for nodes in assignments:
                self.check_replicas(nodes, topic.replication_factor)
            replicas = [list(nodes) for nodes in assignments]
        if not validate_only:
            self._extend(topic, replicas)

    def _extend(self, topic: HostedTopic, replicas: Sequence[list[int]]) -> None:
        for nodes in replicas:
            log = PartitionLog(topic.name, len(topic.partitions))
            topic.partitions.append(HostedPartition(log, nodes, self._down, topic.config))

    def node_stopped(self, node_id: int) -> list[HostedPartition]:
        """Record that a broker stopped and elect new leaders; return the partitions that changed."""
        self._down.add(node_id)
        return [partition for partition in self.partitions() if partition.node_stopped(node_id)]

    def node_started(self, node_id: int) -> list[HostedPartition]:
        """Record that a broker runs again; return the partitions that changed."""
        self._down.discard(node_id)
        return [partition for partition in self.partitions() if partition.node_started(node_id)]

    def partitions(self) -> Iterator[HostedPartition]:
        """Yield all partitions of all topics."""
        for topic in self:
            yield from topic.partitions

    def delete(self, topic: HostedTopic) -> None:
        """Delete a topic and all its records."""
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        alike = self._metrics[_metric(topic.name)]
        alike.remove(topic.name)
        if not alike:
            del self._metrics[_metric(topic.name)]

    def _check_name(self, name: str) -> None:
        fault = invalid_name(name)
        if fault is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if name == _METADATA_LOG:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        if name in self._by_name:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        for other in self._metrics.get(_metric(name), ()):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")

    def _place(self, num_partitions: int, replication_factor: int, *, even_if_down: bool) -> list[list[int]]:
        if replication_factor < -1 or replication_factor == 0:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if num_partitions < -1 or num_partitions == 0:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        count = self._num_partitions if num_partitions == -1 else num_partitions
        copies = self._replication_factor if replication_factor == -1 else replication_factor
        nodes = self._nodes
        if copies > len(nodes):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {copies} time(s): The target replication factor of {copies} "
                f"cannot be reached because only {len(nodes)} broker(s) are registered or some brokers have "
                "all their log directories cordoned.",
            )
        if not even_if_down:
            self._check_running(copies)
        return self._spread(0, count, copies)

    def _check_running(self, copies: int) -> None:
        if self._down.issuperset(self._nodes):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {copies} time(s): All brokers are currently fenced, or have "
                "all their log directories cordoned.",
            )

    def _spread(self, first: int, end: int, copies: int) -> list[list[int]]:
        """Return ``copies`` brokers for each partition from ``first`` to ``end`` - 1: in turn, stopped brokers last."""
        running = [node for node in self._nodes if node not in self._down]
        down = [node for node in self._nodes if node in self._down]
        return [[*_turned(running, index), *_turned(down, index)][:copies] for index in range(first, end)]

    def _check_assignments(self, assignments: Mapping[int, Sequence[int]]) -> list[list[int]]:
        copies = None
        for nodes in assignments.values():
            self.check_replicas(nodes, copies)
            copies = len(nodes)
        if sorted(assignments) != list(range(len(assignments))):
            raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
        return [list(assignments[index]) for index in range(len(assignments))]

    def check_replicas(self, nodes: Sequence[int], copies: int | None = None) -> None:
        """Check that these brokers may be a partition's replicas; ``copies`` is the required number, None for any.

        Raises:
            ApiError: INVALID_REPLICA_ASSIGNMENT.
        """
        if not nodes:
            raise _bad_assignment("The manual partition assignment includes an empty replica list.")
        times = Counter(nodes)
        for node in sorted(nodes):
            if node not in self._nodes:
                raise _bad_assignment(
                    f"The manual partition assignment includes broker {node}, but no such broker is registered."
                )
            if times[node] > 1:
                raise _bad_assignment(f"The manual partition assignment includes the broker {node} more than once.")
        if copies not in (None, len(nodes)):
            raise _bad_assignment(
                f"The manual partition assignment includes a partition with {len(nodes)} replica(s), but this is "
                f"not consistent with previous partitions, which have {copies} replica(s)."
            )


def invalid_name(name: str) -> str | None:
    """Return Kafka's error message for an invalid topic name; None if the name is valid."""
    if not name:
        fault = "the empty string is not allowed"
    elif name in (".", ".."):
        fault = f"'{name}' is not allowed"
    elif len(name) > _LONGEST_NAME:
        fault = f"the length of '{name}' is longer than the max allowed length {_LONGEST_NAME}"
    elif not _NAME.fullmatch(name):
        fault = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {fault}"


def _metric(name: str) -> str:
    return name.replace(".", "_")


def _turned(nodes: list[int], by: int) -> list[int]:
    at = by % len(nodes) if nodes else 0
    return nodes[at:] + nodes[:at]


def _manual_but_set(what: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, f"A manual partition assignment was specified, but {what} was not set to -1."
    )


def _bad_assignment(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
