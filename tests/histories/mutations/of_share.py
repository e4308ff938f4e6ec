"""Mutations of share consumers."""

from .mutation import Mutation

__all__ = ("SHARE",)

_ACCEPTED = "a record is accepted only once its user has finished it"

SHARE = (
    Mutation(
        "records are accepted when they are read",
        _ACCEPTED,
        "processing.share_source",
        "                self._lanes.add(partition, None, unreadable or record, alone=unreadable is not None)\n",
        "                self._lanes.add(partition, None, unreadable or record, alone=unreadable is not None)\n"
        "                self._consumer.acknowledge(record, Acknowledge.ACCEPT)\n",
        "share_process",
    ),
    Mutation(
        "records that no handler can handle are accepted",
        _ACCEPTED,
        "processing.share_source",
        "        self._acknowledge(work, Acknowledge.RELEASE)\n",
        "        self._acknowledge(work, Acknowledge.ACCEPT)\n",
        "share_process",
    ),
    Mutation(
        "rejected records are accepted",
        "the broker gets what the user has said",
        "share.record_locks",
        "AcknowledgedOffsets(offset, offset, kind, by_user=True",
        "AcknowledgedOffsets(offset, offset, Acknowledge.ACCEPT, by_user=True",
        "share",
    ),
    Mutation(
        "records are returned after their locks have ended",
        "a member gets no record whose lock has ended",
        "share.share_buffer",
        "            if part[0].acquisition.first_end <= now:\n",
        "            if False:\n",
        "share",
    ),
    Mutation(
        "errors of acknowledgements are forgotten",
        "what commit returns as acknowledged was taken by the broker",
        "share.acknowledgement_queue",
        "        self._settle(self.partition(key), records_in(sent.ranges[key]), error)\n",
        "        self._settle(self.partition(key), records_in(sent.ranges[key]), None)\n",
        "share",
    ),
    Mutation(
        "acknowledgements count for the next lock",
        "an acknowledgement counts for the delivery that the user has got",
        "share.record_locks",
        "        self._queue.lose(acquisition)\n",
        "        pass\n",
        "share",
    ),
    Mutation(
        "unread records are not released",
        "a member that is closed releases what it has not returned",
        "share.record_locks",
        "                self.add(record.acquisition, AcknowledgedOffsets(record.offset, record.offset, "
        "Acknowledge.RELEASE))\n",
        "                pass\n",
        "share",
    ),
)
