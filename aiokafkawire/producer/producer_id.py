"""Obtains the producer id and epoch for sequence numbers, from any broker or from the state of transactions."""

import logging
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..config import ProducerConfig
from ..errors import ClusterAuthorizationFailed, KafkaError, UnsupportedVersion, as_kafka_error, broker_error
from ..event_log import EventLog
from .accumulator import RecordAccumulator

if TYPE_CHECKING:  # most producers make no transactions
    from ..protocol.messages.transactions import InitProducerIdResponse
    from .sender import Sender
    from .transaction_state_machine import TransactionStateMachine

__all__ = ("ProducerIdManager",)

_log = EventLog("aiokafkawire.producer")

_NO_TRANSACTIONS: Final = 2**31 - 1
"""The transaction timeout in ms for a producer without transactions, as sent by Java's client."""


class ProducerIdManager:
    """The manager of the sequence numbers' producer id and epoch, from any broker or from the transactions."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, accumulator: RecordAccumulator) -> None:
        self._cluster, self._config, self._accumulator = cluster, config, accumulator
        self._generation = 0
        self._requesting = False
        self._backoff = cluster.backoff()

    def follow(self, transaction: "TransactionStateMachine") -> None:
        """Use the producer id and epoch of the transactions if they have changed."""
        sequences = self._accumulator.sequences
        if sequences is not None and transaction.generation != self._generation:
            self._generation = transaction.generation
            sequences.reset(transaction.producer_id, transaction.producer_epoch)

    def start_request(self, tasks: TaskGroup, sender: "Sender") -> None:
        """Start a task that requests a producer id for this sender, unless such a task is running."""
        if not self._requesting:
            self._requesting = True
            tasks.start_soon(self._request, sender)

    async def _request(self, sender: "Sender") -> None:
        """Request a producer id; if the broker assigns none, go on without idempotence or, if it is required, stop."""
        from ..protocol.messages.transactions import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTIONS)
        deadline = self._cluster.deadline(self._config.delivery_timeout_ms / 1000)
        try:
            answer = await self._cluster.ask(self._cluster.least_loaded, request, deadline, check=_check)
            if self._accumulator.sequences is not None:
                self._accumulator.sequences.set_producer_id(answer.producer_id, answer.producer_epoch)
                _log.info(
                    "producer id %(producer_id)d, epoch %(producer_epoch)d (idempotence)",
                    producer_id=answer.producer_id,
                    producer_epoch=answer.producer_epoch,
                    client_id=self._cluster.config.client_id,
                )
            self._backoff.reset()
        except (UnsupportedVersion, ClusterAuthorizationFailed) as error:
            if self._config.enable_idempotence:
                sender.stop(error)
            else:
                # Users of old brokers know that these lack idempotence; unauthorized users may not know why it is off.
                level = logging.INFO if isinstance(error, UnsupportedVersion) else logging.WARNING
                message = "sending without idempotence, so a retry may write a record twice: %(error)s"
                _log.log(level, message, error=error, client_id=self._cluster.config.client_id)
                self._accumulator.sequences = None
        except KafkaError as error:
            self._accumulator.record_error(error, lambda batch: True)
            delay = self._backoff.next()
            _log.debug("retrying %(api)s in %(delay).3f s: %(error)s", api="InitProducerId", delay=delay, error=error)
            await anyio.sleep(delay)
        except Exception as error:
            sender.stop(as_kafka_error(error, "requesting a producer id"))
        finally:
            self._requesting = False
            sender.wake()


def _check(response: "InitProducerIdResponse") -> None:
    if response.error_code:
        raise broker_error(response.error_code, "requesting a producer id")
