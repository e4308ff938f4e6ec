"""Tests that wait for requests which never come end, and say what has not come."""

import pytest

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio


async def test_a_rule_that_is_not_applied() -> None:
    async with Broker(port=None) as broker:
        rule = broker.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
        told = (
            r"^<on PRODUCE: answer='NOT_LEADER_OR_FOLLOWER'; 2 times, 0 so far> was to be applied 2 times: nothing more"
        )
        with pytest.raises(TimeoutError, match=told):
            await rule.met(timeout=0)
        rule.remove()


async def test_a_hold_that_holds_nothing() -> None:
    async with Broker(port=None) as broker, broker.hold(ApiKey.FETCH) as held:
        with pytest.raises(TimeoutError, match=r"^0 of 1 requests to hold have arrived: nothing more came within 0 s"):
            await held.arrived(timeout=0)


async def test_a_log_without_the_request() -> None:
    async with Broker(port=None) as broker:
        with pytest.raises(TimeoutError, match=r"^0 of 3 requests have arrived \(HEARTBEAT group='g'\): nothing more"):
            await broker.requests.wait_for(ApiKey.HEARTBEAT, 3, group="g", timeout=0)
