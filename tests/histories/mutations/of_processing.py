"""Mutations of what processes records: exactly once by transactions, and by ``process``."""

from .mutation import Mutation

__all__ = ("PROCESSING",)

_EXACTLY = "the result of every record counts once"
_HANDLED = "every record is handled"

PROCESSING = (
    Mutation(
        "offsets of a transaction have no generation",
        _EXACTLY,
        "producer.transaction",
        "        checked = _group(group)\n",
        "        checked = GroupMetadata(_group(group).group_id)\n",
        "transforms",
    ),
    Mutation(
        "transaction does not check the ownership",
        "no transaction commits records of a partition that was revoked since",
        "producer.transaction",
        "                consumed.check_ownership(since=self._began)\n",
        "                pass\n",
        "processing",
    ),
    Mutation(
        "outcome that is not known counts as an abort",
        _EXACTLY,
        "transform",
        "        if outcome is _Outcome.UNKNOWN and (kept := self._in_hand.kept):\n",
        "        if False and (kept := self._in_hand.kept):\n",
        "transforms",
    ),
    Mutation(
        "transform writes results of records that were lost",
        _EXACTLY,
        "transform",
        "            self._consumer.check_ownership()\n",
        "            pass\n",
        "transforms",
    ),
    Mutation(
        "transform goes on after a failed transaction",
        "records whose transaction is aborted are processed again",
        "transform",
        "            await self._go_back(records, outcome)\n",
        "            self._in_hand.release()\n",
        "transforms",
    ),
    Mutation(
        "transform commits its offsets without its results",
        _EXACTLY,
        "transform",
        "            outcome = await self._write(await self._processed(records), offsets)\n",
        "            await self._write([], offsets)\n"
        "            outcome = await self._write(await self._processed(records), offsets)\n",
        "transforms",
    ),
    Mutation(
        "process commits what is not finished",
        _HANDLED,
        "processing.offset_tracker",
        "offset = self._unfinished[0] if self._unfinished else end",
        "offset = end",
        "process",
    ),
    Mutation(
        "process commits nothing before a revocation",
        "no record is handled twice when members leave in order",
        "processing.group_source",
        "            await self._commit(partitions)\n",
        "            pass\n",
        "process",
    ),
    Mutation(
        "records that the owner before has finished are handled again",
        "no record is handled twice when members leave in order",
        "processing.offset_tracker",
        "        if before and before[0][0] <= offset:\n            return False\n",
        "",
        "process",
    ),
    Mutation(
        "handlers of lost partitions go on",
        "one record of a key is handled at a time",
        "processing.group_source",
        "        self._pool.cancel(self._lanes.drop(partitions, running=True))\n",
        "        self._lanes.drop(partitions, running=True)\n",
        "process",
    ),
    Mutation(
        "records of a key are handled at once",
        "records of a key are handled in their order",
        "processing.lanes",
        '        if last is None or (lane is None and self._ordering != "partition"):\n',
        "        if True:\n",
        "process",
    ),
    Mutation(
        "dead letters are not written",
        "a record that no handler takes is in the dead-letter topic",
        "processing.handler_pool",
        "            await self._writer.write(self._dead_letter_topic, work.records, work.attempts, error)\n",
        "",
        "process",
    ),
    Mutation(
        "failed record is finished without another attempt",
        "a failed record is tried again",
        "processing.handler_pool",
        "            self._retried += 1\n            self._delay(work, delay)\n            return False\n",
        "            return True\n",
        "process",
    ),
    Mutation(
        "process goes on with what it had of a topic that was made anew",
        "no offset of a deleted topic counts for the next one of its name",
        "processing.group_source",
        "            if current is not None and current is not state:\n",
        "            if False:\n",
        "recreated",
    ),
)
