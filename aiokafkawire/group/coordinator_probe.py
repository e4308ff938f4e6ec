"""Probes whether a group has an available coordinator."""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..cluster.cluster import Cluster
from ..errors import BrokerError, ConnectionLost, ErrorCode, KafkaError, RequestTimeout, broker_error
from ..types import CoordinatorType

if TYPE_CHECKING:  # few members have to probe
    from ..protocol.messages.group_admin import DescribeGroupsResponse

__all__ = ("CoordinatorStatus", "is_unreachable", "probe_coordinator")

_TIMEOUT: Final = 1.0
"""The timeout of the probe in seconds; a coordinator that only moves is available by then."""


class CoordinatorStatus(Enum):
    """The result of a probe."""

    AVAILABLE = "the coordinator responds"
    SILENT = "no response: it may be busy, or waiting for other members of the group"
    UNAVAILABLE = "no coordinator found, or it is unreachable, or not (yet) coordinator"


async def probe_coordinator(
    cluster: Cluster, group_id: str, lane: str, failed: Callable[[KafkaError | None], None]
) -> CoordinatorStatus:
    """Find the coordinator and send it DescribeGroups until it responds, for at most a second.

    A Heartbeat would prove nothing: Kafka answers it without an error before the group is loaded. ``failed`` receives
    the error of each failed attempt, and None after a response.
    """
    from ..protocol.messages.group_admin import DescribeGroupsRequest

    last: KafkaError | None = None

    def check(answer: "DescribeGroupsResponse") -> None:
        for group in answer.groups:
            if group.error_code != ErrorCode.NONE:
                raise broker_error(group.error_code, f"DescribeGroups of group {group_id!r}")

    def on_failure(error: KafkaError) -> None:
        nonlocal last
        last = error
        failed(error)

    request, deadline = DescribeGroupsRequest(groups=[group_id]), cluster.deadline(_TIMEOUT)
    try:
        await cluster.ask_coordinator(
            CoordinatorType.GROUP, group_id, request, deadline, lane=lane, check=check, failed=on_failure
        )
    except RequestTimeout:
        return CoordinatorStatus.UNAVAILABLE if is_unreachable(last) else CoordinatorStatus.SILENT
    except BrokerError:
        pass  # a response, although an error
    except KafkaError:
        return CoordinatorStatus.AVAILABLE  # the JoinGroup will raise it as well
    failed(None)
    return CoordinatorStatus.AVAILABLE


def is_unreachable(error: BaseException | None) -> bool:
    """Return whether the error shows that the coordinator is unavailable: a lost connection or a broker's error."""
    while error is not None:
        if isinstance(error, ConnectionLost | BrokerError):
            return True
        error = error.__cause__
    return False
