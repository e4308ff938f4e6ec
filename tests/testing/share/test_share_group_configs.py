"""The configs of share groups: where a group begins."""

from __future__ import annotations

import pytest
from support.raw_client import batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.records.batch import RecordBatch
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.configs.configs import Configs
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.logs.log import PartitionLog
from aiokafkawire.testing.share.group_configs import ShareGroupConfigs, initial_offset

HOUR = 3_600_000


@pytest.fixture
def log() -> PartitionLog:
    """Records at 1, 2 and 3 hours; the last is not replicated."""
    log = PartitionLog("t", 0)
    for hours in (1, 2, 3):
        log.append(RecordBatch.parse(memoryview(batch_of(b"x", timestamp=hours * HOUR))))
    log.high_watermark = 2
    return log


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ("latest", 2),
        ("earliest", 0),
        ("by_duration:PT1H", 1),
        ("by_duration:PT59M59.5S", None),
        ("by_duration:PT60M1S", 1),
        ("by_duration:P1D", 0),
        ("by_duration:P1DT2H", 0),
        ("by_duration:-PT1S", None),
        ("by_duration:pt2h", 0),
    ],
)
def test_a_group_begins(log: PartitionLog, reset: str, expected: int | None) -> None:
    if expected is not None:
        assert initial_offset(log, reset, 3 * HOUR) == expected
        return
    with pytest.raises(ApiError) as refused:
        initial_offset(log, reset, 3 * HOUR)
    assert refused.value.code == ErrorCode.OFFSET_NOT_AVAILABLE


def test_configs_of_a_group_and_their_defaults() -> None:
    configs = Configs()
    assert ShareGroupConfigs.of(configs, "g") == ShareGroupConfigs(30_000, 5, 2000, False, True, "latest")
    configs.replace(
        ConfigKind.GROUP, "g", {"share.isolation.level": "read_committed", "share.record.lock.duration.ms": "17000"}
    )
    found = ShareGroupConfigs.of(configs, "g")
    assert (found.read_committed, found.lock_ms) == (True, 17_000)
