"""Whether a group has nobody now who coordinates it."""

from collections.abc import Callable
from typing import Any, Final

from ..cluster.cluster import Cluster
from ..cluster.forms import in_newest_form
from ..errors import BrokerError, ConnectionLost, KafkaError, RequestTimeout
from ..protocol.schema import Request, Versions
from ..types import CoordinatorType, GroupMetadata
from .membership_requests import heartbeat

__all__ = ("is_coordinator_away",)

_AWAY: Final = 1.0
"""Seconds in which a coordinator has to answer, wherever it is looked for: one that only moves is there by then."""


async def is_coordinator_away(
    cluster: Cluster,
    group: GroupMetadata,
    lane: str,
    check: Callable[[Any], None],
    failed: Callable[[KafkaError | None], None],
) -> bool:
    """Look the coordinator up, and send it a heartbeat of this membership, again and again for a second.

    One that answers is there, whatever it says, and so may be one that is silent: it can have a rebalance under way
    that others take part in. It is away if nobody names one, or who is named cannot be reached, or says that it is
    none, or none yet. ``failed`` hears why a try has failed, and of None at an answer.
    """
    deadline = cluster.deadline(_AWAY)
    last: KafkaError | None = None

    def tried(error: KafkaError) -> None:
        nonlocal last
        last = error
        failed(error)

    async def in_form(request: Request[Any], wanted: Versions) -> Any:
        return await cluster.ask_coordinator(
            CoordinatorType.GROUP,
            group.group_id,
            request,
            deadline,
            lane=lane,
            wanted=wanted,
            check=check,
            failed=tried,
        )

    try:
        await in_newest_form(heartbeat(group).forms, in_form)
    except RequestTimeout:
        return _is_nobody(last)
    except KafkaError:
        return False  # the JoinGroup will meet it as well
    failed(None)
    return False


def _is_nobody(met: BaseException | None) -> bool:
    """Whether the last try met somebody who is none, or nobody, or was not even told of anybody; and not silence."""
    while met is not None:
        if isinstance(met, ConnectionLost | BrokerError):
            return True
        met = met.__cause__
    return False
