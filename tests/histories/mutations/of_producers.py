"""Mutations of the producer."""

from .mutation import Mutation

__all__ = ("PRODUCERS",)

_NUMBERS = "every batch has the sequence numbers after those of the batch before it"
_RETRY = "a retry keeps the sequence number of the first attempt"
_ORDER = "records of a partition are written in the order of the calls"
_ACKNOWLEDGED = "what is acknowledged is in the log"
_PLACE = "an acknowledgement has the record's offset"

PRODUCERS = (
    Mutation(
        "sequence number does not advance",
        _NUMBERS,
        "producer.idempotence",
        "sequence.next_sequence = sequence_after(sequence.next_sequence, batch.count)",
        "pass",
        "plain",
    ),
    Mutation(
        "retry gets a new sequence number",
        _RETRY,
        "producer.accumulator",
        "        batch.not_before = not_before\n",
        "        batch.not_before = not_before\n        batch.reset_sequence()\n",
        "plain",
    ),
    Mutation(
        "restart of the numbers stays in the epoch",
        "numbers restart at 0 only in a new epoch",
        "producer.idempotence",
        "_PartitionSequence(sequence.producer_id, sequence.producer_epoch + 1)",
        "_PartitionSequence(sequence.producer_id, sequence.producer_epoch)",
        "plain",
    ),
    Mutation(
        "both halves of a split batch have its number",
        "every record of a split batch keeps its sequence number",
        "producer.batch",
        "base_sequence=sequence_after(self.base_sequence, first) if self.base_sequence >= 0 else -1",
        "base_sequence=self.base_sequence",
        "plain",
    ),
    Mutation(
        "batches in flight before the leader knows the producer",
        "one batch of a partition is in flight until the leader has acknowledged one",
        "producer.accumulator",
        "return in_order and queue.proven and queue.restart is None",
        "return in_order and queue.restart is None",
        "plain",
    ),
    Mutation(
        "batches of one partition in parallel, in any order",
        _ORDER,
        "producer.accumulator",
        "return in_order and queue.proven and queue.restart is None",
        "return True",
        "plain",
    ),
    Mutation(
        "retry goes behind later batches",
        _ORDER,
        "producer.accumulator",
        "insort(queue.waiting, batch, key=_order)",
        "queue.waiting.append(batch)",
        "plain",
    ),
    Mutation(
        "batch refused by a deposed leader is acknowledged",
        _ACKNOWLEDGED,
        "producer.batch_completion",
        "        if action is SequenceAction.WRITTEN:\n",
        '        if action is SequenceAction.WRITTEN or type(error).__name__ == "NotLeaderOrFollower":\n',
        "plain",
    ),
    Mutation(
        "batch without an answer is acknowledged",
        _ACKNOWLEDGED,
        "producer.batch_completion",
        "        if action is SequenceAction.WRITTEN:\n",
        "        unanswered = type(error).__name__ in ('RequestTimeout', 'ConnectionLost')\n"
        "        if action is SequenceAction.WRITTEN or unanswered:\n",
        "plain",
    ),
    Mutation(
        "batch that misses an earlier one is acknowledged",
        _ACKNOWLEDGED,
        "producer.idempotence",
        "    if isinstance(error, DuplicateSequenceNumber):\n",
        "    if isinstance(error, DuplicateSequenceNumber | OutOfOrderSequenceNumber):\n",
        "plain",
    ),
    Mutation(
        "acks=all is sent as acks=1",
        "with acks=all a record outlives its leader",
        "producer.produce_request",
        "        self._acks, self._timeout_ms, self._transactional_id = acks, timeout_ms, transactional_id\n",
        "        self._acks, self._timeout_ms, self._transactional_id = 1, timeout_ms, transactional_id\n",
        "plain",
    ),
    Mutation(
        "all records of a batch get its first offset",
        _PLACE,
        "producer.batch",
        "offset = self._base_offset + index if self._base_offset >= 0 else -1",
        "offset = self._base_offset",
        "plain",
    ),
    Mutation(
        "half of a split batch is lost",
        "all records of a split batch are sent",
        "producer.accumulator",
        "            self._wait_again(half)\n",
        "            self._wait_again(half)\n            break\n",
        "plain",
    ),
)
