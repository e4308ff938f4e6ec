"""The Raft quorum of the controllers (KIP-595): each broker is a controller, too, as with ``broker,controller``."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol
from uuid import UUID, uuid5

import attrs

from ...errors import ErrorCode
from ...protocol.primitives import ZERO_UUID
from .api_error import ApiError
from .features import KRAFT_VERSION, ClusterFeatures

__all__ = ("CONTROLLER_LISTENER", "MetadataQuorum", "QuorumMember")

CONTROLLER_LISTENER: Final = "CONTROLLER"
_NAMESPACE: Final = UUID("5f7e1c1e-4d0b-4d5c-9a53-6b9d1f6f0a11")
_NO_OP_INTERVAL_MS: Final = 500
"""The time between the records that an idle leader writes (``metadata.max.idle.interval.ms``)."""


class _Node(Protocol):
    """A node of the cluster."""

    node_id: int
    alive: bool


@attrs.frozen
class QuorumMember:
    """A voter or an observer. Times are in ms since the epoch; -1 means that they are not known."""

    node_id: int
    directory_id: UUID
    log_end_offset: int
    last_fetch: int
    last_caught_up: int


class MetadataQuorum:
    """The leader, the voters and the observers of the metadata log.

    Args:
        cluster_id: the cluster's id, from which the ids of the log directories are made.
        nodes: the nodes, all of which begin as voters.
        features: has ``kraft.version``, without which voters cannot be changed.
        clock: returns the time in ms since the epoch.
    """

    def __init__(
        self, cluster_id: str, nodes: Sequence[_Node], features: ClusterFeatures, clock: Callable[[], int]
    ) -> None:
        self._cluster_id, self._nodes, self._features, self._clock = cluster_id, nodes, features, clock
        self._directories = {node.node_id: uuid5(_NAMESPACE, f"{cluster_id}/{node.node_id}") for node in nodes}
        self._voters = [node.node_id for node in nodes]
        self._leader, self._epoch = nodes[0].node_id, 1
        self._changes = 0
        self._began: int | None = None
        self._seen: dict[int, QuorumMember] = {}

    @property
    def leader(self) -> int:
        """The id of the leader: the first running voter, unless the last leader runs; -1 if no voter runs."""
        return self._elected()[0]

    @property
    def epoch(self) -> int:
        """The epoch of the leader."""
        return self._elected()[1]

    @property
    def high_watermark(self) -> int:
        """The end of the committed metadata log, which grows with time."""
        now = self._clock()
        if self._began is None:
            self._began = now
        return 1 + self._changes + max(0, now - self._began) // _NO_OP_INTERVAL_MS

    @property
    def voters(self) -> list[QuorumMember]:
        """The voters, sorted by id."""
        return [self._member(node_id) for node_id in sorted(self._voters)]

    @property
    def observers(self) -> list[QuorumMember]:
        """The running nodes that have no vote, sorted by id."""
        alive = sorted(node.node_id for node in self._nodes if node.alive)
        return [self._member(node_id) for node_id in alive if node_id not in self._voters]

    def add(self, cluster_id: str | None, node_id: int, directory_id: UUID, listeners: Sequence[str]) -> None:
        """Make an observer a voter.

        Raises:
            ApiError: the cluster's id or the endpoints are wrong, voters are fixed, the node is a voter already, or it
                does not replicate the log.
        """
        self._check_cluster(cluster_id)
        if directory_id == ZERO_UUID:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
        if CONTROLLER_LISTENER not in listeners:
            lacks = f"the endpoint ({', '.join(listeners)}) for the default listener {CONTROLLER_LISTENER}"
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Add voter request didn't include {lacks}")
        self._check_version("adding")
        if node_id in self._voters:
            already = "is already part of the set of voters"
            raise ApiError(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for {_key(node_id, directory_id)} {already} {self._voter_keys()}.",
            )
        caught_up = any(node.alive and node.node_id == node_id for node in self._nodes)
        if not caught_up or self._directories[node_id] != directory_id:
            lagging = f"Aborted add voter operation for {_key(node_id, directory_id)} since it is lagging behind"
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, lagging)
        self._voters.append(node_id)
        self._changes += 1

    def remove(self, cluster_id: str | None, node_id: int, directory_id: UUID) -> None:
        """Make a voter an observer. Raises ApiError if the cluster's id is wrong, voters are fixed, or it is none."""
        self._check_cluster(cluster_id)
        if directory_id == ZERO_UUID:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
        self._check_version("removing")
        if node_id not in self._voters or self._directories[node_id] != directory_id or len(self._voters) == 1:
            unknown = f"Cannot remove voter {_key(node_id, directory_id)} from the set of voters {self._voter_keys()}"
            raise ApiError(ErrorCode.VOTER_NOT_FOUND, unknown)
        self._voters.remove(node_id)
        self._changes += 1

    def _elected(self) -> tuple[int, int]:
        """Return the leader and its epoch; elect another leader if the last one stopped or lost its vote."""
        running = [node.node_id for node in self._nodes if node.alive and node.node_id in self._voters]
        if running and self._leader not in running:
            self._leader, self._epoch = running[0], self._epoch + 1
        return self._leader if running else -1, self._epoch

    def _member(self, node_id: int) -> QuorumMember:
        """Return the state of a node as the leader knows it: that of a stopped node stays as it was."""
        is_alive = any(node.alive and node.node_id == node_id for node in self._nodes)
        if is_alive:
            now = self._clock()
            directory = self._directories[node_id] if self._features.level(KRAFT_VERSION) else ZERO_UUID
            self._seen[node_id] = QuorumMember(node_id, directory, self.high_watermark, now, now)
        return self._seen.get(node_id, QuorumMember(node_id, ZERO_UUID, -1, -1, -1))

    def _voter_keys(self) -> str:
        return f"[{', '.join(_key(node_id, self._directories[node_id]) for node_id in sorted(self._voters))}]"

    def _check_cluster(self, cluster_id: str | None) -> None:
        if cluster_id is not None and cluster_id != self._cluster_id:
            differs = f'The given id "{cluster_id}" doesn\'t match the cluster id "{self._cluster_id}"'
            raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, differs)

    def _check_version(self, what: str) -> None:
        level = self._features.level(KRAFT_VERSION)
        if not level:
            fixed = f"Cluster doesn't support {what} voter because the {KRAFT_VERSION} feature is {level}"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, fixed)


def _key(node_id: int, directory_id: UUID) -> str:
    return f"ReplicaKey(id={node_id}, directoryId={directory_id})"
