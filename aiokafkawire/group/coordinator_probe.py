"""Whether a group has nobody now who coordinates it."""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..cluster.cluster import Cluster
from ..errors import BrokerError, ConnectionLost, ErrorCode, KafkaError, RequestTimeout, broker_error
from ..types import CoordinatorType

if TYPE_CHECKING:  # few members come to ask
    from ..protocol.messages.group_admin import DescribeGroupsResponse

__all__ = ("CoordinatorStatus", "is_nobody", "look_for_coordinator")

_AWAY: Final = 1.0
"""Seconds in which a coordinator has to answer, wherever it is looked for: one that only moves is there by then."""


class CoordinatorStatus(Enum):
    """What came of looking for a coordinator."""

    THERE = "it answers"
    SILENT = "it may be there, with a rebalance under way that others take part in"
    AWAY = "nobody names one, or who is named cannot be reached, or says that it is none, or none yet"


async def look_for_coordinator(
    cluster: Cluster, group_id: str, lane: str, failed: Callable[[KafkaError | None], None]
) -> CoordinatorStatus:
    """Look the coordinator up and ask it for the group, until it answers, but for no more than a second.

    It is not asked by a heartbeat: Kafka answers that with no error before it knows the group. ``failed`` hears why a
    try has failed, and of None at an answer.
    """
    from ..protocol.messages.group_admin import DescribeGroupsRequest

    last: KafkaError | None = None

    def check(answer: "DescribeGroupsResponse") -> None:
        for group in answer.groups:
            if group.error_code != ErrorCode.NONE:
                raise broker_error(group.error_code, f"DescribeGroups of group {group_id!r}")

    def tried(error: KafkaError) -> None:
        nonlocal last
        last = error
        failed(error)

    request, deadline = DescribeGroupsRequest(groups=[group_id]), cluster.deadline(_AWAY)
    try:
        await cluster.ask_coordinator(
            CoordinatorType.GROUP, group_id, request, deadline, lane=lane, check=check, failed=tried
        )
    except RequestTimeout:
        return CoordinatorStatus.AWAY if is_nobody(last) else CoordinatorStatus.SILENT
    except BrokerError:
        pass  # an answer, if not the best
    except KafkaError:
        return CoordinatorStatus.THERE  # and the JoinGroup will meet the same
    failed(None)
    return CoordinatorStatus.THERE


def is_nobody(met: BaseException | None) -> bool:
    """Whether the last try met somebody who is none, or nobody, or was not even told of anybody; and not silence."""
    while met is not None:
        if isinstance(met, ConnectionLost | BrokerError):
            return True
        met = met.__cause__
    return False
