"""The records that a group member keeps over several polls, until the transaction with their results has ended."""

from collections.abc import Collection, Mapping

from ..errors import BrokerError, CommitFailed, KafkaError
from ..group.membership_driver import MembershipDriver
from ..records.batch import ConsumerRecord
from ..types import GroupMetadata, TopicPartition
from .consumer import Consumer
from .recreated_topics import is_of_old_topic

__all__ = ("RecordsInHand",)


class RecordsInHand:
    """The unfinished records of a group member: a rebalance revokes their partitions only after :meth:`release`.

    Args:
        consumer: the member, which subscribes when it opens; no other task reads from it.
    """

    def __init__(self, consumer: Consumer[bytes, bytes]) -> None:
        self._consumer, self._iteration, self._positions = consumer, consumer._iteration, consumer._positions
        self._iteration.keeps_in_hand = True

    async def poll(self, max_records: int) -> list[ConsumerRecord[bytes, bytes]]:
        """Return more records, as :meth:`Consumer.poll`; those returned before stay in hand."""
        return await self._consumer.poll(max_records)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Keep these partitions as well, though none of their records is in hand."""
        for partition in partitions:
            self._iteration.keep(self._positions.require(partition))

    @property
    def placed(self) -> dict[TopicPartition, int]:
        """The partitions that have a position, each with a number that changes with each seek and assignment."""
        return {state.partition: state.epoch for state in self._positions if state.position is not None}

    def release(self) -> None:
        """Finish the records in hand, so that their partitions may be revoked."""
        self._iteration.release()

    def go_back(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read the partitions in hand again from these offsets, unless they were revoked; and release them."""
        for state in self._iteration.in_hand:
            if state.partition in offsets and self._positions.get(state.partition) is state:
                self._consumer.seek(state.partition, offsets[state.partition])
        self.release()

    @property
    def kept(self) -> tuple[TopicPartition, ...]:
        """The partitions in hand that the group has not revoked."""
        states = self._iteration.in_hand
        return tuple(state.partition for state in states if self._positions.get(state.partition) is state)

    @property
    def are_owned(self) -> bool:
        """Whether the group has revoked none of the partitions in hand, and their topics exist, as far as is known."""
        snapshot = self._consumer._cluster.metadata.snapshot
        exist = not any(is_of_old_topic(self._positions, state, snapshot) for state in self._iteration.in_hand)
        return exist and not self._positions.lost_in_hand

    @property
    def block_rebalance(self) -> bool:
        """Whether a rebalance waits for the release of the records."""
        return any(state.withheld for state in self._iteration.in_hand if state.is_in_hand)

    async def wait_until_blocking(self, *, blocking: bool) -> None:
        """Wait until a rebalance waits for the release of the records, or until none does."""
        await self._driver.until(lambda: self.block_rebalance is blocking)

    @property
    def has_member(self) -> bool:
        """Whether the consumer takes part in its group, or tries to."""
        return not self._driver.has_ended

    def on_refusal(self, group: GroupMetadata, error: KafkaError) -> None:
        """Let the member find out at once why the coordinator has refused its offsets under ``group``."""
        cause = error.__cause__ if isinstance(error, CommitFailed) else error
        if isinstance(cause, BrokerError):
            self._driver.commit_refused(group, cause)

    def explained(self, group: GroupMetadata, error: BrokerError) -> BrokerError:
        """Return the error of a commit under ``group`` as it concerns the member; see the driver's method."""
        return self._driver.explained(group, error)

    @property
    def _driver(self) -> MembershipDriver:
        assert self._consumer._in_group is not None  # it has subscribed
        return self._consumer._in_group.driver
