"""aiokafka's interfaces that users implement: rebalance listeners, and providers of OAuth tokens."""

import abc
from collections.abc import Awaitable, Mapping
from typing import Any

from .structs import TopicPartition

__all__ = ("AbstractTokenProvider", "ConsumerRebalanceListener")


class ConsumerRebalanceListener(abc.ABC):
    """Gets the partitions that a consumer gains or loses; the methods may be coroutine functions.

    The rebalance waits for each method. A member's partitions are revoked before they are assigned to another one.
    """

    @abc.abstractmethod
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> Any:
        """Clean up before a rebalance: commit what is finished, and store what the next owner needs.

        Args:
            revoked: the partitions that the consumer had.
        """

    @abc.abstractmethod
    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> Any:
        """Prepare for the partitions, after the rebalance and before their first records.

        Args:
            assigned: all partitions that the consumer has now.
        """


class AbstractTokenProvider(abc.ABC):
    """A source of tokens for SASL/OAUTHBEARER. It is asked at each login, so it should reuse tokens that are valid."""

    @abc.abstractmethod
    def token(self) -> Awaitable[str]:
        """Return the token of a login; usually a coroutine function."""

    def extensions(self) -> Mapping[str, str]:
        """Return the SASL extensions to send with the token (KIP-342)."""
        return {}
