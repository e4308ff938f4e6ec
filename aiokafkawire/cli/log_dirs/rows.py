"""The rows of tables about log directories: one for each directory, topic or replica."""

from collections.abc import Mapping
from typing import Any

from ...admin.topic_descriptions import LogDirDescription

__all__ = ("directory_rows", "replica_rows", "topic_rows")

LogDirs = Mapping[int, Mapping[str, LogDirDescription]]
"""The log directories of brokers, by broker id and path."""


def directory_rows(log_dirs: LogDirs) -> list[dict[str, Any]]:
    """Return a row about each directory, with sums over its replicas."""
    rows = []
    for broker, directories in log_dirs.items():
        for path, one in directories.items():
            infos = one.replica_infos.values()
            rows.append(
                {
                    "node_id": broker,
                    "log_dir": path,
                    "replica_count": sum(not info.is_future for info in infos),
                    "moving_here": sum(info.is_future for info in infos),
                    "size_bytes": sum(info.size for info in infos),
                    "usable_bytes": one.usable_bytes,
                    "total_bytes": one.total_bytes,
                    "is_cordoned": one.is_cordoned,
                    "error": None if one.error is None else type(one.error).__name__,
                }
            )
    return rows


def topic_rows(log_dirs: LogDirs) -> list[dict[str, Any]]:
    """Return a row about each topic on each broker, over all of its directories."""
    sums: dict[tuple[int, str], dict[str, Any]] = {}
    for row in replica_rows(log_dirs):
        key = row["node_id"], row["topic"]
        total = sums.setdefault(
            key, {"node_id": row["node_id"], "topic": row["topic"], "replica_count": 0, "size_bytes": 0}
        )
        total["replica_count"] += not row["is_future"]
        total["size_bytes"] += row["size_bytes"]
    return [sums[key] for key in sorted(sums)]


def replica_rows(log_dirs: LogDirs) -> list[dict[str, Any]]:
    """Return a row about each replica; one that moves has a second row in the directory that it moves to."""
    return [
        {
            "node_id": broker,
            "log_dir": path,
            "topic": partition.topic,
            "partition": partition.partition,
            "size_bytes": info.size,
            "offset_lag": info.offset_lag,
            "is_future": info.is_future,
        }
        for broker, directories in log_dirs.items()
        for path, one in directories.items()
        for partition, info in one.replica_infos.items()
    ]
