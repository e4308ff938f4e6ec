"""The results of acknowledgements since the last commit."""

from collections.abc import Mapping

from ..errors import AcknowledgementFailed, KafkaError
from ..types import TopicPartition

__all__ = ("CommitResults",)


class CommitResults:
    """The results of the user's acknowledgements since the last commit."""

    def __init__(self) -> None:
        self._accepted: dict[TopicPartition, int] = {}
        self._failed: dict[TopicPartition, KafkaError] = {}

    def settle(self, partition: TopicPartition, count: int, error: KafkaError | None) -> None:
        """Take notice of the result for ``count`` records of the user; 0 changes nothing."""
        if not count:
            return
        if error is None:
            self._accepted[partition] = self._accepted.get(partition, 0) + count
        else:
            self._failed[partition] = error

    def take(self) -> Mapping[TopicPartition, int]:
        """Return how many records the brokers have taken since the last call, by partition.

        Raises:
            AcknowledgementFailed: a broker refused records of some partitions.
        """
        accepted, self._accepted = self._accepted, {}
        failed, self._failed = self._failed, {}
        if failed:
            raise AcknowledgementFailed(failed, accepted)
        return accepted
