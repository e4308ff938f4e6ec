"""Mutations of transactions: of their producer, and of consumers that read committed records."""

from .mutation import Mutation

__all__ = ("TRANSACTIONS",)

_ABORTED = "nobody reads records of an aborted transaction"
_WHOLE = "a committed transaction has all of its records"

TRANSACTIONS = (
    Mutation(
        "abort is answered as a commit",
        _ABORTED,
        "producer.transaction_state_machine",
        "return end_transaction(self.identity, commit=False)",
        "return end_transaction(self.identity, commit=True)",
        "transactions",
    ),
    Mutation(
        "commit in spite of a failed batch",
        _WHOLE,
        "producer.transaction_state_machine",
        "            self._can_only_abort(error, in_doubt=in_doubt)\n\n    def batch_written",
        "            pass\n\n    def batch_written",
        "transactions",
    ),
    Mutation(
        "commit does not wait for batches",
        _WHOLE,
        "producer.transaction",
        "            await self._sender.wait_until_complete()\n",
        "            pass\n",
        "transactions",
    ),
    Mutation(
        "epoch is not bumped after a batch in doubt",
        "a late batch of an ended transaction is refused",
        "producer.transaction_state_machine",
        "(ended.bump or (ended.in_doubt and self.version < 2))",
        "ended.bump",
        "transactions",
    ),
    Mutation(
        "records are sent before the partition is added",
        "the coordinator knows every partition of a transaction",
        "producer.transaction_state_machine",
        "return self.phase in (_OPEN, _COMMITTING) and partition in self._transaction.added",
        "return self.phase in (_OPEN, _COMMITTING)",
        "transactions",
    ),
    Mutation(
        "offsets are left out of the transaction",
        "offsets are committed with the records of the transaction",
        "producer.transaction_state_machine",
        "return self._transaction.add_offsets(group, offsets, topic_ids) if offsets else OffsetsCommit(done=True)",
        "return OffsetsCommit(done=True)",
        "transactions",
    ),
    Mutation(
        "commit that failed counts as done",
        "what is committed is in the log",
        "producer.transaction_state_machine",
        "            self._fail(explained(self.transactional_id, error, refused.request))\n",
        "            self._close()\n",
        "transactions",
    ),
    Mutation(
        "list of aborted transactions is ignored",
        _ABORTED,
        "consumer.completed_fetch",
        "self._aborted_transactions = (data.aborted_transactions or ()) if committed_only else None",
        "self._aborted_transactions = None",
        "transactions",
    ),
    Mutation(
        "aborted transaction never ends for the reader",
        "a reader of committed records sees all of them",
        "consumer.completed_fetch",
        "        self._producers.pop(header.producer_id, None)\n",
        "        pass\n",
        "transactions",
    ),
    Mutation(
        "reads beyond the last stable offset",
        "nobody reads records of an open transaction",
        "consumer.fetch_messages",
        "isolation_level=config.isolation,",
        "isolation_level=type(config.isolation)(0),",
        "transactions",
    ),
)
