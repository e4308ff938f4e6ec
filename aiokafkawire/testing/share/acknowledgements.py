"""Acknowledgements as members send them, and Kafka's checks of their form."""

from collections.abc import Sequence
from typing import NamedTuple

from ...errors import ErrorCode
from ...protocol.messages.share_fetch import AcknowledgementBatch
from ..cluster.api_error import ApiError
from .in_flight import AcknowledgeType

__all__ = ("AcknowledgedRange", "acknowledged_ranges", "checked_types")


class AcknowledgedRange(NamedTuple):
    """A range of offsets, both inclusive, with one type for all of them or one for each."""

    first: int
    last: int
    types: Sequence[int]


def acknowledged_ranges(batches: Sequence[AcknowledgementBatch], *, may_renew: bool) -> list[AcknowledgedRange]:
    """Return the ranges of one partition's acknowledgements; ``may_renew`` as the request's ``is_renew_ack``.

    Raises:
        ApiError: INVALID_REQUEST, the ranges are not in order or their types are wrong.
    """
    found, previous = list[AcknowledgedRange](), -1
    for batch in batches:
        part = AcknowledgedRange(batch.first_offset, batch.last_offset, batch.acknowledge_types)
        if part.first > part.last or part.first < previous:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if len(part.types) not in (1, part.last - part.first + 1):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if AcknowledgeType.RENEW in checked_types(part) and not may_renew:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        found.append(part)
        previous = part.last
    return found


def checked_types(part: AcknowledgedRange) -> list[AcknowledgeType]:
    """Return the types of a range.

    Raises:
        ApiError: INVALID_REQUEST, a type is unknown.
    """
    if any(kind not in tuple(AcknowledgeType) for kind in part.types):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    return [AcknowledgeType(kind) for kind in part.types]
