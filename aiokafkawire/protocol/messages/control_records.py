"""What control batches and transaction indexes hold.

A control record's key is a ControlRecordTypeSchema, and the type in it says what the value is. An Int16 goes before
ControlRecordTypeSchema, EndTxnMarker and AbortedTxn: their version. The others hold it in their first field, and are
found only in the metadata log and its snapshots.
"""

from ..primitives import ZERO_UUID, Array, Int16, Int32, Int64, String, UInt16, Uuid
from ..schema import Message, field, message, nested

__all__ = (
    "AbortedTxn",
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "Endpoint",
    "KRaftVersionFeature",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "LeaderChangeMessageVoter",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
    "VotersRecordVoter",
)


@message(versions="0")
class ControlRecordTypeSchema(Message):
    """The key of a control record (KIP-98); a type that the reader does not know is to be skipped."""

    # 0: abort; 1: commit; 2: leader change; 3: snapshot header; 4: snapshot footer; 5: KRaft version; 6: voters
    type: Int16 = field("0+")


@message(versions="0")
class EndTxnMarker(Message):
    """The value of an abort or commit marker, with which a producer's transaction ends (KIP-98)."""

    coordinator_epoch: Int32 = field("0+")  # of the transaction coordinator; a marker with an older one is refused


@message(versions="0")
class AbortedTxn(Message):
    """An entry of a log segment's transaction index: one aborted transaction (KIP-98)."""

    producer_id: Int64 = field("0+")
    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")  # that of its abort marker
    last_stable_offset: Int64 = field("0+")  # the partition's, at the abort


@nested
class LeaderChangeMessageVoter:
    """A voter of the metadata quorum."""

    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID)  # KIP-853


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage(Message):
    """What a new leader of the metadata quorum writes first (KIP-595)."""

    version: Int16 = field("0+")
    leader_id: Int32 = field("0+")
    voters: Array[LeaderChangeMessageVoter] = field("0+")
    granting_voters: Array[LeaderChangeMessageVoter] = field("0+")  # those who voted for the leader


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord(Message):
    """What a snapshot of the metadata log begins with (KIP-630)."""

    version: Int16 = field("0+")
    last_contained_log_timestamp: Int64 = field("0+")  # of the last record it stands for, in ms since 1970


@message(versions="0", flexible="0+")
class SnapshotFooterRecord(Message):
    """What a snapshot of the metadata log ends with, if it is whole (KIP-630)."""

    version: Int16 = field("0+")


@message(versions="0", flexible="0+")
class KRaftVersionRecord(Message):
    """Which version of the KRaft protocol the quorum speaks from here on (KIP-853)."""

    version: Int16 = field("0+")
    k_raft_version: Int16 = field("0+")  # 0: the voters are configured; 1: they are in the log


@nested
class Endpoint:
    """Where a voter listens."""

    name: String = field("0+")  # of the listener
    host: String = field("0+")
    port: UInt16 = field("0+")


@nested
class KRaftVersionFeature:
    """The versions of the KRaft protocol that a voter speaks."""

    min_supported_version: Int16 = field("0+")
    max_supported_version: Int16 = field("0+")


@nested
class VotersRecordVoter:
    """A voter; the directory id tells it from one that had the same id and lost its disk."""

    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")
    endpoints: Array[Endpoint] = field("0+")
    k_raft_version_feature: KRaftVersionFeature = field("0+")


@message(versions="0", flexible="0+")
class VotersRecord(Message):
    """All voters of the metadata quorum from here on (KIP-853)."""

    version: Int16 = field("0+")
    voters: Array[VotersRecordVoter] = field("0+")
