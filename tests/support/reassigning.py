"""Plans that move the partitions of a topic "t", and what brokers say of the moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiokafkawire import ConfigResource, ConfigSource, NewTopic, blocking
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.broker import Broker

__all__ = ("hold_new_replica", "limits", "placed", "plan_file", "release_once_it_is_seen", "replicas")

THROTTLES = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def placed(*assignments: list[int]) -> NewTopic:
    """A topic whose partitions are on these brokers."""
    return NewTopic(assignments=assignments)


def plan_file(folder: Path, *targets: list[int], topic: str = "t", **more: Any) -> str:
    """Write a plan that moves the partitions to these brokers, and return its path."""
    path = folder / "plan.json"
    entries = [{"topic": topic, "partition": index, "replicas": nodes} for index, nodes in enumerate(targets)]
    path.write_text(json.dumps({"version": 1, "partitions": [{**entry, **more} for entry in entries]}))
    return str(path)


def hold_new_replica(broker: BackgroundBroker, index: int) -> None:
    """Keep broker 3 from copying a partition when it gets a replica, so that the move does not end."""
    broker.do(lambda one: one.partitions[index].held.update({3: 0}))


def release_once_it_is_seen(broker: BackgroundBroker, index: int) -> None:
    """Let the held replica be copied once somebody was told that the partition moves."""

    def told(_: object, response: Any) -> Any:
        loop_broker.release_replica("t", index, 3)
        return response

    loop_broker: Broker = broker.do(lambda one: one)
    broker.on(ApiKey.LIST_PARTITION_REASSIGNMENTS, answer=told)


def limits(kafka: blocking.Client, brokers: tuple[int, ...] = (1, 2, 3)) -> dict[str, dict[str, str | None]]:
    """Return the throttles that are set on the topic and on brokers."""
    resources = [ConfigResource.topic("t"), *map(ConfigResource.broker, brokers)]
    found = {}
    for resource, configs in kafka.admin.describe_configs(resources).items():
        own = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG)
        given = {name: configs[name].value for name in THROTTLES if name in configs and configs[name].source in own}
        if given:
            found[str(resource)] = given
    return found


def replicas(kafka: blocking.Client) -> list[list[int]]:
    """Return the brokers of each partition."""
    return [list(one.replicas) for one in kafka.admin.describe_topics("t")["t"].partitions]
