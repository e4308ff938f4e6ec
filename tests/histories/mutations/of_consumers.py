"""Mutations of the consumer's reading."""

from .mutation import Mutation

__all__ = ("CONSUMERS",)

_ONCE = "a consumer returns every record of its partitions once"

CONSUMERS = (
    Mutation(
        "batch is read from its beginning",
        "a consumer that begins in the middle of a batch returns no records before its position",
        "consumer.record_iteration",
        "from_offset=state.position or 0,",
        "from_offset=0,",
        "plain",
    ),
    Mutation(
        "data that was fetched ahead need not follow",
        "records are returned without gaps",
        "consumer.fetch_buffer",
        "return self._positions.is_current(ask.state, ask.epoch) and ask.state.position == ask.offset",
        "return self._positions.is_current(ask.state, ask.epoch)",
        "plain",
    ),
    Mutation(
        "poll skips the batch after a full poll",
        _ONCE,
        "consumer.record_iteration",
        "            if reading.reader is not None:\n                state.position = reader.next_offset\n",
        "            if reading.reader is not None:\n                state.position = reading.batch_end\n",
        "groups",
    ),
    Mutation(
        "fetch session forgets changed offsets",
        "a fetch session reads from the consumer's position",
        "consumer.fetch_session",
        "[ask for partition, ask in wanted.items() if known.get(partition) != ask],",
        "[ask for partition, ask in wanted.items() if partition not in known],",
        "plain",
    ),
    Mutation(
        "data from before a seek counts",
        "after a seek the next record is the one of its offset",
        "consumer.completed_fetch",
        "return self.state.epoch == self.epoch",
        "return True",
        "groups",
    ),
)
