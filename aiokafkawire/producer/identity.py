"""Whose numbers the records have: the producer id, asked of any broker, or that of the producer's transactions."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..config import ProducerConfig
from ..errors import ClusterAuthorizationFailed, KafkaError, UnsupportedVersion, as_kafka_error, broker_error
from .accumulator import Accumulator
from .idempotence import Sequences

if TYPE_CHECKING:  # many a producer makes no transactions
    from ..protocol.messages.transactions import InitProducerIdResponse
    from .transaction import TransactionMachine

__all__ = ("Identity",)

_log = logging.getLogger("aiokafkawire.producer")

_NO_TRANSACTIONS: Final = 2**31 - 1
"""The transaction timeout of a producer that makes none, as Java's says it."""


class Identity:
    """Sees to it that ``sequences`` have a producer id and epoch. ``on_change`` is called when more can be sent."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        sequences: Sequences | None,
        transaction: "TransactionMachine | None",
        on_change: Callable[[], None],
    ) -> None:
        self.refused: KafkaError | None = None
        """Why there will never be one."""
        self._cluster, self._config, self._accumulator = cluster, config, accumulator
        self._sequences, self._transaction, self._on_change = sequences, transaction, on_change
        self._generation = 0
        self._asking = False
        self._pace = cluster.backoff()

    @property
    def is_missing(self) -> bool:
        """Whether nothing can be numbered now, and so nothing sent."""
        return self._sequences is not None and self._sequences.needs_identity

    @property
    def is_wanted(self) -> bool:
        """Whether a broker has to be asked."""
        return self._transaction is None and self.is_missing and self.refused is None

    def follow(self) -> None:
        """Number on under the id and epoch that the transactions have now."""
        machine, sequences = self._transaction, self._sequences
        if machine is not None and sequences is not None and machine.generation != self._generation:
            self._generation = machine.generation
            sequences.begin_anew(machine.producer_id, machine.producer_epoch)

    def begin_asking(self, tasks: TaskGroup) -> None:
        """Ask for an id, if one is wanted and nobody is at it."""
        if self.is_wanted and not self._asking:
            self._asking = True
            tasks.start_soon(self._ask)

    async def _ask(self) -> None:
        """Any broker will do; those of before Kafka 0.11 have none."""
        from ..protocol.messages.transactions import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTIONS)
        deadline = self._cluster.deadline(self._config.delivery_timeout_ms / 1000)
        try:
            answer = await self._cluster.ask(self._cluster.least_loaded, request, deadline, check=_check)
            if self._sequences is not None:
                self._sequences.identify(answer.producer_id, answer.producer_epoch)
                _log.info("producer id %d, epoch %d (idempotence)", answer.producer_id, answer.producer_epoch)
            self._pace.reset()
        except (UnsupportedVersion, ClusterAuthorizationFailed) as error:
            if self._config.enable_idempotence:
                self.refused = error
            else:
                # Who runs old brokers knows that; who forbids it may not.
                level = logging.INFO if isinstance(error, UnsupportedVersion) else logging.WARNING
                _log.log(level, "sending without idempotence, so a retry may write a record twice: %s", error)
                self._sequences = None
                self._accumulator.stop_numbering()
        except KafkaError as error:
            self._accumulator.blame(error, lambda batch: True)
            delay = self._pace.next()
            _log.debug("retrying InitProducerId in %.0f ms: %s", delay * 1000, error)
            await anyio.sleep(delay)
        except Exception as error:
            self.refused = as_kafka_error(error, "asking for a producer id")
        finally:
            self._asking = False
            self._on_change()


def _check(response: "InitProducerIdResponse") -> None:
    if response.error_code:
        raise broker_error(response.error_code, "asking for a producer id")
