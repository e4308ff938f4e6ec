"""A broker that runs on its own thread, for tests without an event loop and for clients in another event loop."""

from collections.abc import Mapping
from typing import Unpack

from .background_control import BackgroundControl
from .background_faults import BackgroundRequestLog
from .background_thread import BackgroundThread
from .broker import Broker
from .broker_options import BrokerArguments
from .cluster.replicas import HostedPartition
from .telemetry.client_metrics import PushedMetrics

__all__ = ("BackgroundBroker",)


class BackgroundBroker(BackgroundThread[Broker], BackgroundControl):
    """A :class:`~aiokafkawire.testing.broker.Broker` that runs on a thread while its context is open.

    with BackgroundBroker(nodes=3) as kafka:
        kafka.create_topic("orders", partitions=6)
        ...  # any client, at kafka.bootstrap
        kafka.on(ApiKey.PRODUCE, drop="after")
        kafka.move_leader("orders", 0, 2)

    The methods for tests are those of Broker. Each call blocks until the method has run on the broker's thread. In an
    event loop that also runs a client, call them in a thread (``anyio.to_thread.run_sync``), or open a Broker instead.

    Args:
        nodes: the number of brokers.
        options: the other arguments of Broker; invalid ones raise ConfigError.
    """

    def __init__(self, nodes: int = 1, **options: Unpack[BrokerArguments]) -> None:
        super().__init__(Broker(nodes, **options), "broker")

    @property
    def bootstrap(self) -> str:
        """The value for clients' ``bootstrap.servers``."""
        return self._target.bootstrap

    def create_topic(self, name: str, partitions: int = 1, *, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic. Raises as :meth:`Broker.create_topic`."""

        def create(broker: Broker) -> None:
            broker.create_topic(name, partitions, configs=configs)

        self.do(create)

    @property
    def requests(self) -> BackgroundRequestLog:
        """The log of the requests received since the broker was opened."""
        return BackgroundRequestLog(self.do, self._target.requests)

    @property
    def node_ids(self) -> list[int]:
        """The ids of all brokers, including stopped ones."""
        return self._target.node_ids

    @property
    def addresses(self) -> dict[tuple[str, int], int]:
        """The id of each broker, by the broker's host and port."""
        return self._target.addresses

    @property
    def faults(self) -> list[Exception]:
        """The unexpected exceptions that request handlers have raised since the broker was opened."""
        return self._target.faults

    @property
    def pushed_metrics(self) -> list[PushedMetrics]:
        """The metrics that clients have pushed; see :attr:`Broker.pushed_metrics`. It may be read after the end."""
        return self._target.pushed_metrics

    @property
    def partitions(self) -> list[HostedPartition]:
        """Every partition of every topic, with its replicas."""
        return self.do(lambda broker: broker.partitions)
