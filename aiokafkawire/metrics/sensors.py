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
    """The times until responses, in ms: to Produce, to fetches, or to all requests of the admin."""


class ConnectionSensors(_Sensors):
    """The connections of producers, consumers or the admin."""

    __slots__ = ("authentication", "closed", "created", "failed_authentication")

    authentication: SampledValue
    """Connections opened with SASL."""
    closed: SampledValue
    created: SampledValue
    failed_authentication: SampledValue


class ProducerSensors(_Sensors):
    """The producers of a client."""

    __slots__ = (
        "batch_size",
        "buffer_wait",
        "compression",
        "errors",
        "exhausted",
        "metadata_wait",
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
    buffer_wait: SampledValue
    """How long calls have waited for buffer space, in ns; recorded when the values are read."""
    compression: SampledValue
    """The compressed size of each batch as part of its size before."""
    errors: SampledValue
    """The records of each batch that has failed."""
    exhausted: SampledValue
    """The records for which there was no buffer space in time; recorded when the values are read."""
    metadata_wait: SampledValue
    """How long calls have waited for a topic's metadata, in ns; recorded when the values are read."""
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
    """The batches that producers have sent to one topic."""

    __slots__ = ("bytes", "compression", "errors", "records", "retries")

    bytes: SampledValue
    compression: SampledValue
    errors: SampledValue
    records: SampledValue
    retries: SampledValue


class FetchSensors(_Sensors):
    """The fetches of a client's consumers."""

    __slots__ = ("acknowledgement_errors", "acknowledgements", "bytes", "latency", "records", "throttle")

    acknowledgement_errors: SampledValue
    """The records whose acknowledgements a broker has refused, of share consumers."""
    acknowledgements: SampledValue
    """The records that were acknowledged, of share consumers."""
    bytes: SampledValue
    """The bytes that a fetch has brought."""
    latency: SampledValue
    """The times until responses, in ms."""
    records: SampledValue
    """The records that a fetch has brought."""
    throttle: SampledValue
    """How long brokers have throttled the client after a fetch, in ms."""


class TopicFetched(_Sensors):
    """The records that consumers have fetched of one topic."""

    __slots__ = ("bytes", "records")

    bytes: SampledValue
    records: SampledValue


class CoordinatorSensors(_Sensors):
    """The work of a client's consumers in their groups; times in ms."""

    __slots__ = ("commit", "heartbeat", "join", "rebalance", "sync")

    commit: SampledValue
    heartbeat: SampledValue
    join: SampledValue
    rebalance: SampledValue
    sync: SampledValue
