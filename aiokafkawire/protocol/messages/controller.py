"""What brokers and controllers of a KRaft cluster tell one another.

Most of these are between brokers and the active controller alone. UpdateFeatures, UnregisterBroker and
UnregisterController are for clients as well: any broker passes them on.
"""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Bool, Bytes, Int8, Int16, Int32, Int64, String, UInt16, Uuid
from ..schema import Message, Request, Response, field, message, nested

__all__ = (
    "AlterPartitionRequest",
    "AlterPartitionRequestPartitionData",
    "AlterPartitionRequestTopicData",
    "AlterPartitionResponse",
    "AlterPartitionResponsePartitionData",
    "AlterPartitionResponseTopicData",
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
    "BrokerState",
    "ControllerRegistrationRequest",
    "ControllerRegistrationResponse",
    "DefaultPrincipalData",
    "EnvelopeRequest",
    "EnvelopeResponse",
    "Feature",
    "FeatureUpdateKey",
    "Listener",
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
    "UnregisterControllerRequest",
    "UnregisterControllerResponse",
    "UpdatableFeatureResult",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
)


@message(versions="0", flexible="0+")
class DefaultPrincipalData(Message):
    """Who sent a forwarded request (KIP-590). An Int16 goes before it: its version."""

    type: String = field("0+")
    name: String = field("0+")
    token_authenticated: Bool = field("0+")  # True: by a delegation token


@message(ApiKey.BROKER_REGISTRATION, versions="0-4", flexible="0+")
class BrokerRegistrationResponse(Response):
    """The epoch that the broker is registered under."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)  # -1: it was refused


@nested
class Listener:
    """Where a broker or a controller listens."""

    name: String = field("0+")
    host: String = field("0+")
    port: UInt16 = field("0+")
    security_protocol: Int16 = field("0+")  # 0: PLAINTEXT; 1: SSL; 2: SASL_PLAINTEXT; 3: SASL_SSL


@nested
class Feature:
    """A feature and the levels that the broker or controller could run."""

    name: String = field("0+")
    min_supported_version: Int16 = field("0+")
    max_supported_version: Int16 = field("0+")


@message(ApiKey.BROKER_REGISTRATION, versions="0-4", flexible="0+")
class BrokerRegistrationRequest(Request[BrokerRegistrationResponse]):
    """A broker that starts presents itself to the active controller (KIP-631).

    Before v4, features that could run at level 0 must be left out.
    """

    broker_id: Int32 = field("0+")
    cluster_id: String = field("0+")
    incarnation_id: Uuid = field("0+")  # a new one at each start
    listeners: Array[Listener] = field("0+")
    features: Array[Feature] = field("0+")
    rack: String | None = field("0+", nullable="0+")
    is_migrating_zk_broker: Bool = field("1+", default=False)  # KIP-866; refused since 4.0
    log_dirs: Array[Uuid] = field("2+", default=list, ignorable=True)  # KIP-858: those that work
    # KIP-966: before a clean shutdown; -1: there was none
    previous_broker_epoch: Int64 = field("3+", default=-1, ignorable=True)


@message(ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse(Response):
    """How the active controller sees the broker."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    is_caught_up: Bool = field("0+", default=False)  # has about all of the metadata log
    is_fenced: Bool = field("0+", default=True)  # a fenced broker leads no partition
    should_shut_down: Bool = field("0+")  # the wish to shut down is granted


@message(ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+")
class BrokerHeartbeatRequest(Request[BrokerHeartbeatResponse]):
    """A broker reports to the active controller that it lives, and the state that it requests (KIP-631)."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)
    current_metadata_offset: Int64 = field("0+")  # how far it has read the metadata log
    want_fence: Bool = field("0+")
    want_shut_down: Bool = field("0+")
    offline_log_dirs: Array[Uuid] = field("1+", tag=0, default=list)  # KIP-858: those that failed
    # KIP-1066: take no new replicas; null while starting
    cordoned_log_dirs: Array[Uuid] | None = field("2+", nullable="2+", tag=1, default=None)


@message(ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+")
class UnregisterBrokerResponse(Response):
    """Whether the broker was unregistered."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+")
class UnregisterBrokerRequest(Request[UnregisterBrokerResponse]):
    """A broker that is gone for good, to be forgotten (KIP-631)."""

    broker_id: Int32 = field("0+")


@message(ApiKey.CONTROLLER_REGISTRATION, versions="0", flexible="0+")
class ControllerRegistrationResponse(Response):
    """Whether the controller was registered."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.CONTROLLER_REGISTRATION, versions="0", flexible="0+")
class ControllerRegistrationRequest(Request[ControllerRegistrationResponse]):
    """A controller that starts presents itself to the active one (KIP-919)."""

    controller_id: Int32 = field("0+")
    incarnation_id: Uuid = field("0+")  # a new one at each start
    zk_migration_ready: Bool = field("0+")  # KIP-866
    listeners: Array[Listener] = field("0+")
    features: Array[Feature] = field("0+")


@message(ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+")
class UnregisterControllerResponse(Response):
    """Whether the controller was unregistered."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+")
class UnregisterControllerRequest(Request[UnregisterControllerResponse]):
    """A controller that is gone for good, to be forgotten (KIP-1312, 4.4); one that still runs registers again."""

    controller_id: Int32 = field("0+")


@nested
class AlterPartitionResponsePartitionData:
    """A partition as the active controller has it now, or why it refused the change."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    isr: Array[Int32] = field("0+")
    # KIP-704; 0: recovered; 1: recovering from an unclean election
    leader_recovery_state: Int8 = field("1+", default=0, ignorable=True)
    partition_epoch: Int32 = field("0+")  # rises with each change


@nested
class AlterPartitionResponseTopicData:
    """The answers for one topic; v2+ names it by id (KIP-841)."""

    topic_name: String = field("0-1", default="", ignorable=True)
    topic_id: Uuid = field("2+", default=ZERO_UUID, ignorable=True)
    partitions: Array[AlterPartitionResponsePartitionData] = field("0+")


@message(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionResponse(Response):
    """How each change of in-sync replicas went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    topics: Array[AlterPartitionResponseTopicData] = field("0+")


@nested
class BrokerState:
    """A replica that is in sync, and the epoch of its broker (KIP-903)."""

    broker_id: Int32 = field("3+")
    broker_epoch: Int64 = field("3+", default=-1)  # -1: not to be checked


@nested
class AlterPartitionRequestPartitionData:
    """A partition and the replicas that its leader sees in sync."""

    partition_index: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    new_isr: Array[Int32] = field("0-2", default=list)
    new_isr_with_epochs: Array[BrokerState] = field("3+", default=list)  # KIP-903
    # KIP-704; 0: recovered; 1: recovering from an unclean election
    leader_recovery_state: Int8 = field("1+", default=0)
    partition_epoch: Int32 = field("0+")  # the last that the leader knows; an old one is refused


@nested
class AlterPartitionRequestTopicData:
    """The partitions of one topic; v2+ names it by id (KIP-841)."""

    topic_name: String = field("0-1", default="", ignorable=True)
    topic_id: Uuid = field("2+", default=ZERO_UUID, ignorable=True)
    partitions: Array[AlterPartitionRequestPartitionData] = field("0+")


@message(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionRequest(Request[AlterPartitionResponse]):
    """The leader of partitions reports the in-sync replicas to the active controller (KIP-497, once AlterIsr)."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)
    topics: Array[AlterPartitionRequestTopicData] = field("0+")


@nested
class UpdatableFeatureResult:
    """Whether one feature was updated."""

    feature: String = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Response):
    """Whether the features were updated; v2+ tells it of all together (KIP-1022)."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    results: Array[UpdatableFeatureResult] = field("0-1", default=list, ignorable=True)


@nested
class FeatureUpdateKey:
    """A feature and the level that the cluster is to run."""

    feature: String = field("0+")
    max_version_level: Int16 = field("0+")  # 0: the feature is turned off
    allow_downgrade: Bool = field("0", default=False)
    # KIP-778; 1: upgrade; 2: downgrade without loss; 3: downgrade that may lose metadata
    upgrade_type: Int8 = field("1+", default=1)


@message(ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Request[UpdateFeaturesResponse]):
    """New levels for the cluster's features (KIP-584)."""

    timeout_ms: Int32 = field("0+", default=60000)
    feature_updates: Array[FeatureUpdateKey] = field("0+")
    validate_only: Bool = field("1+", default=False)  # KIP-778; True: check the request and change nothing


@message(ApiKey.ENVELOPE, versions="0", flexible="0+")
class EnvelopeResponse(Response):
    """The answer to the forwarded request, or why it got none."""

    # with its header; null where error_code is set
    response_data: Bytes | None = field("0+", nullable="0+", default=None)
    error_code: Int16 = field("0+")  # of the forwarding; the answer has its own


@message(ApiKey.ENVELOPE, versions="0", flexible="0+")
class EnvelopeRequest(Request[EnvelopeResponse]):
    """A client's request that a broker forwards to the active controller (KIP-590)."""

    request_data: Bytes = field("0+")  # with its header
    # as the principal builder writes it, by default DefaultPrincipalData
    request_principal: Bytes | None = field("0+", nullable="0+")
    client_host_address: Bytes = field("0+")  # the IP address, in 4 or 16 bytes
