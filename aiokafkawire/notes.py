"""Notes of requests and batches that have ended: what metrics count, as tuples, which take less time than events."""

from collections.abc import Mapping

from ._lazy_classes import frozen
from .errors import KafkaError
from .types import Address

__all__ = ("BatchNote", "ConnectionApi", "RequestNote")


@frozen(eq=False)
class ConnectionApi:
    """An API in one version on one connection: the fields that all its requests have in common."""

    lane: str
    api: str
    version: int
    at: Address
    node_ids: Mapping[Address, int]
    """The ids of the known brokers, by address."""
    throttle_leads: bool
    """Whether the throttle time is the first field of responses."""

    @property
    def node_id(self) -> int | None:
        """The broker's id; None while the address is not known to be a broker's."""
        return self.node_ids.get(self.at)


RequestNote = tuple[ConnectionApi, int, int, float, float, KafkaError | None, float]
"""The kind; the sizes of the request and of the response in bytes, 0 if there was none; the time until the response and
the throttle time that it names, in seconds; why the request has failed, None if it has not; and when it ended."""

BatchNote = tuple[str, int, int, int, int, float, float, bool, float]
"""The topic; the number of records, their size in bytes, and the size of the batch as it was sent; how often it was
sent; when it began and when it was first sent; whether it has failed; and when it ended."""
