"""The exceptions of aiokafka 0.14: its names, hierarchy, error codes and flags."""

from typing import Any, Final

from ..error_codes import ErrorCode
from ..errors import broker_error

__all__ = (
    "KafkaError",
    "BrokerResponseError",
    "ConsumerStoppedError",
    "IllegalOperation",
    "CommitFailedError",
    "ProducerFenced",
    "IllegalStateError",
    "IllegalArgumentError",
    "NoBrokersAvailable",
    "NodeNotReadyError",
    "KafkaProtocolError",
    "CorrelationIdError",
    "Cancelled",
    "TooManyInFlightRequests",
    "StaleMetadata",
    "MetadataEmptyBrokerList",
    "UnrecognizedBrokerVersion",
    "IncompatibleBrokerVersion",
    "AuthenticationMethodNotSupported",
    "AuthenticationFailedError",
    "KafkaUnavailableError",
    "KafkaTimeoutError",
    "KafkaConnectionError",
    "UnsupportedCodecError",
    "KafkaConfigurationError",
    "QuotaViolationError",
    "NoOffsetForPartitionError",
    "RecordTooLargeError",
    "ProducerClosed",
    "NoError",
    "UnknownError",
    "OffsetOutOfRangeError",
    "CorruptRecordException",
    "UnknownTopicOrPartitionError",
    "InvalidFetchRequestError",
    "LeaderNotAvailableError",
    "NotLeaderForPartitionError",
    "RequestTimedOutError",
    "BrokerNotAvailableError",
    "ReplicaNotAvailableError",
    "MessageSizeTooLargeError",
    "StaleControllerEpochError",
    "OffsetMetadataTooLargeError",
    "StaleLeaderEpochCodeError",
    "GroupLoadInProgressError",
    "GroupCoordinatorNotAvailableError",
    "NotCoordinatorForGroupError",
    "InvalidTopicError",
    "RecordListTooLargeError",
    "NotEnoughReplicasError",
    "NotEnoughReplicasAfterAppendError",
    "InvalidRequiredAcksError",
    "IllegalGenerationError",
    "InconsistentGroupProtocolError",
    "InvalidGroupIdError",
    "UnknownMemberIdError",
    "InvalidSessionTimeoutError",
    "RebalanceInProgressError",
    "InvalidCommitOffsetSizeError",
    "TopicAuthorizationFailedError",
    "GroupAuthorizationFailedError",
    "ClusterAuthorizationFailedError",
    "InvalidTimestampError",
    "UnsupportedSaslMechanismError",
    "IllegalSaslStateError",
    "UnsupportedVersionError",
    "TopicAlreadyExistsError",
    "InvalidPartitionsError",
    "InvalidReplicationFactorError",
    "InvalidReplicationAssignmentError",
    "InvalidConfigurationError",
    "NotControllerError",
    "InvalidRequestError",
    "UnsupportedForMessageFormatError",
    "PolicyViolationError",
    "OutOfOrderSequenceNumber",
    "DuplicateSequenceNumber",
    "InvalidProducerEpoch",
    "InvalidTxnState",
    "InvalidProducerIdMapping",
    "InvalidTransactionTimeout",
    "ConcurrentTransactions",
    "TransactionCoordinatorFenced",
    "TransactionalIdAuthorizationFailed",
    "SecurityDisabled",
    "OperationNotAttempted",
    "KafkaStorageError",
    "LogDirNotFound",
    "SaslAuthenticationFailed",
    "UnknownProducerId",
    "ReassignmentInProgress",
    "DelegationTokenAuthDisabled",
    "DelegationTokenNotFound",
    "DelegationTokenOwnerMismatch",
    "DelegationTokenRequestNotAllowed",
    "DelegationTokenAuthorizationFailed",
    "DelegationTokenExpired",
    "InvalidPrincipalType",
    "NonEmptyGroup",
    "GroupIdNotFound",
    "FetchSessionIdNotFound",
    "InvalidFetchSessionEpoch",
    "ListenerNotFound",
    "MemberIdRequired",
    "InvalidMessageError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "NotCoordinatorError",
    "for_code",
)


class KafkaError(RuntimeError):
    """The base class of the errors of Kafka, and of this client.

    ``retriable``: the same call may succeed later. ``invalid_metadata``: the metadata may be out of date.
    """

    retriable: bool = False
    invalid_metadata: bool = False

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}: {super().__str__()}" if self.args else name


class BrokerResponseError(KafkaError):
    """A broker answered with an error code; ``errno`` is the code, ``message`` aiokafka's name of it."""

    errno: int
    message: str
    description: str = ""

    def __init_subclass__(cls, *, errno: int | None = None) -> None:
        super().__init_subclass__()
        if errno is not None:
            cls.errno, cls.message = errno, vars(cls).get("message", ErrorCode(errno).name)
            cls.description = type(broker_error(errno)).__doc__ or "" if errno else "No error."

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


class ConsumerStoppedError(Exception):
    """The consumer was stopped: raised by calls that wait for records, too."""


class IllegalOperation(Exception):
    """The operation is not possible with these settings, such as a commit without a ``group_id``."""


class CommitFailedError(KafkaError):
    """Offsets were not committed, because the group has given the partitions to another member."""

    def __init__(self, *args: Any) -> None:
        reason = (
            "the group has already rebalanced, and has given the partitions to another member: the records of one call "
            "took longer than max_poll_interval_ms, or a member joined meanwhile. Raise max_poll_interval_ms, or lower "
            "max_poll_records"
        )
        super().__init__(*(args or (reason,)))


class ProducerFenced(KafkaError):
    """Another producer with the same ``transactional_id`` has taken over, or a transaction took too long."""

    def __init__(
        self,
        msg: str = (
            "a newer producer has the same transactional_id, or the transaction was open for longer than "
            "transaction_timeout_ms"
        ),
    ) -> None:
        super().__init__(msg)


class IllegalStateError(KafkaError):
    """A method was called at the wrong time, such as a seek in a partition that is not assigned."""


class IllegalArgumentError(KafkaError):
    """An argument is not valid."""


class NoBrokersAvailable(KafkaError):
    """No broker is known."""

    retriable = True
    invalid_metadata = True


class NodeNotReadyError(KafkaError):
    """A broker cannot be reached now."""

    retriable = True


class KafkaProtocolError(KafkaError):
    """A broker's bytes are not what Kafka's protocol allows."""

    retriable = True


class CorrelationIdError(KafkaProtocolError):
    """A response does not belong to its request."""


class Cancelled(KafkaError):
    """The operation was cancelled."""

    retriable = True


class TooManyInFlightRequests(KafkaError):
    """Too many requests are in flight."""

    retriable = True


class StaleMetadata(KafkaError):
    """The metadata is out of date."""

    retriable = True
    invalid_metadata = True


class MetadataEmptyBrokerList(KafkaError):
    """The metadata has no broker."""

    retriable = True


class UnrecognizedBrokerVersion(KafkaError):
    """The broker's release is not known."""


class IncompatibleBrokerVersion(KafkaError):
    """The broker's release lacks what the operation needs."""


class AuthenticationMethodNotSupported(KafkaError):
    """The broker does not support the SASL mechanism."""


class AuthenticationFailedError(KafkaError):
    """The broker refused the credentials."""


class KafkaUnavailableError(KafkaError):
    """No broker is available."""


class KafkaTimeoutError(KafkaError):
    """The operation was not done in time."""


class KafkaConnectionError(KafkaError):
    """A connection to a broker could not be opened, or was lost."""

    retriable = True
    invalid_metadata = True


class UnsupportedCodecError(KafkaError):
    """The compression codec is not supported."""


class KafkaConfigurationError(KafkaError):
    """The settings contradict one another."""


class QuotaViolationError(KafkaError):
    """A quota was exceeded."""


class NoOffsetForPartitionError(KafkaError):
    """A partition has no committed offset, and ``auto_offset_reset`` is "none"."""


class RecordTooLargeError(KafkaError):
    """A record is larger than the consumer may fetch."""


class ProducerClosed(KafkaError):
    """The producer is closed, and takes no more records."""


class NoError(BrokerResponseError, errno=0):
    """The error of the code NONE."""

    message = "NO_ERROR"


class UnknownError(BrokerResponseError, errno=-1):
    """The error of the code UNKNOWN_SERVER_ERROR."""

    message = "UNKNOWN"


class OffsetOutOfRangeError(BrokerResponseError, errno=1):
    """The error of the code OFFSET_OUT_OF_RANGE."""


class CorruptRecordException(BrokerResponseError, errno=2):
    """The error of the code CORRUPT_MESSAGE."""


class UnknownTopicOrPartitionError(BrokerResponseError, errno=3):
    """The error of the code UNKNOWN_TOPIC_OR_PARTITION."""

    retriable = True
    invalid_metadata = True


class InvalidFetchRequestError(BrokerResponseError, errno=4):
    """The error of the code INVALID_FETCH_SIZE."""


class LeaderNotAvailableError(BrokerResponseError, errno=5):
    """The error of the code LEADER_NOT_AVAILABLE."""

    retriable = True
    invalid_metadata = True


class NotLeaderForPartitionError(BrokerResponseError, errno=6):
    """The error of the code NOT_LEADER_OR_FOLLOWER."""

    message = "NOT_LEADER_FOR_PARTITION"
    retriable = True
    invalid_metadata = True


class RequestTimedOutError(BrokerResponseError, errno=7):
    """The error of the code REQUEST_TIMED_OUT."""

    retriable = True


class BrokerNotAvailableError(BrokerResponseError, errno=8):
    """The error of the code BROKER_NOT_AVAILABLE."""


class ReplicaNotAvailableError(BrokerResponseError, errno=9):
    """The error of the code REPLICA_NOT_AVAILABLE."""


class MessageSizeTooLargeError(BrokerResponseError, errno=10):
    """The error of the code MESSAGE_TOO_LARGE."""

    message = "MESSAGE_SIZE_TOO_LARGE"


class StaleControllerEpochError(BrokerResponseError, errno=11):
    """The error of the code STALE_CONTROLLER_EPOCH."""


class OffsetMetadataTooLargeError(BrokerResponseError, errno=12):
    """The error of the code OFFSET_METADATA_TOO_LARGE."""


class StaleLeaderEpochCodeError(BrokerResponseError, errno=13):
    """The error of the code NETWORK_EXCEPTION."""

    message = "STALE_LEADER_EPOCH_CODE"


class GroupLoadInProgressError(BrokerResponseError, errno=14):
    """The error of the code COORDINATOR_LOAD_IN_PROGRESS."""

    retriable = True


class GroupCoordinatorNotAvailableError(BrokerResponseError, errno=15):
    """The error of the code COORDINATOR_NOT_AVAILABLE."""

    retriable = True


class NotCoordinatorForGroupError(BrokerResponseError, errno=16):
    """The error of the code NOT_COORDINATOR."""

    retriable = True


class InvalidTopicError(BrokerResponseError, errno=17):
    """The error of the code INVALID_TOPIC_EXCEPTION."""

    message = "INVALID_TOPIC"


class RecordListTooLargeError(BrokerResponseError, errno=18):
    """The error of the code RECORD_LIST_TOO_LARGE."""


class NotEnoughReplicasError(BrokerResponseError, errno=19):
    """The error of the code NOT_ENOUGH_REPLICAS."""

    retriable = True


class NotEnoughReplicasAfterAppendError(BrokerResponseError, errno=20):
    """The error of the code NOT_ENOUGH_REPLICAS_AFTER_APPEND."""

    retriable = True


class InvalidRequiredAcksError(BrokerResponseError, errno=21):
    """The error of the code INVALID_REQUIRED_ACKS."""


class IllegalGenerationError(BrokerResponseError, errno=22):
    """The error of the code ILLEGAL_GENERATION."""


class InconsistentGroupProtocolError(BrokerResponseError, errno=23):
    """The error of the code INCONSISTENT_GROUP_PROTOCOL."""


class InvalidGroupIdError(BrokerResponseError, errno=24):
    """The error of the code INVALID_GROUP_ID."""


class UnknownMemberIdError(BrokerResponseError, errno=25):
    """The error of the code UNKNOWN_MEMBER_ID."""


class InvalidSessionTimeoutError(BrokerResponseError, errno=26):
    """The error of the code INVALID_SESSION_TIMEOUT."""


class RebalanceInProgressError(BrokerResponseError, errno=27):
    """The error of the code REBALANCE_IN_PROGRESS."""


class InvalidCommitOffsetSizeError(BrokerResponseError, errno=28):
    """The error of the code INVALID_COMMIT_OFFSET_SIZE."""


class TopicAuthorizationFailedError(BrokerResponseError, errno=29):
    """The error of the code TOPIC_AUTHORIZATION_FAILED."""


class GroupAuthorizationFailedError(BrokerResponseError, errno=30):
    """The error of the code GROUP_AUTHORIZATION_FAILED."""


class ClusterAuthorizationFailedError(BrokerResponseError, errno=31):
    """The error of the code CLUSTER_AUTHORIZATION_FAILED."""


class InvalidTimestampError(BrokerResponseError, errno=32):
    """The error of the code INVALID_TIMESTAMP."""


class UnsupportedSaslMechanismError(BrokerResponseError, errno=33):
    """The error of the code UNSUPPORTED_SASL_MECHANISM."""


class IllegalSaslStateError(BrokerResponseError, errno=34):
    """The error of the code ILLEGAL_SASL_STATE."""


class UnsupportedVersionError(BrokerResponseError, errno=35):
    """The error of the code UNSUPPORTED_VERSION."""


class TopicAlreadyExistsError(BrokerResponseError, errno=36):
    """The error of the code TOPIC_ALREADY_EXISTS."""


class InvalidPartitionsError(BrokerResponseError, errno=37):
    """The error of the code INVALID_PARTITIONS."""


class InvalidReplicationFactorError(BrokerResponseError, errno=38):
    """The error of the code INVALID_REPLICATION_FACTOR."""


class InvalidReplicationAssignmentError(BrokerResponseError, errno=39):
    """The error of the code INVALID_REPLICA_ASSIGNMENT."""

    message = "INVALID_REPLICATION_ASSIGNMENT"


class InvalidConfigurationError(BrokerResponseError, errno=40):
    """The error of the code INVALID_CONFIG."""


class NotControllerError(BrokerResponseError, errno=41):
    """The error of the code NOT_CONTROLLER."""

    retriable = True


class InvalidRequestError(BrokerResponseError, errno=42):
    """The error of the code INVALID_REQUEST."""


class UnsupportedForMessageFormatError(BrokerResponseError, errno=43):
    """The error of the code UNSUPPORTED_FOR_MESSAGE_FORMAT."""


class PolicyViolationError(BrokerResponseError, errno=44):
    """The error of the code POLICY_VIOLATION."""


class OutOfOrderSequenceNumber(BrokerResponseError, errno=45):
    """The error of the code OUT_OF_ORDER_SEQUENCE_NUMBER."""


class DuplicateSequenceNumber(BrokerResponseError, errno=46):
    """The error of the code DUPLICATE_SEQUENCE_NUMBER."""


class InvalidProducerEpoch(BrokerResponseError, errno=47):
    """The error of the code INVALID_PRODUCER_EPOCH."""


class InvalidTxnState(BrokerResponseError, errno=48):
    """The error of the code INVALID_TXN_STATE."""


class InvalidProducerIdMapping(BrokerResponseError, errno=49):
    """The error of the code INVALID_PRODUCER_ID_MAPPING."""


class InvalidTransactionTimeout(BrokerResponseError, errno=50):
    """The error of the code INVALID_TRANSACTION_TIMEOUT."""


class ConcurrentTransactions(BrokerResponseError, errno=51):
    """The error of the code CONCURRENT_TRANSACTIONS."""


class TransactionCoordinatorFenced(BrokerResponseError, errno=52):
    """The error of the code TRANSACTION_COORDINATOR_FENCED."""


class TransactionalIdAuthorizationFailed(BrokerResponseError, errno=53):
    """The error of the code TRANSACTIONAL_ID_AUTHORIZATION_FAILED."""


class SecurityDisabled(BrokerResponseError, errno=54):
    """The error of the code SECURITY_DISABLED."""


class OperationNotAttempted(BrokerResponseError, errno=55):
    """The error of the code OPERATION_NOT_ATTEMPTED."""


class KafkaStorageError(BrokerResponseError, errno=56):
    """The error of the code KAFKA_STORAGE_ERROR."""

    retriable = True
    invalid_metadata = True


class LogDirNotFound(BrokerResponseError, errno=57):
    """The error of the code LOG_DIR_NOT_FOUND."""


class SaslAuthenticationFailed(BrokerResponseError, errno=58):
    """The error of the code SASL_AUTHENTICATION_FAILED."""


class UnknownProducerId(BrokerResponseError, errno=59):
    """The error of the code UNKNOWN_PRODUCER_ID."""


class ReassignmentInProgress(BrokerResponseError, errno=60):
    """The error of the code REASSIGNMENT_IN_PROGRESS."""


class DelegationTokenAuthDisabled(BrokerResponseError, errno=61):
    """The error of the code DELEGATION_TOKEN_AUTH_DISABLED."""


class DelegationTokenNotFound(BrokerResponseError, errno=62):
    """The error of the code DELEGATION_TOKEN_NOT_FOUND."""


class DelegationTokenOwnerMismatch(BrokerResponseError, errno=63):
    """The error of the code DELEGATION_TOKEN_OWNER_MISMATCH."""


class DelegationTokenRequestNotAllowed(BrokerResponseError, errno=64):
    """The error of the code DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""


class DelegationTokenAuthorizationFailed(BrokerResponseError, errno=65):
    """The error of the code DELEGATION_TOKEN_AUTHORIZATION_FAILED."""


class DelegationTokenExpired(BrokerResponseError, errno=66):
    """The error of the code DELEGATION_TOKEN_EXPIRED."""


class InvalidPrincipalType(BrokerResponseError, errno=67):
    """The error of the code INVALID_PRINCIPAL_TYPE."""


class NonEmptyGroup(BrokerResponseError, errno=68):
    """The error of the code NON_EMPTY_GROUP."""


class GroupIdNotFound(BrokerResponseError, errno=69):
    """The error of the code GROUP_ID_NOT_FOUND."""


class FetchSessionIdNotFound(BrokerResponseError, errno=70):
    """The error of the code FETCH_SESSION_ID_NOT_FOUND."""


class InvalidFetchSessionEpoch(BrokerResponseError, errno=71):
    """The error of the code INVALID_FETCH_SESSION_EPOCH."""


class ListenerNotFound(BrokerResponseError, errno=72):
    """The error of the code LISTENER_NOT_FOUND."""


class MemberIdRequired(BrokerResponseError, errno=79):
    """The error of the code MEMBER_ID_REQUIRED."""


# Other names of the same classes.
InvalidMessageError = CorruptRecordException
CoordinatorLoadInProgressError = GroupLoadInProgressError
CoordinatorNotAvailableError = GroupCoordinatorNotAvailableError
NotCoordinatorError = NotCoordinatorForGroupError

kafka_errors: Final = {cls.errno: cls for cls in BrokerResponseError.__subclasses__()}
"""The class of each error code."""


def for_code(error_code: int) -> type[BrokerResponseError]:
    """Return the class of a broker's error code; :class:`UnknownError` for a code that aiokafka does not know."""
    return kafka_errors.get(error_code, UnknownError)
