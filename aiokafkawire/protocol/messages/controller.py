"""What brokers and controllers of a KRaft cluster tell one another."""

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
    """DOC."""

    type: String = field("0+")
    name: String = field("0+")
    token_authenticated: Bool = field("0+")


@message(ApiKey.BROKER_REGISTRATION, versions="0-4", flexible="0+")
class BrokerRegistrationResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)


@nested
class Listener:
    """DOC(BrokerRegistrationRequest.Listeners)."""

    name: String = field("0+")
    host: String = field("0+")
    port: UInt16 = field("0+")
    security_protocol: Int16 = field("0+")


@nested
class Feature:
    """DOC(BrokerRegistrationRequest.Features)."""

    name: String = field("0+")
    min_supported_version: Int16 = field("0+")
    max_supported_version: Int16 = field("0+")


@message(ApiKey.BROKER_REGISTRATION, versions="0-4", flexible="0+")
class BrokerRegistrationRequest(Request[BrokerRegistrationResponse]):
    """DOC."""

    broker_id: Int32 = field("0+")
    cluster_id: String = field("0+")
    incarnation_id: Uuid = field("0+")
    listeners: Array[Listener] = field("0+")
    features: Array[Feature] = field("0+")
    rack: String | None = field("0+", nullable="0+")
    is_migrating_zk_broker: Bool = field("1+", default=False)
    log_dirs: Array[Uuid] = field("2+", default=list, ignorable=True)
    previous_broker_epoch: Int64 = field("3+", default=-1, ignorable=True)


@message(ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    is_caught_up: Bool = field("0+", default=False)
    is_fenced: Bool = field("0+", default=True)
    should_shut_down: Bool = field("0+")


@message(ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+")
class BrokerHeartbeatRequest(Request[BrokerHeartbeatResponse]):
    """DOC."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)
    current_metadata_offset: Int64 = field("0+")
    want_fence: Bool = field("0+")
    want_shut_down: Bool = field("0+")
    offline_log_dirs: Array[Uuid] = field("1+", tag=0, default=list)
    cordoned_log_dirs: Array[Uuid] | None = field("2+", nullable="2+", tag=1, default=None)


@message(ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+")
class UnregisterBrokerResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+")
class UnregisterBrokerRequest(Request[UnregisterBrokerResponse]):
    """DOC."""

    broker_id: Int32 = field("0+")


@message(ApiKey.CONTROLLER_REGISTRATION, versions="0", flexible="0+")
class ControllerRegistrationResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.CONTROLLER_REGISTRATION, versions="0", flexible="0+")
class ControllerRegistrationRequest(Request[ControllerRegistrationResponse]):
    """DOC."""

    controller_id: Int32 = field("0+")
    incarnation_id: Uuid = field("0+")
    zk_migration_ready: Bool = field("0+")
    listeners: Array[Listener] = field("0+")
    features: Array[Feature] = field("0+")


@message(ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+")
class UnregisterControllerResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+")
class UnregisterControllerRequest(Request[UnregisterControllerResponse]):
    """DOC."""

    controller_id: Int32 = field("0+")


@nested
class AlterPartitionResponsePartitionData:
    """DOC(AlterPartitionResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    isr: Array[Int32] = field("0+")
    leader_recovery_state: Int8 = field("1+", default=0, ignorable=True)
    partition_epoch: Int32 = field("0+")


@nested
class AlterPartitionResponseTopicData:
    """DOC(AlterPartitionResponse.Topics)."""

    topic_name: String = field("0-1", default="", ignorable=True)
    topic_id: Uuid = field("2+", default=ZERO_UUID, ignorable=True)
    partitions: Array[AlterPartitionResponsePartitionData] = field("0+")


@message(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    topics: Array[AlterPartitionResponseTopicData] = field("0+")


@nested
class BrokerState:
    """DOC(AlterPartitionRequest.NewIsrWithEpochs)."""

    broker_id: Int32 = field("3+")
    broker_epoch: Int64 = field("3+", default=-1)


@nested
class AlterPartitionRequestPartitionData:
    """DOC(AlterPartitionRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    new_isr: Array[Int32] = field("0-2", default=list)
    new_isr_with_epochs: Array[BrokerState] = field("3+", default=list)
    leader_recovery_state: Int8 = field("1+", default=0)
    partition_epoch: Int32 = field("0+")


@nested
class AlterPartitionRequestTopicData:
    """DOC(AlterPartitionRequest.Topics)."""

    topic_name: String = field("0-1", default="", ignorable=True)
    topic_id: Uuid = field("2+", default=ZERO_UUID, ignorable=True)
    partitions: Array[AlterPartitionRequestPartitionData] = field("0+")


@message(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionRequest(Request[AlterPartitionResponse]):
    """DOC."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)
    topics: Array[AlterPartitionRequestTopicData] = field("0+")


@nested
class UpdatableFeatureResult:
    """DOC(UpdateFeaturesResponse.Results)."""

    feature: String = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    results: Array[UpdatableFeatureResult] = field("0-1", default=list, ignorable=True)


@nested
class FeatureUpdateKey:
    """DOC(UpdateFeaturesRequest.FeatureUpdates)."""

    feature: String = field("0+")
    max_version_level: Int16 = field("0+")
    allow_downgrade: Bool = field("0", default=False)
    upgrade_type: Int8 = field("1+", default=1)


@message(ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Request[UpdateFeaturesResponse]):
    """DOC."""

    timeout_ms: Int32 = field("0+", default=60000)
    feature_updates: Array[FeatureUpdateKey] = field("0+")
    validate_only: Bool = field("1+", default=False)


@message(ApiKey.ENVELOPE, versions="0", flexible="0+")
class EnvelopeResponse(Response):
    """DOC."""

    response_data: Bytes | None = field("0+", nullable="0+", default=None)
    error_code: Int16 = field("0+")


@message(ApiKey.ENVELOPE, versions="0", flexible="0+")
class EnvelopeRequest(Request[EnvelopeResponse]):
    """DOC."""

    request_data: Bytes = field("0+")
    request_principal: Bytes | None = field("0+", nullable="0+")
    client_host_address: Bytes = field("0+")
