"""The JSON of plans, which kafka-reassign-partitions reads and writes, too."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from ...types import TopicPartition, TopicPartitionReplica
from ..exit_status import MISSING, CommandFailed
from .planner import Assignment

__all__ = ("ReassignmentPlan", "parse_plan", "plan_json", "read_plan")

_VERSION: Final = 1
_ANY_DIRECTORY: Final = "any"


@attrs.frozen
class ReassignmentPlan:
    """The brokers of each partition, the preferred leader first, and the log directories of replicas."""

    targets: Mapping[TopicPartition, tuple[int, ...]]
    log_dirs: Mapping[TopicPartitionReplica, str] = attrs.field(factory=dict)


def plan_json(assignment: Assignment, log_dirs: Mapping[TopicPartitionReplica, str] | None = None) -> str:
    """Return the JSON of a plan; brokers choose the log directories of replicas that are not in ``log_dirs``."""
    paths = log_dirs or {}
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(brokers),
            "log_dirs": [paths.get(TopicPartitionReplica(*partition, broker), _ANY_DIRECTORY) for broker in brokers],
        }
        for partition, brokers in sorted(assignment.items())
    ]
    return json.dumps({"version": _VERSION, "partitions": partitions}, separators=(",", ":"))


def read_plan(path: str) -> ReassignmentPlan:
    """Read the plan in a file.

    Raises:
        CommandFailed: the file cannot be read, or is no plan (exit status 2).
    """
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise CommandFailed(f"cannot read the plan in {path}: {error.strerror}", MISSING) from None
    except UnicodeDecodeError:
        raise CommandFailed(f"cannot read the plan in {path}: the file is not UTF-8 text", MISSING) from None
    try:
        return parse_plan(text)
    except CommandFailed as wrong:
        raise CommandFailed(f"{path}: {wrong}", MISSING) from None


def parse_plan(text: str) -> ReassignmentPlan:
    """Return the plan in a JSON text.

    Raises:
        CommandFailed: the text is no plan; the message says where it is wrong (exit status 2).
    """
    try:
        content = json.loads(text)
    except json.JSONDecodeError as wrong:
        raise CommandFailed(f"no JSON: {wrong}", MISSING) from None
    if not isinstance(content, dict) or not isinstance(content.get("partitions"), list):
        raise CommandFailed('the plan must be an object with a list "partitions"', MISSING)
    if content.get("version", _VERSION) != _VERSION:
        raise CommandFailed(f"the plan has version {content['version']!r}, and must have {_VERSION}", MISSING)
    if not content["partitions"]:
        raise CommandFailed("the plan has no partitions", MISSING)
    targets: dict[TopicPartition, tuple[int, ...]] = {}
    log_dirs: dict[TopicPartitionReplica, str] = {}
    for index, entry in enumerate(content["partitions"]):
        partition = _partition(f"partitions[{index}]", entry)
        if partition in targets:
            raise CommandFailed(f"the plan has {partition} twice", MISSING)
        targets[partition] = _brokers(partition, entry.get("replicas"))
        for broker, path in zip(targets[partition], _paths(partition, entry, targets[partition]), strict=True):
            if path != _ANY_DIRECTORY:
                log_dirs[TopicPartitionReplica(*partition, broker)] = path
    return ReassignmentPlan(targets, log_dirs)


def _partition(where: str, entry: Any) -> TopicPartition:
    if not isinstance(entry, dict) or not isinstance(entry.get("topic"), str) or not _is_number(entry.get("partition")):
        raise CommandFailed(f'{where} must be an object with "topic" and "partition"', MISSING)
    return TopicPartition(entry["topic"], entry["partition"])


def _brokers(partition: TopicPartition, given: Any) -> tuple[int, ...]:
    if not isinstance(given, list) or not given or not all(map(_is_number, given)):
        raise CommandFailed(f'"replicas" of {partition} must be a list of ids of brokers', MISSING)
    if len(set(given)) < len(given):
        raise CommandFailed(f'"replicas" of {partition} names a broker twice: {given}', MISSING)
    return tuple(given)


def _paths(partition: TopicPartition, entry: Mapping[str, Any], brokers: Sequence[int]) -> list[str]:
    given = entry.get("log_dirs", [_ANY_DIRECTORY] * len(brokers))
    if not isinstance(given, list) or not all(isinstance(path, str) and path for path in given):
        raise CommandFailed(f'"log_dirs" of {partition} must be a list of paths, or of "{_ANY_DIRECTORY}"', MISSING)
    if len(given) != len(brokers):
        raise CommandFailed(
            f'{partition} has {len(brokers)} "replicas" and {len(given)} "log_dirs": it needs one for each', MISSING
        )
    return given


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
