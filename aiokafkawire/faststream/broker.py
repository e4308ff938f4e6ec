"""FastStream's KafkaBroker on one shared client."""

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Final

from faststream.exceptions import IncorrectState
from faststream.kafka import KafkaBroker as FastStreamBroker

from ..aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from ..aiokafka.admin import AIOKafkaAdminClient
from ..aiokafka.client import AIOKafkaClient
from ..aiokafka.producer.producer import TransactionContext
from ..client import Client
from .shared_client import SharedClient, accepted_arguments, sharing

__all__ = ("KafkaBroker",)

_NOT_CONNECTED: Final = "the broker is not connected: call it after `await broker.connect()` or `await broker.start()`"


class KafkaBroker(FastStreamBroker):
    """FastStream's Kafka broker, with its arguments, decorators and methods, on one :class:`~aiokafkawire.Client`.

    Its publishers, subscribers and the admin share the connections: one per Kafka broker and lane.
    """

    _shared: SharedClient | None = None

    @property
    def client(self) -> Client:
        """The client of the cluster, open from ``connect()`` to ``stop()``: its admin, metrics, health and the rest.

        Raises:
            IncorrectState: the broker is not connected.
        """
        if self._shared is None:
            raise IncorrectState(_NOT_CONNECTED)
        return self._shared.wire_client

    def transaction(self) -> TransactionContext:
        """Return a context whose publishes are committed together, or aborted if it raises; KIP-98.

        The broker needs a ``transactional_id``, and publishes in transactions only. One is open at a time.

        Raises:
            IncorrectState: the broker is not connected, or is made with ``consumer_only=True``.
            IllegalOperation: the broker has no ``transactional_id``.
        """
        if not self.config.producer:
            raise IncorrectState(_NOT_CONNECTED)
        shared: Any = self.config.producer
        producer: AIOKafkaProducer = shared._producer.producer
        return producer.transaction()

    async def _connect(self) -> Callable[..., AIOKafkaConsumer[Any, Any]]:
        arguments, config = self._connection_kwargs, self.config.broker_config
        client = SharedClient(**accepted_arguments(AIOKafkaClient, arguments))
        await client.bootstrap()
        self._shared = client
        try:
            if not config.consumer_only:
                producer = sharing(AIOKafkaProducer, client)(**accepted_arguments(AIOKafkaProducer, arguments))
                codec = {} if config.broker_codec is None else {"codec": config.broker_codec}
                await config.producer.connect(producer, serializer=config.fd_config._serializer, **codec)
                admin = sharing(AIOKafkaAdminClient, client)(**accepted_arguments(AIOKafkaAdminClient, arguments))
                await admin.start()
                config.admin.admin_client = admin
        except BaseException:
            try:
                await config.disconnect()
            finally:
                await self._close_client()
            raise
        consumer_arguments = accepted_arguments(AIOKafkaConsumer, arguments) | {"client_rack": config.client_rack}
        config.builder = partial(sharing(AIOKafkaConsumer, client), **consumer_arguments)
        return config.builder

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Stop the subscribers, send what has been published, and close the connections."""
        try:
            await super().stop(exc_type, exc_val, exc_tb)
        finally:
            try:
                if self._connection is not None:  # a subscriber has failed to stop, and FastStream goes no further
                    self._connection = None
                    await self.config.disconnect()
            finally:
                await self._close_client()

    async def _close_client(self) -> None:
        client, self._shared = self._shared, None
        if client is not None:
            await client.close_shared()
