"""The configs of a share group, as the leaders of its partitions use them."""

import re
from typing import Final, Self

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from ..configs.checks import DEAD_LETTER_TOPIC
from ..configs.configs import Configs
from ..logs.log import PartitionLog

__all__ = ("ShareGroupConfigs", "initial_offset")

_COPY: Final = "errors.deadletterqueue.copy.record.enable"
_BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"([+-]?)P(?:([+-]?\d+)D)?(?:T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+(?:[.,]\d{0,9})?)S)?)?", re.IGNORECASE
)


@attrs.frozen
class ShareGroupConfigs:
    """The effective configs of one share group."""

    lock_ms: int
    delivery_limit: int
    max_record_locks: int
    read_committed: bool
    may_renew: bool
    offset_reset: str
    dead_letter_topic: str = ""
    """The topic for records that were rejected or delivered too often; empty if the group has none."""
    copies_dead_letters: bool = False

    @classmethod
    def of(cls, configs: Configs, group_id: str) -> Self:
        """Read the configs of a group."""

        def value(name: str) -> str:
            return configs.group(group_id, f"share.{name}")

        has_queues = DEAD_LETTER_TOPIC in configs.tables.groups
        return cls(
            lock_ms=int(value("record.lock.duration.ms")),
            delivery_limit=int(value("delivery.count.limit")),
            max_record_locks=int(value("partition.max.record.locks")),
            read_committed=value("isolation.level") == "read_committed",
            may_renew=value("renew.acknowledge.enable") == "true",
            offset_reset=value("auto.offset.reset"),
            dead_letter_topic=configs.group(group_id, DEAD_LETTER_TOPIC) if has_queues else "",
            copies_dead_letters=has_queues and configs.group(group_id, _COPY) == "true",
        )


def initial_offset(log: PartitionLog, reset: str, now_ms: int) -> int:
    """Return the offset at which a group begins; ``reset`` is ``share.auto.offset.reset``.

    Raises:
        ApiError: OFFSET_NOT_AVAILABLE, there is no record in the duration that ``reset`` names.
    """
    if reset == "earliest":
        return log.log_start_offset
    if reset.startswith(_BY_DURATION):
        found = log.find_timestamp(now_ms - _milliseconds(reset.removeprefix(_BY_DURATION)))
        if found is None or found.offset >= log.high_watermark:
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return found.offset
    return log.high_watermark


def _milliseconds(duration: str) -> int:
    found = _DURATION.fullmatch(duration)
    assert found is not None, duration
    sign, *parts = found.groups()
    seconds = [float((part or "0").replace(",", ".")) * unit for part, unit in zip(parts, _UNITS, strict=True)]
    return int(sum(seconds) * 1000) * (-1 if sign == "-" else 1)


_UNITS: Final = (86_400, 3_600, 60, 1)
