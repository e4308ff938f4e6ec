"""Removal from responses of the topics, groups, transactions and operations that a client may not see (KIP-430)."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ...errors import ErrorCode
from ...protocol.acl_codes import AclOperation, ResourceType
from ..handlers.constants import NO_OPERATIONS
from ..security.acls import CLUSTER_NAME
from .checks import Asking
from .divided_requests import asks_for_all_topics

__all__ = (
    "Narrow",
    "cluster_operations",
    "config_details",
    "group_operations",
    "groups_of_seen_topics",
    "keeps_all",
    "listed_groups",
    "listed_transactions",
    "log_dirs",
    "names_of_deleted_topics",
    "seen_offsets",
    "seen_share_offsets",
    "seen_tokens",
    "seen_topics",
    "topic_pages",
    "topics_of_transactions",
)

Narrow: TypeAlias = Callable[[Asking, Any], None]
"""A function that changes the response to a request."""

_DESCRIBE: Final = AclOperation.DESCRIBE
_HIDDEN_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."


def keeps_all(asking: Asking, response: Any) -> None:
    """Leave the response as it is."""


def _sees(asking: Asking, topic: str) -> bool:
    return asking.rights.may(_DESCRIBE, ResourceType.TOPIC, topic)


# --- topics ------------------------------------------------------------------------------------------------------


def seen_topics(asking: Asking, response: Any) -> None:
    """Keep the topics of a Metadata response that the client may describe, and the operations that it may perform."""
    if asks_for_all_topics(asking):
        response.topics = [topic for topic in response.topics if _sees(asking, topic.name)]
    elif asking.version == 0:  # without topics the handler describes all
        asked = {topic.name for topic in asking.request.topics}
        response.topics = [topic for topic in response.topics if topic.name in asked]
    cluster_operations(asking, response)
    _topic_operations(asking, response)


def cluster_operations(asking: Asking, response: Any) -> None:
    """Keep the operations that the client may perform on the cluster; none if it may not describe the cluster."""
    bits = response.cluster_authorized_operations
    if bits != NO_OPERATIONS:
        seen = asking.rights.may_for_cluster(_DESCRIBE)
        kept = asking.rights.of_bits(bits, ResourceType.CLUSTER, CLUSTER_NAME) if seen else 0
        response.cluster_authorized_operations = kept


def _topic_operations(asking: Asking, response: Any) -> None:
    for topic in response.topics:
        bits = topic.topic_authorized_operations
        if bits != NO_OPERATIONS:
            topic.topic_authorized_operations = asking.rights.of_bits(bits, ResourceType.TOPIC, topic.name or "")


def topic_pages(asking: Asking, response: Any) -> None:
    """Keep the topics of DescribeTopicPartitions that the client may describe, if it asked for all."""
    if not asking.request.topics:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        response.topics = [one for one in response.topics if _sees(asking, one.name) and one.error_code != unknown]
        if not response.topics:
            response.next_cursor = None
    _topic_operations(asking, response)


def config_details(asking: Asking, response: Any) -> None:
    """Hide the settings of created topics from clients that may not describe these (KIP-525)."""
    for topic in response.topics:
        may = asking.rights.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
        if not topic.error_code and not may:
            topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []


def names_of_deleted_topics(asking: Asking, response: Any) -> None:
    """Name the topics that the client asked to delete by id, may describe, and may not delete."""
    for result in response.responses:
        topic = asking.topics.by_id(result.topic_id)
        if result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and topic is not None and result.name is None:
            result.name = topic.name if _sees(asking, topic.name) else None


def log_dirs(asking: Asking, response: Any) -> None:
    """Leave no log directory in a response with an error; before v3 an empty list is all that says so."""
    if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED or any(
        result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED for result in response.results
    ):
        response.results = []


# --- groups ------------------------------------------------------------------------------------------------------


def listed_groups(asking: Asking, response: Any) -> None:
    """Keep the groups that the client may describe; who may describe the cluster may see all."""
    rights = asking.rights
    if not rights.may_for_cluster(_DESCRIBE):
        groups = response.groups
        response.groups = [one for one in groups if rights.may(_DESCRIBE, ResourceType.GROUP, one.group_id)]


def group_operations(asking: Asking, response: Any) -> None:
    """Keep the operations that the client may perform on each group."""
    for described in response.groups:
        bits = described.authorized_operations
        if bits != NO_OPERATIONS:
            described.authorized_operations = asking.rights.of_bits(bits, ResourceType.GROUP, described.group_id)


def groups_of_seen_topics(asking: Asking, response: Any) -> None:
    """Refuse groups with partitions of a topic that the client may not describe; else narrow the operations."""
    group_operations(asking, response)
    for described in response.groups:
        assignments = [
            assignment
            for member in described.members
            for assignment in (member.assignment, getattr(member, "target_assignment", None))
            if assignment is not None
        ]
        topics = {held.topic_name for assignment in assignments for held in assignment.topic_partitions}
        if not all(_sees(asking, topic) for topic in topics):
            described.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            described.error_message = _HIDDEN_TOPICS
            described.members = []
            described.group_state = described.assignor_name = ""
            described.group_epoch = described.assignment_epoch = 0
            described.authorized_operations = NO_OPERATIONS


def seen_offsets(asking: Asking, response: Any) -> None:
    """Keep the topics that the client may describe of groups whose topics were all asked for."""
    if asking.version < 8:
        if asking.request.topics is None:
            response.topics = [topic for topic in response.topics if _sees(asking, topic.name)]
        return
    seen_share_offsets(asking, response)


def seen_share_offsets(asking: Asking, response: Any) -> None:
    """Keep the topics that the client may describe of share groups whose topics were all asked for."""
    everything = {each.group_id for each in asking.request.groups if each.topics is None}
    for found in response.groups:
        if found.error_code:  # it stands alone
            found.topics = []
        if found.group_id in everything:
            found.topics = [topic for topic in found.topics if _sees(asking, asking.topic_of(topic) or "")]


# --- transactions and tokens ---------------------------------------------------------------------------------------


def listed_transactions(asking: Asking, response: Any) -> None:
    """Keep the transactions whose transactional id the client may describe."""
    response.transaction_states = [
        state
        for state in response.transaction_states
        if asking.rights.may(_DESCRIBE, ResourceType.TRANSACTIONAL_ID, state.transactional_id)
    ]


def topics_of_transactions(asking: Asking, response: Any) -> None:
    """Keep the topics of transactions that the client may describe."""
    for state in response.transaction_states:
        state.topics = [topic for topic in state.topics if _sees(asking, topic.topic)]


def seen_tokens(asking: Asking, response: Any) -> None:
    """Keep the tokens that the client owns or may renew, or that it may describe, by the token or by its owner."""
    response.tokens = [token for token in response.tokens if _sees_token(asking, token)]


def _sees_token(asking: Asking, token: Any) -> bool:
    rights = asking.rights
    owner = f"{token.principal_type}:{token.principal_name}"
    renewers = [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers]
    return (
        rights.principal in (owner, *renewers)
        or rights.may(_DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or rights.may(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, owner)
    )
