"""aiokafka's request to create topics."""

from collections.abc import Iterable
from typing import Any

from ...protocol.messages import topics as messages
from ...protocol.schema import Request
from ..admin.config_resource import as_text
from ..admin.responses import TopicErrorsResponse, created_topics
from .request import TheirRequest

__all__ = ("CreateTopicsRequest",)


class CreateTopicsRequest(TheirRequest):
    """Creates topics.

    Args:
        create_topic_requests: for each topic its name, number of partitions, number of replicas, the brokers of its
            partitions as pairs, and its configs as pairs.
        timeout: in ms.
        validate_only: whether the brokers only check the request.
    """

    def __init__(self, create_topic_requests: Iterable[Any], timeout: int, validate_only: bool = False) -> None:
        topics = [
            messages.CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replicas,
                assignments=[
                    messages.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                    for index, brokers in assignments
                ],
                configs=[messages.CreatableTopicConfig(name=key, value=as_text(value)) for key, value in configs],
            )
            for name, partitions, replicas, assignments, configs in create_topic_requests
        ]
        self.message: Request[Any] = messages.CreateTopicsRequest(
            topics=topics, timeout_ms=timeout, validate_only=validate_only
        )

    def answer(self, response: messages.CreateTopicsResponse) -> TopicErrorsResponse:
        """Return the error of each topic."""
        return created_topics(response)
