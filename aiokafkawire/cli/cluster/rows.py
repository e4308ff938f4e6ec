"""The rows of tables about nodes, features, the controllers' quorum and versions of APIs."""

from collections.abc import Mapping
from typing import Any

from ...admin.cluster_descriptions import (
    ClusterDescription,
    FeatureMetadata,
    QuorumInfo,
    QuorumReplica,
    SupportedVersionRange,
)
from ..shell.kafka_uuids import uuid_text

__all__ = ("broker_rows", "controller_rows", "feature_rows", "quorum_rows", "release_of")

ApiVersions = Mapping[int, SupportedVersionRange]


def release_of(versions: ApiVersions, releases: Mapping[str, Mapping[int, Any]]) -> str | None:
    """Return the newest release whose versions a broker supports, with a "+" if it supports newer ones.

    APIs that the broker lacks do not count: some need a plugin or a setting.

    Args:
        versions: the broker's versions, by API key.
        releases: the versions of each known release, by its name, the oldest first. Of releases
            with the same versions, the newest is returned.
    """
    for name, known in reversed(list(releases.items())):
        if all(one.max_version >= known[key].last for key, one in versions.items() if key in known):
            is_last = name == list(releases)[-1]
            is_newer = any(key not in known or one.max_version > known[key].last for key, one in versions.items())
            return f"{name}+" if is_last and is_newer else name
    return None


def broker_rows(
    description: ClusterDescription, versions: Mapping[int, str | None], controller: int | None
) -> list[dict[str, Any]]:
    """Return a row about each broker.

    Args:
        description: the brokers.
        versions: the release of each broker, as far as it is known.
        controller: the id of the active controller.
    """
    return [
        {
            "cluster_id": description.cluster_id,
            "role": "broker",
            "node_id": node.node_id,
            "host": node.address.host,
            "port": node.address.port,
            "rack": node.rack,
            "release": versions.get(node.node_id),
            "state": "fenced" if node.is_fenced else "active controller" if node.node_id == controller else "running",
        }
        for node in description.nodes.values()
    ]


def controller_rows(cluster_id: str | None, quorum: QuorumInfo) -> list[dict[str, Any]]:
    """Return a row about each address of each voter of the quorum."""
    return [
        {
            "cluster_id": cluster_id,
            "role": "controller",
            "node_id": voter.replica_id,
            "host": None if endpoint is None else endpoint.host,
            "port": None if endpoint is None else endpoint.port,
            "rack": None,
            "release": None,
            "state": "active controller" if voter.replica_id == quorum.leader_id else "voter",
        }
        for voter in quorum.voters
        for endpoint in quorum.nodes.get(voter.replica_id) or (None,)
    ]


def feature_rows(features: FeatureMetadata) -> list[dict[str, Any]]:
    """Return a row about each feature that the broker supports, or that is in effect; level 0 is disabled."""
    rows = []
    for name in sorted({*features.supported_features, *features.finalized_features}):
        supported, finalized = features.supported_features.get(name), features.finalized_features.get(name)
        rows.append(
            {
                "feature": name,
                "min_version": None if supported is None else supported.min_version,
                "max_version": None if supported is None else supported.max_version,
                "level": 0 if finalized is None else finalized.max_version_level,
                "finalized_features_epoch": features.finalized_features_epoch,
            }
        )
    return rows


def quorum_rows(quorum: QuorumInfo) -> list[dict[str, Any]]:
    """Return a row about each voter and observer: the leader first, then followers, then observers."""
    ends = {voter.replica_id: voter.log_end_offset for voter in quorum.voters}
    end = ends.get(quorum.leader_id)
    voters = sorted(quorum.voters, key=lambda voter: voter.replica_id != quorum.leader_id)
    roles = [(one, "leader" if one.replica_id == quorum.leader_id else "follower") for one in voters]
    roles += [(one, "observer") for one in quorum.observers]
    return [_quorum_row(quorum, one, role, end) for one, role in roles]


def _quorum_row(quorum: QuorumInfo, one: QuorumReplica, role: str, end: int | None) -> dict[str, Any]:
    is_known = end is not None and end >= 0 and one.log_end_offset >= 0
    return {
        "node_id": one.replica_id,
        "role": role,
        "directory_id": uuid_text(one.directory_id),
        "log_end_offset": one.log_end_offset,
        "lag": end - one.log_end_offset if is_known and end is not None else None,
        "last_fetch_timestamp": one.last_fetch_timestamp,
        "last_caught_up_timestamp": one.last_caught_up_timestamp,
        "endpoints": [f"{at.listener}://{at.host}:{at.port}" for at in quorum.nodes.get(one.replica_id, ())],
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
    }
