"""Checks of a client's rights, of which the rules for each API are made."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import attrs

from ...errors import ErrorCode
from ...protocol.acl_codes import AclOperation, ResourceType
from ...protocol.schema import Request, Response
from ..cluster.topics import TopicStore
from ..faults.request_targets import evolved, topic_name
from ..security.authorizer import Rights

__all__ = (
    "Asking",
    "Check",
    "Decide",
    "Decision",
    "PartCheck",
    "all_of",
    "everything",
    "group",
    "of_cluster",
    "of_group",
    "of_resource",
    "of_topic",
    "of_topics",
    "of_transactional_id",
    "optional_transactional_id",
    "parts",
    "transactional_id",
    "whole",
)

_REFUSALS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


@attrs.frozen
class Asking:
    """A request, who sends it, and the topics that there are."""

    rights: Rights
    request: Any
    version: int
    topics: TopicStore
    creates_topics: bool
    """Whether the brokers create missing topics (``auto.create.topics.enable``)."""

    def topic_of(self, part: Any) -> str | None:
        """Return the name of a topic in the request, given by name or id; None for an unknown id."""

        def name_of(topic_id: Any) -> str | None:
            topic = self.topics.by_id(topic_id)
            return None if topic is None else topic.name

        return topic_name(part, self.version, name_of)

    def refused(self, operation: AclOperation, kind: ResourceType, name: str) -> ErrorCode | None:
        """Return the error of an operation on a resource that the client may not perform, else None."""
        return None if self.rights.may(operation, kind, name) else _REFUSALS[kind]


@attrs.frozen
class Decision:
    """The parts of a request: the one to handle, if any, and those to refuse, each with its error."""

    handled: Request[Response] | None
    refused: list[tuple[Request[Response], ErrorCode]] = attrs.field(factory=list)


Check: TypeAlias = Callable[[Asking], ErrorCode | None]
"""A function that returns the error of the whole request, or None."""
PartCheck: TypeAlias = Callable[[Asking, Any], ErrorCode | None]
"""A function that returns the error of one element of an array in the request, or None."""
Decide: TypeAlias = Callable[[Asking], Decision]


def everything(asking: Asking) -> Decision:
    """Handle the request for everyone."""
    return Decision(asking.request)


def whole(*checks: Check) -> Decide:
    """Refuse the whole request with the first error of the checks."""
    first = all_of(*checks)

    def decide(asking: Asking) -> Decision:
        error = first(asking)
        return Decision(asking.request) if error is None else Decision(None, [(asking.request, error)])

    return decide


def parts(*fields: str, each: PartCheck, first: Check = lambda _: None, handles_none: bool = False) -> Decide:
    """Refuse the elements of arrays that have an error, or the whole request with the error of ``first``.

    Args:
        fields: the names of the arrays.
        each: the check of an element.
        first: the check of the whole request.
        handles_none: whether the request is also handled when no element is left.
    """

    def decide(asking: Asking) -> Decision:
        request = asking.request
        error = first(asking)
        if error is not None:
            return Decision(None, [(request, error)])
        kept: dict[str, list[Any]] = {field: [] for field in fields}
        refused: dict[ErrorCode, dict[str, list[Any]]] = {}
        for field in fields:
            for part in getattr(request, field) or ():
                error = each(asking, part)
                chosen = kept if error is None else refused.setdefault(error, {name: [] for name in fields})
                chosen[field].append(part)
        if not refused:
            return Decision(request)
        is_left = handles_none or any(kept.values())
        return Decision(
            evolved(request, **kept) if is_left else None,
            [(evolved(request, **elements), error) for error, elements in refused.items()],
        )

    return decide


# --- checks of whole requests ------------------------------------------------------------------------------------


def all_of(*checks: Check) -> Check:
    """Return the first error of several checks."""

    def check(asking: Asking) -> ErrorCode | None:
        return next((error for one in checks if (error := one(asking)) is not None), None)

    return check


def of_cluster(*operations: AclOperation) -> Check:
    """Require one of the operations on the cluster."""

    def check(asking: Asking) -> ErrorCode | None:
        allowed = any(asking.rights.may_for_cluster(operation) for operation in operations)
        return None if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    return check


def group(operation: AclOperation) -> Check:
    """Require an operation on the group that the request names."""

    def check(asking: Asking) -> ErrorCode | None:
        return asking.refused(operation, ResourceType.GROUP, asking.request.group_id or "")

    return check


def transactional_id(operation: AclOperation, field: str = "transactional_id") -> Check:
    """Require an operation on the transactional id in a field of the request."""

    def check(asking: Asking) -> ErrorCode | None:
        return asking.refused(operation, ResourceType.TRANSACTIONAL_ID, getattr(asking.request, field) or "")

    return check


def optional_transactional_id(asking: Asking) -> ErrorCode | None:
    """Require WRITE on the transactional id; without one, idempotent writes, or WRITE on any topic (KIP-679)."""
    if asking.request.transactional_id is not None:
        return transactional_id(AclOperation.WRITE)(asking)
    rights = asking.rights
    allowed = rights.may_for_cluster(AclOperation.IDEMPOTENT_WRITE) or rights.may_somewhere(
        AclOperation.WRITE, ResourceType.TOPIC
    )
    return None if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def of_topics(field: str, operation: AclOperation) -> Check:
    """Require an operation on every topic that an array names; None means no topic."""

    def check(asking: Asking) -> ErrorCode | None:
        names: Iterable[str] = getattr(asking.request, field) or ()
        errors = (asking.refused(operation, ResourceType.TOPIC, name) for name in names)
        return next((error for error in errors if error is not None), None)

    return check


# --- checks of elements --------------------------------------------------------------------------------------------


def of_topic(operation: AclOperation) -> PartCheck:
    """Require an operation on the topic; a topic of an unknown id is left to the handler."""

    def check(asking: Asking, part: Any) -> ErrorCode | None:
        name = asking.topic_of(part)
        return None if name is None else asking.refused(operation, ResourceType.TOPIC, name)

    return check


def of_group(operation: AclOperation) -> PartCheck:
    """Require an operation on a group, given by its id."""

    def check(asking: Asking, part: Any) -> ErrorCode | None:
        return asking.refused(operation, ResourceType.GROUP, part)

    return check


def of_transactional_id(operation: AclOperation) -> PartCheck:
    """Require an operation on a transactional id."""

    def check(asking: Asking, part: Any) -> ErrorCode | None:
        return asking.refused(operation, ResourceType.TRANSACTIONAL_ID, part)

    return check


def of_resource(operation: AclOperation) -> PartCheck:
    """Require an operation on a resource with settings: its topic, its group, or for all others the cluster."""

    def check(asking: Asking, part: Any) -> ErrorCode | None:
        if part.resource_type == _TOPIC_CONFIGS:
            return asking.refused(operation, ResourceType.TOPIC, part.resource_name)
        if part.resource_type == _GROUP_CONFIGS:
            return asking.refused(operation, ResourceType.GROUP, part.resource_name)
        return of_cluster(operation)(asking) if part.resource_type in _CLUSTER_CONFIGS else None

    return check


_TOPIC_CONFIGS: Final = 2
_GROUP_CONFIGS: Final = 32
_CLUSTER_CONFIGS: Final = (4, 8, 16)  # brokers, their loggers, client metrics
