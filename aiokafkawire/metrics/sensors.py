"""The sampled values of a client's parts: of its requests, connections, producers, consumers and their topics."""

from .windows import SampledValue

__all__ = (
    "ConnectionSensors",
    "CoordinatorSensors",
    "FetchSensors",
    "ProducerSensors",
    "RequestSensors",
    "TopicFetched",
    "TopicProduced",
)


class _Sensors:
    """A set of sampled values, one for each slot."""

    __slots__: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, SampledValue())


class RequestSensors(_Sensors):
    """The requests of producers, consumers or the admin, to all brokers or to one."""

    __slots__ = ("latency", "received", "sent")

    sent: SampledValue
    """The sizes of requests, in bytes."""
    received: SampledValue
    """The sizes of responses, in bytes."""
    latency: SampledValue
    """The times until responses to Produce or Fetch, in ms."""


class ConnectionSensors(_Sensors):
    """The connections of producers, consumers or the admin."""

    __slots__ = ("closed", "created", "failed_authentication")

    created: SampledValue
    closed: SampledValue
    failed_authentication: SampledValue


class ProducerSensors(_Sensors):
    """The producers of a client."""

    __slots__ = (
        "batch_size",
        "compression",
        "errors",
        "queue",
        "record_size",
        "records",
        "retries",
        "throttle",
        "txn_abort",
        "txn_commit",
        "txn_init",
        "txn_send_offsets",
    )

    batch_size: SampledValue
    """The sizes of batches as they were sent, in bytes."""
    compression: SampledValue
    """The compressed size of each batch as part of its size before."""
    errors: SampledValue
    """The records of each batch that has failed."""
    queue: SampledValue
    """The times of batches before they were sent, in ms."""
    record_size: SampledValue
    """The average size of the records of each batch, in bytes."""
    records: SampledValue
    """The records of each batch, counted once for each time it was sent."""
    retries: SampledValue
    """The records that were sent again, of each batch."""
    throttle: SampledValue
    """How long brokers have throttled the client after Produce, in ms."""
    txn_abort: SampledValue
    """The times of requests that ended aborted transactions, in ns; likewise the others."""
    txn_commit: SampledValue
    txn_init: SampledValue
    txn_send_offsets: SampledValue


class TopicProduced(_Sensors):
    """What producers have sent to one topic."""

    __slots__ = ("bytes", "compression", "errors", "records", "retries")

    bytes: SampledValue
    compression: SampledValue
    errors: SampledValue
    records: SampledValue
    retries: SampledValue


class FetchSensors(_Sensors):
    """The fetches of a client's consumers."""

    __slots__ = ("bytes", "latency", "records", "throttle")

    bytes: SampledValue
    latency: SampledValue
    records: SampledValue
    throttle: SampledValue


class TopicFetched(_Sensors):
    """What consumers have fetched of one topic."""

    __slots__ = ("bytes", "records")

    bytes: SampledValue
    records: SampledValue


class CoordinatorSensors(_Sensors):
    """The work of a client's consumers in their groups; times in ms."""

    __slots__ = ("commit", "heartbeat", "join", "lost", "rebalance", "sync")

    commit: SampledValue
    heartbeat: SampledValue
    join: SampledValue
    lost: SampledValue
    """The partitions that were lost."""
    rebalance: SampledValue
    sync: SampledValue
