"""Decisions about requests of which a client may ask for a part in a way of its own."""

from typing import Any, Final

from ...errors import ErrorCode
from ...protocol.acl_codes import AclOperation, ResourceType
from ...protocol.messages.metadata import TopicRequest
from ...protocol.primitives import ZERO_UUID
from ..faults.request_targets import evolved
from ..logs.validation import first_headers
from .checks import (
    Asking,
    Decision,
    of_cluster,
    of_group,
    of_topic,
    of_transactional_id,
    parts,
    transactional_id,
    whole,
)

__all__ = (
    "add_partitions",
    "asks_for_all_topics",
    "created_topic",
    "deleted_topic",
    "describe_topic_partitions",
    "find_coordinator",
    "may_make_token",
    "metadata",
    "offset_fetch",
    "offsets_of_groups",
    "produce",
)

_DESCRIBE: Final = AclOperation.DESCRIBE
_SEVERAL_KEYS_SINCE: Final = 4  # of FindCoordinator
_SHARE_GROUPS_SINCE: Final = 6  # of FindCoordinator
_SEVERAL_GROUPS_SINCE: Final = 8  # of OffsetFetch
_FROM_BROKERS_SINCE: Final = 4  # of AddPartitionsToTxn
_GROUP, _TRANSACTION, _SHARE_GROUP = range(3)


def produce(asking: Asking) -> ErrorCode | None:
    """Require WRITE on the transactional id of transactional records."""
    request = asking.request
    if request.transactional_id is None or not any(header.is_transactional for header in first_headers(request)):
        return None
    return transactional_id(AclOperation.WRITE)(asking)


# --- topics ------------------------------------------------------------------------------------------------------


def asks_for_all_topics(asking: Asking) -> bool:
    """Return whether a Metadata request asks for all topics."""
    topics = asking.request.topics
    return topics is None or (asking.version == 0 and not topics)


def metadata(asking: Asking) -> Decision:
    """Refuse topics that the client may not describe, and missing ones that it may not create."""
    if asks_for_all_topics(asking):
        return Decision(asking.request)
    return parts("topics", each=_metadata_topic, handles_none=True)(asking)


def _metadata_topic(asking: Asking, part: Any) -> ErrorCode | None:
    name = asking.topic_of(part)
    if name is None:
        return None  # an unknown id
    refused = asking.refused(_DESCRIBE, ResourceType.TOPIC, name)
    is_created = (
        asking.creates_topics
        and asking.request.allow_auto_topic_creation
        and part.topic_id == ZERO_UUID
        and asking.topics.get(name) is None
    )
    return created_topic(asking, part) if refused is None and is_created else refused


def created_topic(asking: Asking, part: Any) -> ErrorCode | None:
    """Require CREATE on the cluster or on the topic."""
    if asking.rights.may_for_cluster(AclOperation.CREATE):
        return None
    return asking.refused(AclOperation.CREATE, ResourceType.TOPIC, part.name)


def deleted_topic(asking: Asking, part: Any) -> ErrorCode | None:
    """Require DELETE on the topic, or on the cluster; whether a topic exists only those learn who may describe it."""
    by_id = not isinstance(part, str) and part.name is None
    if not (isinstance(part, str) or by_id) and part.topic_id != ZERO_UUID:
        return None  # an invalid request
    name = asking.topic_of(part)
    if name is None or asking.rights.may_for_cluster(AclOperation.DELETE):
        return None
    refused = None if by_id else asking.refused(_DESCRIBE, ResourceType.TOPIC, name)
    if refused is not None or asking.topics.get(name) is None:
        return refused
    return asking.refused(AclOperation.DELETE, ResourceType.TOPIC, name)


def describe_topic_partitions(asking: Asking) -> Decision:
    """Refuse topics that the client may not describe; if it asks for all, ask for those that it may describe."""
    request = asking.request
    if request.topics:
        return parts("topics", each=of_topic(_DESCRIBE))(asking)
    hidden = [topic.name for topic in asking.topics if not asking.rights.may(_DESCRIBE, ResourceType.TOPIC, topic.name)]
    seen = [topic.name for topic in asking.topics if topic.name not in hidden]
    if not hidden or not seen:
        return Decision(request)
    if request.cursor is not None and request.cursor.topic_name not in seen:
        seen.append(request.cursor.topic_name)  # the page begins there; it is taken out of the response
    return Decision(evolved(request, topics=[TopicRequest(name=name) for name in seen]))


# --- groups ------------------------------------------------------------------------------------------------------


def find_coordinator(asking: Asking) -> Decision:
    """Require DESCRIBE on each group or transactional id; coordinators of share groups' states are for brokers."""
    request = asking.request
    if request.key_type == _SHARE_GROUP and asking.version >= _SHARE_GROUPS_SINCE:
        return whole(of_cluster(AclOperation.CLUSTER_ACTION))(asking)
    of_key = of_transactional_id(_DESCRIBE) if request.key_type == _TRANSACTION else of_group(_DESCRIBE)
    if request.key_type not in (_GROUP, _TRANSACTION):
        return Decision(request)
    if asking.version >= _SEVERAL_KEYS_SINCE:
        return parts("coordinator_keys", each=of_key)(asking)
    return whole(lambda asked: of_key(asked, request.key))(asking)


def offset_fetch(asking: Asking) -> Decision:
    """Require DESCRIBE on each group and topic; of all topics of a group the response has those."""
    request = asking.request
    if asking.version >= _SEVERAL_GROUPS_SINCE:
        return offsets_of_groups(asking)
    error = asking.refused(_DESCRIBE, ResourceType.GROUP, request.group_id)
    if error is not None:
        return Decision(None, [(request, error)])
    if request.topics is None:
        return Decision(request)
    return parts("topics", each=of_topic(_DESCRIBE), handles_none=True)(asking)


def offsets_of_groups(asking: Asking) -> Decision:
    """Require DESCRIBE on each group, and on each topic that is asked for with a group."""
    request = asking.request
    kept, refused_groups, refused_topics = [], [], []
    for each in request.groups:
        if asking.refused(_DESCRIBE, ResourceType.GROUP, each.group_id) is not None:
            refused_groups.append(each)
            continue
        hidden = [topic for topic in each.topics or () if of_topic(_DESCRIBE)(asking, topic) is not None]
        if hidden:
            refused_topics.append(evolved(each, topics=hidden))
        seen = None if each.topics is None else [topic for topic in each.topics if topic not in hidden]
        kept.append(evolved(each, topics=seen))
    refused = []
    if refused_groups:
        bare = [evolved(each, topics=[]) for each in refused_groups]
        refused.append((evolved(request, groups=bare), ErrorCode.GROUP_AUTHORIZATION_FAILED))
    if refused_topics:
        refused.append((evolved(request, groups=refused_topics), ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return Decision(evolved(request, groups=kept) if kept else None, refused)


# --- transactions and tokens ---------------------------------------------------------------------------------------


def add_partitions(asking: Asking) -> Decision:
    """Require WRITE on the transactional id and the topics; if one is refused, none is added to the transaction."""
    request = asking.request
    if asking.version >= _FROM_BROKERS_SINCE:
        return whole(of_cluster(AclOperation.CLUSTER_ACTION))(asking)
    error = transactional_id(AclOperation.WRITE, "v3_and_below_transactional_id")(asking)
    if error is not None:
        return Decision(None, [(request, error)])
    decision = parts("v3_and_below_topics", each=of_topic(AclOperation.WRITE))(asking)
    if not decision.refused or decision.handled is None:
        return decision
    return Decision(None, [*decision.refused, (decision.handled, ErrorCode.OPERATION_NOT_ATTEMPTED)])


def may_make_token(asking: Asking) -> ErrorCode | None:
    """Require CREATE_TOKENS on the user for whom a token is made, unless that is the client (KIP-373)."""
    request = asking.request
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if not request.owner_principal_name or owner == asking.rights.principal:
        return None
    allowed = asking.rights.may(AclOperation.CREATE_TOKENS, ResourceType.USER, owner)
    return None if allowed else ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
