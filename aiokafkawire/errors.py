"""All errors that aiokafkawire raises: the client's own, and one class for each error code of the brokers.

:class:`KafkaError` is the base class of all, and :class:`BrokerError` of those for error codes.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Self

from ._printable import printable
from .error_codes import ErrorCode

__all__ = (
    "AcknowledgementFailed",
    "AdminError",
    "AuthenticationFailed",
    "BrokerError",
    "BrokerIdNotRegistered",
    "BrokerNotAvailable",
    "BrokerNotTrusted",
    "BufferFull",
    "ClaimCheckError",
    "ClaimCheckObjectDamaged",
    "ClaimCheckObjectGone",
    "ClientCertificateRefused",
    "ClusterAuthorizationFailed",
    "CommitFailed",
    "ConcurrentTransactions",
    "ConfigError",
    "ConnectionLost",
    "ConsumerStalled",
    "ControllerIdNotRegistered",
    "CoordinatorLoadInProgress",
    "CoordinatorNotAvailable",
    "CorruptBatch",
    "CorruptMessage",
    "DelegationTokenAuthDisabled",
    "DelegationTokenAuthorizationFailed",
    "DelegationTokenExpired",
    "DelegationTokenNotFound",
    "DelegationTokenOwnerMismatch",
    "DelegationTokenRequestNotAllowed",
    "DeliveryFailed",
    "DeserializationError",
    "DuplicateBrokerRegistration",
    "DuplicateResource",
    "DuplicateSequenceNumber",
    "DuplicateVoter",
    "ElectionNotNeeded",
    "EligibleLeadersNotAvailable",
    "ErrorCode",
    "FeatureUpdateFailed",
    "FencedInstanceId",
    "FencedLeaderEpoch",
    "FencedMemberEpoch",
    "FencedStateEpoch",
    "FetchSessionIdNotFound",
    "FetchSessionTopicIdError",
    "GroupAuthorizationFailed",
    "GroupDeletionFailed",
    "GroupIdNotFound",
    "GroupMaxSizeReached",
    "GroupSubscribedToTopic",
    "IllegalGeneration",
    "IllegalSaslState",
    "InconsistentClusterId",
    "InconsistentGroupProtocol",
    "InconsistentTopicId",
    "InconsistentVoterSet",
    "IneligibleReplica",
    "InvalidCommitOffsetSize",
    "InvalidConfig",
    "InvalidFetchSessionEpoch",
    "InvalidFetchSize",
    "InvalidGroupId",
    "InvalidMessage",
    "InvalidPartitions",
    "InvalidPrincipalType",
    "InvalidProducerEpoch",
    "InvalidProducerIdMapping",
    "InvalidRecord",
    "InvalidRecordState",
    "InvalidRegistration",
    "InvalidRegularExpression",
    "InvalidReplicaAssignment",
    "InvalidReplicationFactor",
    "InvalidRequest",
    "InvalidRequiredAcks",
    "InvalidSessionTimeout",
    "InvalidShareSessionEpoch",
    "InvalidTimestamp",
    "InvalidTopicException",
    "InvalidTransactionTimeout",
    "InvalidTxnState",
    "InvalidUpdateVersion",
    "InvalidVoterKey",
    "KafkaError",
    "KafkaStorageError",
    "LeaderNotAvailable",
    "ListenerNotFound",
    "LogDirNotFound",
    "LogTruncated",
    "MemberIdRequired",
    "MessageTooLarge",
    "MismatchedEndpointType",
    "NetworkException",
    "NewLeaderElected",
    "NoBrokerReachable",
    "NoReassignmentInProgress",
    "NonEmptyGroup",
    "NotController",
    "NotCoordinator",
    "NotEnoughReplicas",
    "NotEnoughReplicasAfterAppend",
    "NotLeaderOrFollower",
    "OffsetMetadataTooLarge",
    "OffsetMovedToTieredStorage",
    "OffsetNotAvailable",
    "OffsetOutOfRange",
    "OperationNotAttempted",
    "OutOfOrderSequenceNumber",
    "PolicyViolation",
    "PositionOutOfRange",
    "PreferredLeaderNotAvailable",
    "PrincipalDeserializationFailure",
    "ProducerFenced",
    "ProxyFailed",
    "ProxyRefused",
    "ReassignmentInProgress",
    "RebalanceInProgress",
    "RebootstrapRequired",
    "RecordListTooLarge",
    "RecordTooLarge",
    "RecordsPurged",
    "Refresh",
    "ReplicaNotAvailable",
    "RequestTimedOut",
    "RequestTimeout",
    "ResourceNotFound",
    "SaslAuthenticationFailed",
    "SchemaMismatch",
    "SchemaRegistryError",
    "SecurityDisabled",
    "SecurityMismatch",
    "ShareSessionLimitReached",
    "ShareSessionNotFound",
    "SnapshotNotFound",
    "StaleBrokerEpoch",
    "StaleControllerEpoch",
    "StaleMemberEpoch",
    "StreamsInvalidTopology",
    "StreamsInvalidTopologyEpoch",
    "StreamsTopologyDescriptionUpdateFailed",
    "StreamsTopologyFenced",
    "TelemetryTooLarge",
    "ThrottlingQuotaExceeded",
    "TlsFailed",
    "TopicAlreadyExists",
    "TopicAuthorizationFailed",
    "TopicDeletionDisabled",
    "TopicNotReady",
    "TransactionAbortable",
    "TransactionAborted",
    "TransactionCoordinatorFenced",
    "TransactionalIdAuthorizationFailed",
    "TransactionalIdNotFound",
    "UnacceptableCredential",
    "UnknownBrokerError",
    "UnknownControllerId",
    "UnknownLeaderEpoch",
    "UnknownMemberId",
    "UnknownProducerId",
    "UnknownServerError",
    "UnknownSubscriptionId",
    "UnknownTopicId",
    "UnknownTopicOrPartition",
    "UnreleasedInstanceId",
    "UnstableOffsetCommit",
    "UnsupportedAssignor",
    "UnsupportedCompressionType",
    "UnsupportedEndpointType",
    "UnsupportedForMessageFormat",
    "UnsupportedSaslMechanism",
    "UnsupportedVersion",
    "UnsupportedVersionAnswered",
    "UsageError",
    "VoterNotFound",
    "WireError",
    "as_kafka_error",
    "broker_error",
    "copy_for_reraise",
)

# --- raised by the client ----------------------------------------------------------------------------------


class KafkaError(Exception):
    """The base class of all errors of this package."""


class AdminError(KafkaError, ExceptionGroup[KafkaError]):
    """An admin's call failed for some of several resources; the others have their results.

    A call for a single resource raises that resource's own error instead. ``except*`` works with both::

        try:
            await kafka.admin.delete_topics(["orders", "payments"])
        except* UnknownTopicOrPartition as unknown: ...

    Attributes:
        errors: the error of each resource that failed, by what was asked for.
        results: the result of each other resource, as the call would have returned them.
    """

    errors: Mapping[Any, KafkaError]
    results: Mapping[Any, Any]

    def __new__(cls, message: str, errors: Mapping[Any, KafkaError], results: Mapping[Any, Any]) -> Self:
        made = super().__new__(cls, message, list(errors.values()))
        made.errors, made.results = dict(errors), dict(results)
        return made

    def derive(self, excs: Sequence[KafkaError], /) -> "AdminError":  # type: ignore[override]
        """Return an error with some of the errors, and all results; ``except*`` calls this."""
        kept = set(map(id, excs))
        errors = {resource: error for resource, error in self.errors.items() if id(error) in kept}
        return AdminError(self.message, errors, self.results)

    def __str__(self) -> str:
        return f"{self.message}: {'; '.join(map(str, self.errors.values()))}"

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.errors, self.results)


class ConfigError(KafkaError, ValueError):
    """A setting has an unknown name or an invalid value; the message has the setting's name and its valid values. So
    has another argument of ``Client()``, ``producer()`` or ``consumer()``.

    Attributes:
        setting: the name of the setting that has an invalid value, which docs/settings.md explains (settings.md#NAME);
            one of them where settings contradict one another; None for an unknown name, or another argument.
    """

    def __init__(self, *message: object, setting: str | None = None) -> None:
        super().__init__(*message)
        self.setting = setting


class UsageError(KafkaError):
    """A call is not valid: the client is closed, or an argument is wrong, such as the name of a topic."""


class InvalidMessage(UsageError):
    """A field of a protocol message has a value that its type cannot encode; the error names the field's path."""


class RecordTooLarge(UsageError):
    """A single record exceeds ``max_request_size`` or ``buffer_memory`` and was not sent; or a consumer received a
    message that exceeds ``receive_message_max_bytes``.
    """


class BufferFull(KafkaError):
    """``buffer_memory`` is full, and the call does not wait or has waited for ``max_block_ms``."""


class RecordsPurged(KafkaError):
    """The record was dropped by :meth:`Producer.purge` before it was sent."""


class TopicNotReady(KafkaError):
    """The topic's partitions are not known: the topic does not exist, or its metadata was not received yet."""


class WireError(KafkaError):
    """The server sent bytes that violate Kafka's protocol; the message says where."""


class SecurityMismatch(WireError):
    """Only one side uses TLS, or the listener requires SASL and the client does not use it; the message says which.
    Check ``security_protocol`` and the port."""


class CorruptBatch(WireError):
    """A record batch is damaged: its checksum, length, count, or compressed data is wrong."""


class UnsupportedVersion(KafkaError):
    """The broker does not support a request, or its versions of the request lack a field that the call needs."""


class ConnectionLost(KafkaError):
    """A connection could not be opened, or was lost; all requests that were pending on it fail with this error."""


class AuthenticationFailed(KafkaError):
    """Authentication failed, and would fail again; the message says whether broker or client refused, and why.

    The brokers' authentication errors are subclasses: SaslAuthenticationFailed, UnsupportedSaslMechanism,
    IllegalSaslState.
    """


class TlsFailed(AuthenticationFailed):
    """The TLS handshake failed; common reasons have subclasses."""


class BrokerNotTrusted(TlsFailed):
    """The broker's certificate is not valid: signed by an unknown authority, for other hosts, or expired."""


class ClientCertificateRefused(TlsFailed):
    """The broker requires a client certificate and got none, or rejected the certificate."""


class ProxyRefused(AuthenticationFailed):
    """The proxy requires a login, rejects the given login, or forbids the connection to the broker by its rules."""


class ProxyFailed(ConnectionLost):
    """The proxy cannot be reached, cannot reach the broker, or failed."""


class NoBrokerReachable(ConnectionLost):
    """No broker could be reached at any known address; the message lists each address with the cause."""


class RequestTimeout(KafkaError, TimeoutError):
    """A deadline passed; the message has the request or state that was waited for, the broker, and the last error."""


class DeserializationError(KafkaError):
    """A user's deserializer failed on one record; the consumer's position is past that record.

    The error has the raw record, so that the caller can log the record or send it to a dead-letter topic, and continue.

    Attributes:
        failed: the part that could not be deserialized: "key" or "value". ``__cause__`` is the deserializer's
            exception.
        partition: the record's TopicPartition.
        offset: the record's offset.
        raw_key: the key's bytes, or None for a null key.
        raw_value: the value's bytes, or None for a null value.
        headers: the record's headers, as names and values, in the producer's order.
        timestamp: the record's timestamp in ms since the epoch; -1 if it has none.
    """

    def __init__(
        self,
        message: str,
        failed: str = "value",
        partition: tuple[str, int] | None = None,
        offset: int = -1,
        raw_key: bytes | None = None,
        raw_value: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        timestamp: int = -1,
    ) -> None:
        super().__init__(message, failed, partition, offset, raw_key, raw_value, headers, timestamp)
        self.failed: str = failed
        self.partition: tuple[str, int] | None = partition
        self.offset: int = offset
        self.raw_key: bytes | None = raw_key
        self.raw_value: bytes | None = raw_value
        self.headers: tuple[tuple[str, bytes | None], ...] = headers
        self.timestamp: int = timestamp
        self._record: Any = None
        """The record itself, with raw key and value, as far as it is known."""

    @property
    def retriable(self) -> bool:
        """Whether the same record may be read later, since what the deserializer needs has failed and not the record.

        That is so if ``__cause__`` is a ConnectionError or TimeoutError, or has an attribute ``retriable`` that is
        true, as the errors of a schema registry or an object store that is away.
        """
        cause = self.__cause__
        return isinstance(cause, ConnectionError | TimeoutError) or getattr(cause, "retriable", False) is True

    def __str__(self) -> str:
        return str(self.args[0])


class SchemaRegistryError(KafkaError):
    """The schema registry refused a request, failed, or could not be reached; the message says which, and why.

    Attributes:
        status: the HTTP status of the response; None if no response arrived.
        error_code: the registry's own error code, such as 40403 for an unknown schema; None if the response has none.
        retriable: whether the same request may succeed later: no registry has answered, or one has failed or did not
            know the user.
    """

    def __init__(
        self, message: str, status: int | None = None, error_code: int | None = None, retriable: bool = False
    ) -> None:
        super().__init__(message, status, error_code, retriable)
        self.status: int | None = status
        self.error_code: int | None = error_code
        self.retriable: bool = retriable

    def __str__(self) -> str:
        return str(self.args[0])


class SchemaMismatch(KafkaError, ValueError):
    """A key or value does not fit its schema, or its bytes are not in the format of the schema registry."""


class ClaimCheckError(KafkaError):
    """A large value could not be stored as an object, or loaded; the message names the object and the reason.

    Attributes:
        key: the object's key in the store; None if the record has no valid reference.
        expires_ms: when the object expires, in ms since the epoch; None if it never does, or if that is not known.
        retriable: whether the same may succeed later: the store has failed, and not the object.
    """

    def __init__(
        self, message: str, key: str | None = None, expires_ms: int | None = None, retriable: bool = False
    ) -> None:
        super().__init__(message, key, expires_ms, retriable)
        self.key: str | None = key
        self.expires_ms: int | None = expires_ms
        self.retriable: bool = retriable

    def __str__(self) -> str:
        return str(self.args[0])


class ClaimCheckObjectGone(ClaimCheckError):
    """The object of a large value is not in the store: it has expired and was deleted, or another program deleted it;
    the message says which."""


class ClaimCheckObjectDamaged(ClaimCheckError):
    """The object of a large value is not what the producer wrote: its size or its SHA-256 is another one."""


class LogTruncated(KafkaError):
    """The log was truncated below the consumer's position: the new leader lacks records that were already read, and
    other records may have the same offsets (KIP-320). With ``auto_offset_reset="none"`` the consumer needs a seek: to
    ``diverging_offset`` to read all new records, or to ``position`` to ignore the truncation.

    Attributes:
        partition: the TopicPartition.
        position: the consumer's position, the next offset to read.
        diverging_offset: the offset after the last read record that is still in the log; None if the leader does not
            know it.
    """

    def __init__(
        self,
        message: str,
        partition: tuple[str, int] | None = None,
        position: int = -1,
        diverging_offset: int | None = None,
    ) -> None:
        super().__init__(message, partition, position, diverging_offset)
        self.partition = partition
        self.position = position
        self.diverging_offset = diverging_offset

    def __str__(self) -> str:
        return str(self.args[0])


class DeliveryFailed(KafkaError):
    """``count`` records were not delivered: those of a ``send_many``, or those whose delivery no call has awaited;
    ``errors`` has each batch's cause."""

    def __init__(self, errors: Sequence[Exception], count: int) -> None:
        super().__init__(errors, count)
        self.errors: tuple[Exception, ...] = tuple(errors)
        self.count = count

    def __str__(self) -> str:
        first = self.errors[0]
        records = "1 record" if self.count == 1 else f"{self.count} records"
        return f"{records} not delivered, the first because of {type(first).__name__}: {first}"


class CommitFailed(KafkaError):
    """Offsets were not committed because this consumer no longer owns the partitions; the message says why.

    The group will read the records since the last commit again, so discard your results of these records.
    """


class AcknowledgementFailed(KafkaError):
    """Brokers refused acknowledgements of a share consumer: other members may get these records again.

    Attributes:
        errors: the error of each partition, by TopicPartition; often InvalidRecordState, since the lock had ended.
        acknowledged: for each partition, how many records were acknowledged nevertheless.
    """

    def __init__(self, errors: Mapping[Any, KafkaError], acknowledged: Mapping[Any, int]) -> None:
        super().__init__(errors, acknowledged)
        self.errors: Mapping[tuple[str, int], KafkaError] = dict(errors)
        self.acknowledged: Mapping[tuple[str, int], int] = dict(acknowledged)

    def __str__(self) -> str:
        named = "; ".join(f"{topic}-{index}: {error}" for (topic, index), error in self.errors.items())
        return f"records were not acknowledged, and may be delivered again: {named}"


class ConsumerStalled(KafkaError):
    """A consumer received no records for ``stall_timeout_ms``, though the log may have more; the message says why."""


class TransactionAborted(KafkaError):
    """The record's transaction was aborted: readers of committed records will never see the record."""


# --- answered by a broker ----------------------------------------------------------------------------------


class Refresh(Enum):
    """The information that a client should refresh before it retries."""

    NOTHING = "nothing"
    METADATA = "metadata"
    COORDINATOR = "coordinator"


class BrokerError(KafkaError):
    """A broker answered with an error code. Each code has a subclass.

    ``retriable``: the same request may succeed later. ``refresh``: the information to refresh before a retry.
    ``fatal``: an idempotent or transactional producer cannot continue. ``abortable``: the transaction must be aborted
    (KIP-1050). ``broker_message``: the broker's own text about the error, if it sent one.
    """

    code: int
    broker_message: str | None = None
    retriable: ClassVar[bool] = False
    refresh: ClassVar[Refresh] = Refresh.NOTHING
    fatal: ClassVar[bool] = False
    abortable: ClassVar[bool] = False

    def __init_subclass__(
        cls,
        *,
        code: ErrorCode | None = None,
        retriable: bool = False,
        refresh: Refresh = Refresh.NOTHING,
        fatal: bool = False,
        abortable: bool = False,
    ) -> None:
        super().__init_subclass__()
        if code is None:
            return
        if code in _BY_CODE:
            raise TypeError(f"{code!r} has a class already: {_BY_CODE[code].__name__}")
        cls.code, cls.retriable, cls.refresh, cls.fatal, cls.abortable = code, retriable, refresh, fatal, abortable
        _BY_CODE[code] = cls


_BY_CODE: dict[int, type[BrokerError]] = {}


class UnknownBrokerError(BrokerError):
    """The broker answered with an error code that this release does not know; ``code`` is the number."""

    def __init__(self, code: int, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code

    def __str__(self) -> str:
        return f"error code {self.args[0]}, unknown to this release" + (f": {self.args[1]}" if self.args[1] else "")


class UnknownServerError(BrokerError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The broker failed in a way it has no code for; see the broker's log."""


class OffsetOutOfRange(BrokerError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    """The log no longer holds this offset, or does not hold it yet; seek to one between its start and its end."""


class CorruptMessage(BrokerError, code=ErrorCode.CORRUPT_MESSAGE, retriable=True):
    """The broker found the records damaged, or without the key that a compacted topic needs."""


class UnknownTopicOrPartition(
    BrokerError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, retriable=True, refresh=Refresh.METADATA
):
    """The broker knows no such topic or partition: it was deleted, or is so new that not all brokers know it."""


class InvalidFetchSize(BrokerError, code=ErrorCode.INVALID_FETCH_SIZE):
    """The fetch asked for an impossible number of bytes."""


class LeaderNotAvailable(BrokerError, code=ErrorCode.LEADER_NOT_AVAILABLE, retriable=True, refresh=Refresh.METADATA):
    """The partition has no leader yet; one is being elected."""


class NotLeaderOrFollower(BrokerError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER, retriable=True, refresh=Refresh.METADATA):
    """This broker does not lead the partition, or no longer follows it."""


class RequestTimedOut(BrokerError, code=ErrorCode.REQUEST_TIMED_OUT, retriable=True):
    """The broker ran out of time on this request; a write may still have happened."""


class BrokerNotAvailable(BrokerError, code=ErrorCode.BROKER_NOT_AVAILABLE):
    """The broker that is needed is down, or has left the cluster."""


class ReplicaNotAvailable(BrokerError, code=ErrorCode.REPLICA_NOT_AVAILABLE, retriable=True, refresh=Refresh.METADATA):
    """The broker has no usable replica of the partition at the moment."""


class MessageTooLarge(BrokerError, code=ErrorCode.MESSAGE_TOO_LARGE, abortable=True):
    """The batch is larger than the topic takes; raise its max.message.bytes or send less at once."""


class StaleControllerEpoch(BrokerError, code=ErrorCode.STALE_CONTROLLER_EPOCH):
    """The request came from a controller that another has replaced since."""


class OffsetMetadataTooLarge(BrokerError, code=ErrorCode.OFFSET_METADATA_TOO_LARGE):
    """The text committed with an offset is too long; the broker's offset.metadata.max.bytes is the limit."""


class NetworkException(BrokerError, code=ErrorCode.NETWORK_EXCEPTION, retriable=True, refresh=Refresh.METADATA):
    """A connection broke before the answer came; whether the request took effect is not known."""


class CoordinatorLoadInProgress(BrokerError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, retriable=True):
    """The coordinator is still reading its state after taking over; try it again shortly."""


class CoordinatorNotAvailable(
    BrokerError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE, retriable=True, refresh=Refresh.COORDINATOR
):
    """The group or transactional id has no working coordinator now; look it up again."""


class NotCoordinator(BrokerError, code=ErrorCode.NOT_COORDINATOR, retriable=True, refresh=Refresh.COORDINATOR):
    """This broker does not coordinate the group or transactional id; look up the one that does."""


class InvalidTopicException(BrokerError, code=ErrorCode.INVALID_TOPIC_EXCEPTION, abortable=True):
    """The topic's name is not allowed, or only Kafka itself may write to this topic."""


class RecordListTooLarge(BrokerError, code=ErrorCode.RECORD_LIST_TOO_LARGE, abortable=True):
    """The batch does not fit into one segment of the log; send smaller batches."""


class NotEnoughReplicas(BrokerError, code=ErrorCode.NOT_ENOUGH_REPLICAS, retriable=True):
    """Nothing was written: fewer replicas are in sync than min.insync.replicas asks for."""


class NotEnoughReplicasAfterAppend(BrokerError, code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, retriable=True):
    """The records were written, but to fewer replicas than required; without idempotence a retry duplicates them."""


class InvalidRequiredAcks(BrokerError, code=ErrorCode.INVALID_REQUIRED_ACKS, abortable=True):
    """The broker takes only 0, 1 or all (-1) for acks."""


class IllegalGeneration(BrokerError, code=ErrorCode.ILLEGAL_GENERATION, abortable=True):
    """The group has rebalanced since; this member's generation is over and it must join again."""


class InconsistentGroupProtocol(BrokerError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    """The member shares no assignor or protocol type with the rest of its group."""


class InvalidGroupId(BrokerError, code=ErrorCode.INVALID_GROUP_ID):
    """The group id is empty, or not one this request can serve."""


class UnknownMemberId(BrokerError, code=ErrorCode.UNKNOWN_MEMBER_ID, abortable=True):
    """The coordinator has no such member, most often after a missed session timeout; join again."""


class InvalidSessionTimeout(BrokerError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    """The session timeout is below the broker's group.min.session.timeout.ms or above group.max.session.timeout.ms."""


class RebalanceInProgress(BrokerError, code=ErrorCode.REBALANCE_IN_PROGRESS):
    """The group is rebalancing; the member has to rejoin before it can go on."""


class InvalidCommitOffsetSize(BrokerError, code=ErrorCode.INVALID_COMMIT_OFFSET_SIZE):
    """The commit is too large to store; commit fewer offsets, or less text with them."""


class TopicAuthorizationFailed(BrokerError, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, abortable=True):
    """No ACL allows this user to do that with the topic."""


class GroupAuthorizationFailed(BrokerError, code=ErrorCode.GROUP_AUTHORIZATION_FAILED, abortable=True):
    """No ACL allows this user the operation on the group."""


class ClusterAuthorizationFailed(BrokerError, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, fatal=True):
    """No ACL allows this user to do that with the cluster; before Kafka 2.8 idempotent writes need one."""


class InvalidTimestamp(BrokerError, code=ErrorCode.INVALID_TIMESTAMP, abortable=True):
    """A record's timestamp is too far from the broker's clock; the topic's message.timestamp settings say how far."""


class UnsupportedSaslMechanism(
    BrokerError, AuthenticationFailed, code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, fatal=True
):
    """The listener does not offer this SASL mechanism; choose one that the broker enables."""


class IllegalSaslState(BrokerError, AuthenticationFailed, code=ErrorCode.ILLEGAL_SASL_STATE, fatal=True):
    """The request came at the wrong point of the SASL login, or the listener does not use SASL."""


class UnsupportedVersionAnswered(BrokerError, code=ErrorCode.UNSUPPORTED_VERSION, fatal=True):
    """The broker does not speak this version of the request."""


class TopicAlreadyExists(BrokerError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    """There is a topic of this name already."""


class InvalidPartitions(BrokerError, code=ErrorCode.INVALID_PARTITIONS):
    """The number of partitions is not possible: below one, or not above what the topic has."""


class InvalidReplicationFactor(BrokerError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    """There are not enough brokers for this many replicas, or none were asked for."""


class InvalidReplicaAssignment(BrokerError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    """The proposed replicas do not work: unknown brokers, repeats, or lists of different lengths."""


class InvalidConfig(BrokerError, code=ErrorCode.INVALID_CONFIG):
    """A setting of a topic or broker has a name or value that the broker rejects."""


class NotController(BrokerError, code=ErrorCode.NOT_CONTROLLER, retriable=True, refresh=Refresh.METADATA):
    """This broker is not the active controller; look up the controller and send the request to it."""


class InvalidRequest(BrokerError, code=ErrorCode.INVALID_REQUEST):
    """The broker cannot make sense of the request: it contradicts itself, or a bug made it; see the broker's log."""


class UnsupportedForMessageFormat(BrokerError, code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, fatal=True):
    """The topic's record format is too old for the request, such as a transaction."""


class PolicyViolation(BrokerError, code=ErrorCode.POLICY_VIOLATION):
    """A policy of the cluster's operators forbids this."""


class OutOfOrderSequenceNumber(BrokerError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, abortable=True):
    """A batch is missing before this one: earlier records of the producer may be lost."""


class DuplicateSequenceNumber(BrokerError, code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
    """The broker has stored this batch already; nothing is lost."""


class InvalidProducerEpoch(BrokerError, code=ErrorCode.INVALID_PRODUCER_EPOCH, fatal=True):
    """The producer's epoch is over: a newer producer, or a transaction's timeout, ended it; start a new producer."""


class InvalidTxnState(BrokerError, code=ErrorCode.INVALID_TXN_STATE, fatal=True):
    """The transaction is not in a state that permits this step; start a new producer."""


class InvalidProducerIdMapping(BrokerError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING, fatal=True):
    """The transactional id has another producer id by now, or has expired; start a new producer."""


class InvalidTransactionTimeout(BrokerError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT, fatal=True):
    """The transaction timeout exceeds the broker's transaction.max.timeout.ms; ask for less."""


class ConcurrentTransactions(BrokerError, code=ErrorCode.CONCURRENT_TRANSACTIONS, retriable=True):
    """The coordinator is still completing the previous transaction of this id; retry shortly."""


class TransactionCoordinatorFenced(BrokerError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED, fatal=True):
    """A transaction's marker came from a coordinator that another has replaced."""


class TransactionalIdAuthorizationFailed(BrokerError, code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, fatal=True):
    """No ACL allows this user to use the transactional id."""


class SecurityDisabled(BrokerError, code=ErrorCode.SECURITY_DISABLED):
    """The brokers run without an authorizer, so there are no ACLs to list or change."""


class OperationNotAttempted(BrokerError, code=ErrorCode.OPERATION_NOT_ATTEMPTED, abortable=True):
    """Another part of the same request failed, so the broker left this part out."""


class KafkaStorageError(BrokerError, code=ErrorCode.KAFKA_STORAGE_ERROR, retriable=True, refresh=Refresh.METADATA):
    """The broker could not read or write its disk; another replica should take over."""


class LogDirNotFound(BrokerError, code=ErrorCode.LOG_DIR_NOT_FOUND):
    """The broker has no log directory of that path, or it is offline."""


class SaslAuthenticationFailed(
    BrokerError, AuthenticationFailed, code=ErrorCode.SASL_AUTHENTICATION_FAILED, fatal=True
):
    """The broker did not accept the credentials."""


class UnknownProducerId(BrokerError, code=ErrorCode.UNKNOWN_PRODUCER_ID, abortable=True):
    """The broker has forgotten this producer, often because all its records were deleted."""


class ReassignmentInProgress(BrokerError, code=ErrorCode.REASSIGNMENT_IN_PROGRESS):
    """The partition's replicas are being reassigned; wait until that has ended, or cancel it."""


class DelegationTokenAuthDisabled(BrokerError, code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
    """The brokers have delegation tokens switched off; a secret key in their settings switches them on."""


class DelegationTokenNotFound(BrokerError, code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
    """The brokers hold no such delegation token; it may have expired and been removed."""


class DelegationTokenOwnerMismatch(BrokerError, code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
    """Only the owner of a delegation token, or a renewer it names, may do this."""


class DelegationTokenRequestNotAllowed(BrokerError, code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
    """Manage delegation tokens over SASL or mutual TLS, and not while logged in by a token."""


class DelegationTokenAuthorizationFailed(BrokerError, code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
    """No ACL allows this user to see or manage the delegation token."""


class DelegationTokenExpired(BrokerError, code=ErrorCode.DELEGATION_TOKEN_EXPIRED):
    """The delegation token is past its lifetime; get a new one."""


class InvalidPrincipalType(BrokerError, code=ErrorCode.INVALID_PRINCIPAL_TYPE):
    """Delegation tokens take principals of type User only."""


class NonEmptyGroup(BrokerError, code=ErrorCode.NON_EMPTY_GROUP):
    """The group still has members; stop them first."""


class GroupIdNotFound(BrokerError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    """There is no group of this id; it may have expired."""


class FetchSessionIdNotFound(BrokerError, code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, retriable=True):
    """The broker has dropped this fetch session; the next fetch begins a new one."""


class InvalidFetchSessionEpoch(BrokerError, code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, retriable=True):
    """Client and broker disagree on the epoch of the fetch session; the next fetch begins a new session."""


class ListenerNotFound(BrokerError, code=ErrorCode.LISTENER_NOT_FOUND, retriable=True, refresh=Refresh.METADATA):
    """The partition's leader has no listener of the name that this client connected to."""


class TopicDeletionDisabled(BrokerError, code=ErrorCode.TOPIC_DELETION_DISABLED):
    """The brokers do not delete topics: delete.topic.enable is false."""


class FencedLeaderEpoch(BrokerError, code=ErrorCode.FENCED_LEADER_EPOCH, retriable=True, refresh=Refresh.METADATA):
    """The partition has got a newer leader than this client knows of; refresh the metadata."""


class UnknownLeaderEpoch(BrokerError, code=ErrorCode.UNKNOWN_LEADER_EPOCH, retriable=True):
    """The client knows of a newer leader than this broker, which has yet to catch up."""


class UnsupportedCompressionType(BrokerError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, abortable=True):
    """The broker, or this version of the request, cannot handle that compression; zstd needs Kafka 2.1."""


class StaleBrokerEpoch(BrokerError, code=ErrorCode.STALE_BROKER_EPOCH):
    """The broker has registered again since; the request has its old epoch."""


class OffsetNotAvailable(BrokerError, code=ErrorCode.OFFSET_NOT_AVAILABLE, retriable=True):
    """The new leader does not know the partition's end yet; ask again shortly."""


class MemberIdRequired(BrokerError, code=ErrorCode.MEMBER_ID_REQUIRED):
    """The coordinator has given the new member an id; join again with it."""


class PreferredLeaderNotAvailable(
    BrokerError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, retriable=True, refresh=Refresh.METADATA
):
    """The replica that should lead is offline or behind, so it cannot be elected."""


class GroupMaxSizeReached(BrokerError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    """The group is full; the brokers' settings say how many members it may have."""


class FencedInstanceId(BrokerError, code=ErrorCode.FENCED_INSTANCE_ID, abortable=True):
    """Another consumer took over this group.instance.id; no two may share one."""


class EligibleLeadersNotAvailable(
    BrokerError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, retriable=True, refresh=Refresh.METADATA
):
    """No replica that may lead the partition is online."""


class ElectionNotNeeded(BrokerError, code=ErrorCode.ELECTION_NOT_NEEDED, retriable=True, refresh=Refresh.METADATA):
    """The partition has the right leader already."""


class NoReassignmentInProgress(BrokerError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    """There is no reassignment of replicas to cancel."""


class GroupSubscribedToTopic(BrokerError, code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
    """The group still reads this topic, so its offsets there cannot be deleted."""


class InvalidRecord(BrokerError, code=ErrorCode.INVALID_RECORD, abortable=True):
    """The broker rejected a record, for instance one without a key in a compacted topic; see the broker's message."""


class UnstableOffsetCommit(BrokerError, code=ErrorCode.UNSTABLE_OFFSET_COMMIT, retriable=True):
    """A transaction that commits these offsets is still open; ask again when it has ended."""


class ThrottlingQuotaExceeded(BrokerError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED, retriable=True):
    """A quota is used up; wait for the throttle time that the broker gave, then retry."""


class ProducerFenced(BrokerError, code=ErrorCode.PRODUCER_FENCED, fatal=True):
    """Another producer has started with this transactional id; close this one."""


class ResourceNotFound(BrokerError, code=ErrorCode.RESOURCE_NOT_FOUND):
    """A resource that the request names, such as a SCRAM user, does not exist."""


class DuplicateResource(BrokerError, code=ErrorCode.DUPLICATE_RESOURCE):
    """The request names a resource, such as a SCRAM user, more than once."""


class UnacceptableCredential(BrokerError, code=ErrorCode.UNACCEPTABLE_CREDENTIAL):
    """The brokers reject the SCRAM credential; check its user name and its number of iterations."""


class InconsistentVoterSet(BrokerError, code=ErrorCode.INCONSISTENT_VOTER_SET):
    """The controllers disagree on who votes in their quorum."""


class InvalidUpdateVersion(BrokerError, code=ErrorCode.INVALID_UPDATE_VERSION):
    """The version to update to is not possible, or another client has updated meanwhile."""


class FeatureUpdateFailed(BrokerError, code=ErrorCode.FEATURE_UPDATE_FAILED):
    """The brokers could not complete the change of a feature's level."""


class PrincipalDeserializationFailure(BrokerError, code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE):
    """The controller could not read who sent a forwarded request; the brokers' security settings differ."""


class SnapshotNotFound(BrokerError, code=ErrorCode.SNAPSHOT_NOT_FOUND):
    """The controller no longer has this snapshot of the metadata log."""


class PositionOutOfRange(BrokerError, code=ErrorCode.POSITION_OUT_OF_RANGE):
    """The position lies outside the snapshot."""


class UnknownTopicId(BrokerError, code=ErrorCode.UNKNOWN_TOPIC_ID, retriable=True, refresh=Refresh.METADATA):
    """The broker has no topic of this id: it was deleted or created anew, or is not known there yet."""


class DuplicateBrokerRegistration(BrokerError, code=ErrorCode.DUPLICATE_BROKER_REGISTRATION):
    """Another live broker uses this broker id."""


class BrokerIdNotRegistered(BrokerError, code=ErrorCode.BROKER_ID_NOT_REGISTERED):
    """No broker has registered with this id."""


class InconsistentTopicId(BrokerError, code=ErrorCode.INCONSISTENT_TOPIC_ID, retriable=True, refresh=Refresh.METADATA):
    """The topic's id in the request is not the one in the broker's log; the topic may have been created anew."""


class InconsistentClusterId(BrokerError, code=ErrorCode.INCONSISTENT_CLUSTER_ID):
    """The broker belongs to another cluster than the request expects; check the addresses."""


class TransactionalIdNotFound(BrokerError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    """The coordinator knows no such transactional id; it was never used, or has expired."""


class FetchSessionTopicIdError(BrokerError, code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, retriable=True):
    """The fetch session mixes topic ids and topic names; the next fetch begins a new one."""


class IneligibleReplica(BrokerError, code=ErrorCode.INELIGIBLE_REPLICA):
    """A replica proposed as in sync may not be: its broker is fenced or shutting down."""


class NewLeaderElected(BrokerError, code=ErrorCode.NEW_LEADER_ELECTED):
    """The change to the partition was made, and another leader was elected by it."""


class OffsetMovedToTieredStorage(BrokerError, code=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE):
    """This offset is in tiered storage only; a follower has to rebuild its state from there."""


class FencedMemberEpoch(BrokerError, code=ErrorCode.FENCED_MEMBER_EPOCH):
    """The coordinator has fenced this member by its epoch; the member lost its partitions and must rejoin."""


class UnreleasedInstanceId(BrokerError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    """A member with this group.instance.id is still in the group; another cannot join before it leaves."""


class UnsupportedAssignor(BrokerError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    """The group cannot use this assignor; choose one that the brokers offer."""


class StaleMemberEpoch(BrokerError, code=ErrorCode.STALE_MEMBER_EPOCH):
    """The member's epoch is behind; retry after the next heartbeat has brought the current one."""


class MismatchedEndpointType(BrokerError, code=ErrorCode.MISMATCHED_ENDPOINT_TYPE):
    """A request meant for controllers reached a broker, or the other way round; check the addresses."""


class UnsupportedEndpointType(BrokerError, code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE):
    """The server cannot describe that kind of node."""


class UnknownControllerId(BrokerError, code=ErrorCode.UNKNOWN_CONTROLLER_ID):
    """The request names a controller that this cluster does not have."""


class UnknownSubscriptionId(BrokerError, code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
    """The subscription to this client's metrics has changed; fetch it again before the next push."""


class TelemetryTooLarge(BrokerError, code=ErrorCode.TELEMETRY_TOO_LARGE):
    """The pushed metrics are more than the broker takes at once; send fewer."""


class InvalidRegistration(BrokerError, code=ErrorCode.INVALID_REGISTRATION):
    """The controller rejects what the broker registered with."""


class TransactionAbortable(BrokerError, code=ErrorCode.TRANSACTION_ABORTABLE, abortable=True):
    """The transaction failed but the producer did not: abort it and begin again."""


class InvalidRecordState(BrokerError, code=ErrorCode.INVALID_RECORD_STATE):
    """A share consumer acknowledged a record that it no longer holds; the record may be delivered again."""


class ShareSessionNotFound(BrokerError, code=ErrorCode.SHARE_SESSION_NOT_FOUND, retriable=True):
    """The broker has dropped this share session; the next request begins a new one."""


class InvalidShareSessionEpoch(BrokerError, code=ErrorCode.INVALID_SHARE_SESSION_EPOCH, retriable=True):
    """Client and broker disagree on the epoch of the share session; the next request begins a new session."""


class FencedStateEpoch(BrokerError, code=ErrorCode.FENCED_STATE_EPOCH):
    """The request reads or writes a share group's state with an old epoch."""


class InvalidVoterKey(BrokerError, code=ErrorCode.INVALID_VOTER_KEY):
    """The request reached a controller other than the voter it was meant for."""


class DuplicateVoter(BrokerError, code=ErrorCode.DUPLICATE_VOTER):
    """The controller to add votes in the quorum already."""


class VoterNotFound(BrokerError, code=ErrorCode.VOTER_NOT_FOUND):
    """The controller to remove or update does not vote in the quorum."""


class InvalidRegularExpression(BrokerError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    """The broker cannot read the subscription's pattern; it takes RE2 syntax, not Python's."""


class RebootstrapRequired(BrokerError, code=ErrorCode.REBOOTSTRAP_REQUIRED):
    """The client's metadata is out of date; the client must bootstrap again."""


class StreamsInvalidTopology(BrokerError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY):
    """A Kafka Streams application sent a topology that its group cannot run."""


class StreamsInvalidTopologyEpoch(BrokerError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH):
    """A Kafka Streams application sent an impossible epoch for its topology."""


class StreamsTopologyFenced(BrokerError, code=ErrorCode.STREAMS_TOPOLOGY_FENCED):
    """The Kafka Streams application runs an older topology than its group; update it."""


class ShareSessionLimitReached(BrokerError, code=ErrorCode.SHARE_SESSION_LIMIT_REACHED, retriable=True):
    """The broker holds as many share sessions as it may; retry later."""


class GroupDeletionFailed(BrokerError, code=ErrorCode.GROUP_DELETION_FAILED):
    """The group was not deleted; the broker's message says why."""


class StreamsTopologyDescriptionUpdateFailed(BrokerError, code=ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED):
    """The broker could not store the description of a Kafka Streams topology; its message says why."""


class ControllerIdNotRegistered(BrokerError, code=ErrorCode.CONTROLLER_ID_NOT_REGISTERED):
    """No controller has registered with this id."""


def copy_for_reraise(error: KafkaError) -> KafkaError:
    """Copy an error for another task to raise: one object raised in many tasks would collect all their tracebacks."""
    copy = type(error)(*error.args)
    copy.__cause__ = error.__cause__
    return copy


def as_kafka_error(error: Exception, doing: str) -> KafkaError:
    """Return a KafkaError unchanged; wrap any other exception in one. ``doing`` says what this client was doing.

    A stream, a thread or a bug of the client may raise any exception. It becomes the ``__cause__`` of the KafkaError.
    """
    if isinstance(error, KafkaError):
        return error
    wrapped = KafkaError(f"{doing} failed in this client: {error!r}")
    wrapped.__cause__ = error
    return wrapped


def broker_error(code: int, detail: str = "") -> BrokerError:
    """Return the exception for a broker's error code.

    ``detail`` is for the message: the request, the broker, and what the broker says, without control characters.
    """
    detail = printable(" ".join(map(str.strip, detail.splitlines())))
    cls = _BY_CODE.get(code)
    if cls is None:
        return UnknownBrokerError(code, detail)
    summary = f"{ErrorCode(code).name}: {cls.__doc__}"
    return cls(f"{detail}: {summary}" if detail else summary)
