"""The rights that each API requires, as Apache Kafka requires them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from ...errors import ErrorCode
from ...protocol.acl_codes import AclOperation, ResourceType
from ...protocol.api import ApiKey
from .checks import (
    Asking,
    Decide,
    all_of,
    everything,
    group,
    of_cluster,
    of_group,
    of_resource,
    of_topic,
    of_topics,
    of_transactional_id,
    optional_transactional_id,
    parts,
    transactional_id,
    whole,
)
from .divided_requests import (
    add_partitions,
    created_topic,
    deleted_topic,
    describe_topic_partitions,
    find_coordinator,
    may_make_token,
    metadata,
    offset_fetch,
    offsets_of_groups,
    produce,
)
from .narrowing import (
    Narrow,
    cluster_operations,
    config_details,
    group_operations,
    groups_of_seen_topics,
    keeps_all,
    listed_groups,
    listed_transactions,
    log_dirs,
    names_of_deleted_topics,
    seen_offsets,
    seen_share_offsets,
    seen_tokens,
    seen_topics,
    topic_pages,
    topics_of_transactions,
)

__all__ = ("AccessRule", "has_rule", "rule_for")

_READ, _WRITE, _CREATE, _DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
_ALTER, _DESCRIBE, _CLUSTER_ACTION = AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS


def _hides_nothing(asking: Asking) -> None:
    return None


def _unreadable(asking: Asking) -> Callable[[str], bool]:
    """Return whether a topic is hidden from this reader. Followers may read all topics, or none."""
    if _is_follower(asking.request, asking.version):
        may_copy = asking.rights.may_for_cluster(_CLUSTER_ACTION)
        return lambda _: not may_copy
    return lambda topic: not asking.rights.may(_READ, ResourceType.TOPIC, topic)


def _is_follower(request: Any, version: int) -> bool:
    if request.api_key != ApiKey.FETCH:
        return False
    replica: int = request.replica_id if version < 15 else request.replica_state.replica_id
    return replica >= 0


@attrs.frozen
class AccessRule:
    """The rule of an API: the parts of a request to refuse, and the parts of the response to remove."""

    decide: Decide
    narrow: Narrow = keeps_all
    hides_topic: Callable[[Asking], Callable[[str], bool] | None] = _hides_nothing
    """A function that returns whether the handler must refuse a topic, since it may be in a session alone."""


def _group_member(topics: str | None = None) -> AccessRule:
    """Return the rule for members of a group, who must be able to describe the topics that they subscribe to."""
    checks = [group(_READ)] if topics is None else [group(_READ), of_topics(topics, _DESCRIBE)]
    return AccessRule(whole(*checks))


def _epoch_reader(asking: Asking, part: Any) -> ErrorCode | None:
    """Require CLUSTER_ACTION, as followers have it, or DESCRIBE on the topic (KIP-320)."""
    return None if asking.rights.may_for_cluster(_CLUSTER_ACTION) else of_topic(_DESCRIBE)(asking, part)


_EVERYONE: Final = AccessRule(everything)
_BROKERS: Final = AccessRule(whole(of_cluster(_CLUSTER_ACTION)))
_ALTERS_CLUSTER: Final = AccessRule(whole(of_cluster(_ALTER)))
_DESCRIBES_CLUSTER: Final = AccessRule(whole(of_cluster(_DESCRIBE)))

_RULES: Final[Mapping[ApiKey, AccessRule]] = {
    ApiKey.PRODUCE: AccessRule(parts("topic_data", each=of_topic(_WRITE), first=produce)),
    ApiKey.FETCH: AccessRule(everything, hides_topic=_unreadable),
    ApiKey.LIST_OFFSETS: AccessRule(parts("topics", each=of_topic(_DESCRIBE))),
    ApiKey.METADATA: AccessRule(metadata, seen_topics),
    ApiKey.OFFSET_COMMIT: AccessRule(parts("topics", each=of_topic(_READ), first=group(_READ))),
    ApiKey.OFFSET_FETCH: AccessRule(offset_fetch, seen_offsets),
    ApiKey.FIND_COORDINATOR: AccessRule(find_coordinator),
    ApiKey.JOIN_GROUP: _group_member(),
    ApiKey.HEARTBEAT: _group_member(),
    ApiKey.LEAVE_GROUP: _group_member(),
    ApiKey.SYNC_GROUP: _group_member(),
    ApiKey.DESCRIBE_GROUPS: AccessRule(parts("groups", each=of_group(_DESCRIBE)), group_operations),
    ApiKey.LIST_GROUPS: AccessRule(everything, listed_groups),
    ApiKey.DELETE_GROUPS: AccessRule(parts("groups_names", each=of_group(_DELETE))),
    ApiKey.OFFSET_DELETE: AccessRule(parts("topics", each=of_topic(_READ), first=group(_DELETE), handles_none=True)),
    ApiKey.SASL_HANDSHAKE: _EVERYONE,
    ApiKey.SASL_AUTHENTICATE: _EVERYONE,
    ApiKey.API_VERSIONS: _EVERYONE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _EVERYONE,
    ApiKey.PUSH_TELEMETRY: _EVERYONE,
    ApiKey.CREATE_TOPICS: AccessRule(parts("topics", each=created_topic), config_details),
    ApiKey.DELETE_TOPICS: AccessRule(parts("topics", "topic_names", each=deleted_topic), names_of_deleted_topics),
    ApiKey.DELETE_RECORDS: AccessRule(parts("topics", each=of_topic(_DELETE))),
    ApiKey.CREATE_PARTITIONS: AccessRule(parts("topics", each=of_topic(_ALTER))),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: AccessRule(describe_topic_partitions, topic_pages),
    ApiKey.DESCRIBE_CONFIGS: AccessRule(parts("resources", each=of_resource(_DESCRIBE_CONFIGS))),
    ApiKey.ALTER_CONFIGS: AccessRule(parts("resources", each=of_resource(_ALTER_CONFIGS))),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: AccessRule(parts("resources", each=of_resource(_ALTER_CONFIGS))),
    ApiKey.LIST_CONFIG_RESOURCES: AccessRule(whole(of_cluster(_DESCRIBE_CONFIGS))),
    ApiKey.DESCRIBE_LOG_DIRS: AccessRule(whole(of_cluster(_DESCRIBE)), log_dirs),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _ALTERS_CLUSTER,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: AccessRule(whole(of_cluster(_DESCRIBE_CONFIGS))),
    ApiKey.ALTER_CLIENT_QUOTAS: AccessRule(whole(of_cluster(_ALTER_CONFIGS))),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBES_CLUSTER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTERS_CLUSTER,
    ApiKey.DESCRIBE_ACLS: _DESCRIBES_CLUSTER,
    ApiKey.CREATE_ACLS: _ALTERS_CLUSTER,
    ApiKey.DELETE_ACLS: _ALTERS_CLUSTER,
    ApiKey.CREATE_DELEGATION_TOKEN: AccessRule(whole(may_make_token)),
    ApiKey.RENEW_DELEGATION_TOKEN: _EVERYONE,  # those whose token it is, which the handler knows
    ApiKey.EXPIRE_DELEGATION_TOKEN: _EVERYONE,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: AccessRule(everything, seen_tokens),
    ApiKey.INIT_PRODUCER_ID: AccessRule(whole(optional_transactional_id)),
    ApiKey.ADD_PARTITIONS_TO_TXN: AccessRule(add_partitions),
    ApiKey.ADD_OFFSETS_TO_TXN: AccessRule(whole(transactional_id(_WRITE), group(_READ))),
    ApiKey.END_TXN: AccessRule(whole(transactional_id(_WRITE))),
    ApiKey.WRITE_TXN_MARKERS: AccessRule(whole(of_cluster(_ALTER, _CLUSTER_ACTION))),
    ApiKey.TXN_OFFSET_COMMIT: AccessRule(
        parts("topics", each=of_topic(_READ), first=all_of(transactional_id(_WRITE), group(_READ)))
    ),
    ApiKey.DESCRIBE_PRODUCERS: AccessRule(parts("topics", each=of_topic(_READ))),
    ApiKey.DESCRIBE_TRANSACTIONS: AccessRule(
        parts("transactional_ids", each=of_transactional_id(_DESCRIBE)), topics_of_transactions
    ),
    ApiKey.LIST_TRANSACTIONS: AccessRule(everything, listed_transactions),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: AccessRule(parts("topics", each=_epoch_reader)),
    ApiKey.ELECT_LEADERS: _ALTERS_CLUSTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTERS_CLUSTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBES_CLUSTER,
    ApiKey.DESCRIBE_CLUSTER: AccessRule(everything, cluster_operations),
    ApiKey.DESCRIBE_QUORUM: _DESCRIBES_CLUSTER,
    ApiKey.UPDATE_FEATURES: _ALTERS_CLUSTER,
    ApiKey.UNREGISTER_BROKER: _ALTERS_CLUSTER,
    ApiKey.UNREGISTER_CONTROLLER: _ALTERS_CLUSTER,
    ApiKey.ADD_RAFT_VOTER: _ALTERS_CLUSTER,
    ApiKey.REMOVE_RAFT_VOTER: _ALTERS_CLUSTER,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _group_member("subscribed_topic_names"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: AccessRule(parts("group_ids", each=of_group(_DESCRIBE)), groups_of_seen_topics),
    ApiKey.SHARE_GROUP_HEARTBEAT: _group_member("subscribed_topic_names"),
    ApiKey.STREAMS_GROUP_DESCRIBE: AccessRule(parts("group_ids", each=of_group(_DESCRIBE))),
    ApiKey.SHARE_GROUP_DESCRIBE: AccessRule(parts("group_ids", each=of_group(_DESCRIBE)), groups_of_seen_topics),
    ApiKey.SHARE_FETCH: AccessRule(whole(group(_READ)), hides_topic=_unreadable),
    ApiKey.SHARE_ACKNOWLEDGE: AccessRule(whole(group(_READ)), hides_topic=_unreadable),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: AccessRule(offsets_of_groups, seen_share_offsets),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: AccessRule(parts("topics", each=of_topic(_READ), first=group(_READ))),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: AccessRule(
        parts("topics", each=of_topic(_READ), first=group(_DELETE), handles_none=True)
    ),
}


def rule_for(api: ApiKey) -> AccessRule:
    """Return the rule for an API. Those without a rule of their own are for brokers alone."""
    return _RULES.get(api, _BROKERS)


def has_rule(api: ApiKey) -> bool:
    """Return whether the table has the API."""
    return api in _RULES
