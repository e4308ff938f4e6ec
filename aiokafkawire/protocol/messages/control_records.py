"""What control batches and transaction indexes hold."""

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
    """DOC."""

    type: Int16 = field("0+")


@message(versions="0")
class EndTxnMarker(Message):
    """DOC."""

    coordinator_epoch: Int32 = field("0+")


@message(versions="0")
class AbortedTxn(Message):
    """DOC."""

    producer_id: Int64 = field("0+")
    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    last_stable_offset: Int64 = field("0+")


@nested
class LeaderChangeMessageVoter:
    """DOC(LeaderChangeMessage.Voters)."""

    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID)


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage(Message):
    """DOC."""

    version: Int16 = field("0+")
    leader_id: Int32 = field("0+")
    voters: Array[LeaderChangeMessageVoter] = field("0+")
    granting_voters: Array[LeaderChangeMessageVoter] = field("0+")


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord(Message):
    """DOC."""

    version: Int16 = field("0+")
    last_contained_log_timestamp: Int64 = field("0+")


@message(versions="0", flexible="0+")
class SnapshotFooterRecord(Message):
    """DOC."""

    version: Int16 = field("0+")


@message(versions="0", flexible="0+")
class KRaftVersionRecord(Message):
    """DOC."""

    version: Int16 = field("0+")
    k_raft_version: Int16 = field("0+")


@nested
class Endpoint:
    """DOC(VotersRecord.Endpoints)."""

    name: String = field("0+")
    host: String = field("0+")
    port: UInt16 = field("0+")


@nested
class KRaftVersionFeature:
    """DOC(VotersRecord.KRaftVersionFeature)."""

    min_supported_version: Int16 = field("0+")
    max_supported_version: Int16 = field("0+")


@nested
class VotersRecordVoter:
    """DOC(VotersRecord.Voters)."""

    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")
    endpoints: Array[Endpoint] = field("0+")
    k_raft_version_feature: KRaftVersionFeature = field("0+")


@message(versions="0", flexible="0+")
class VotersRecord(Message):
    """DOC."""

    version: Int16 = field("0+")
    voters: Array[VotersRecordVoter] = field("0+")
