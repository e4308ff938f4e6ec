"""Reports a share consumer's fetches and acknowledgements to the observers."""

from collections.abc import Iterable, Mapping

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node
from ..errors import KafkaError
from ..observe import AcknowledgementEnded, FetchEnded
from ..protocol.messages.share_fetch import ShareFetchResponse
from ..types import TopicPartition
from .acknowledgement_queue import AcknowledgementQueue, SentAcknowledgements
from .acknowledgements import records_in
from .share_fetch_session import PartitionKey

__all__ = ("ShareReports",)


class ShareReports:
    """The reports of one share consumer.

    Args:
        cluster: has the observers.
        group_id: the share group.
        lane: names the consumer's connections.
    """

    def __init__(self, cluster: Cluster, group_id: str | None, lane: str) -> None:
        self._observers = cluster.observers
        self._group, self._lane = group_id or "", lane

    def fetched(
        self, node: Node, wanted: Mapping[PartitionKey, TopicPartition], response: ShareFetchResponse, seconds: float
    ) -> None:
        """Report the response to a fetch."""
        notify = self._observers.fetch_ended
        if notify is None or not wanted:
            return
        brought = [
            (wanted[topic.topic_id, data.partition_index], data)
            for topic in response.responses
            for data in topic.partitions
            if data.acquired_records and (topic.topic_id, data.partition_index) in wanted
        ]
        sizes = [len(data.records or b"") for _, data in brought]
        counts = [
            sum(part.last_offset - part.first_offset + 1 for part in data.acquired_records) for _, data in brought
        ]
        notify(
            FetchEnded(
                broker=str(node.address),
                node_id=node.node_id,
                lane=self._lane,
                group=self._group,
                partitions=tuple(partition for partition, _ in brought),
                records=sum(counts),
                counts=counts,
                size=sum(sizes),
                sizes=sizes,
                seconds=seconds,
            )
        )

    def acknowledged(self, node: Node, sent: SentAcknowledgements, queue: AcknowledgementQueue, seconds: float) -> None:
        """Report the results of a request's acknowledgements."""
        if self._observers.acknowledgement_ended is None or not sent.results:
            return
        accepted = [key for key, error in sent.results.items() if error is None]
        self._acknowledged(node, sent, accepted, queue, seconds, None)
        for key, error in sent.results.items():
            if error is not None:
                self._acknowledged(node, sent, [key], queue, seconds, error)

    def _acknowledged(
        self,
        node: Node,
        sent: SentAcknowledgements,
        keys: Iterable[PartitionKey],
        queue: AcknowledgementQueue,
        seconds: float,
        error: KafkaError | None,
    ) -> None:
        counts = {queue.partition(key): count for key in keys if (count := records_in(sent.ranges[key]))}
        if counts and (notify := self._observers.acknowledgement_ended) is not None:
            notify(
                AcknowledgementEnded(
                    group=self._group,
                    broker=str(node.address),
                    node_id=node.node_id,
                    partitions=tuple(counts),
                    records=sum(counts.values()),
                    seconds=seconds,
                    error=error,
                )
            )
