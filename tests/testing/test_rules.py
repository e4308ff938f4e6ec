"""Which request an order is for, and how often: without a loop, a broker or a clock."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from aiokafkawire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest, HeartbeatRequest, HeartbeatResponse
from aiokafkawire.protocol.messages.group_admin import DescribeGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.topics import DeleteTopicsRequest
from aiokafkawire.protocol.messages.transactions import AddOffsetsToTxnRequest
from aiokafkawire.protocol.schema import Request
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.faults.request_log import LoggedRequest, Selector
from aiokafkawire.testing.faults.request_targets import divided, targets_of
from aiokafkawire.testing.faults.rules import Action, FaultRule, FaultRules, UnusedFaultRules

ID = UUID(int=7)


def name_of(topic_id: UUID) -> str | None:
    return "named" if topic_id == ID else None


def asked(request: Request[Any] | None = None, version: int = 4, **fields: Any) -> LoggedRequest:
    """A heartbeat of group "g", unless told."""
    request = request or HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    where = {"time": 0.0, "node": 1, "connection": 1, "client_id": "me", **fields}
    return LoggedRequest(api=ApiKey(request.api_key), version=version, request=request, name_of=name_of, **where)


def fetch(*topics: tuple[str | UUID, int]) -> FetchRequest:
    made = []
    for topic, partitions in topics:
        asked = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in range(partitions)]
        named = {"topic_id": topic} if isinstance(topic, UUID) else {"topic": topic}
        made.append(FetchTopic(**named, partitions=asked))
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=made)


def order(times: int | None = 1, after: int = 0, **which: Any) -> FaultRule:
    return FaultRule(Selector(**which), Action(drop="before"), times=times, after=after)


# --- what a request is about -------------------------------------------------------------------------------------


def test_topics_are_found_by_name_and_by_id() -> None:
    assert targets_of(fetch(("t", 2)), 12, name_of).partitions == [("t", 0), ("t", 1)]
    assert targets_of(fetch((ID, 1), (UUID(int=8), 1)), 13, name_of).partitions == [("named", 0), (None, 0)]


def test_topics_without_partitions_and_as_strings_and_resources() -> None:
    metadata = MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name=None, topic_id=ID)])
    assert targets_of(metadata, 12, name_of).partitions == [("t", None), ("named", None)]
    assert targets_of(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1), 5, name_of).partitions == [("a", None)]
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((2, "t"), (4, "1"))
    ]
    assert targets_of(DescribeConfigsRequest(resources=resources), 4, name_of).partitions == [("t", None)]


def test_groups_and_transactions_are_found() -> None:
    describe = DescribeGroupsRequest(groups=["a", "b"])
    assert targets_of(describe, 5, name_of).groups == ["a", "b"]
    for version in (2, 5):
        keys: Any = {"key": "k"} if version < 4 else {"coordinator_keys": ["k"]}
        assert targets_of(FindCoordinatorRequest(**keys), version, name_of).groups == ["k"]
        found = targets_of(FindCoordinatorRequest(key_type=1, **keys), version, name_of)
        assert (found.groups, found.transactional_ids) == ([], ["k"])
    both = AddOffsetsToTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0, group_id="g")
    assert (targets_of(both, 3, name_of).groups, targets_of(both, 3, name_of).transactional_ids) == (["g"], ["x"])


def test_groups_within_groups() -> None:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[3])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    found = targets_of(request, 9, name_of)
    assert (found.groups, found.partitions) == (["g"], [("t", 3)])


def test_what_all_topics_means_is_not_known() -> None:
    assert targets_of(MetadataRequest(topics=None), 12, name_of).partitions == []


def test_a_request_is_divided_by_partition() -> None:
    bad, rest = divided(fetch(("a", 2), ("b", 1)), 12, name_of, lambda topic, index: (topic, index) == ("a", 1))
    assert targets_of(bad, 12, name_of).partitions == [("a", 1)]  # type: ignore[arg-type]
    assert targets_of(rest, 12, name_of).partitions == [("a", 0), ("b", 0)]  # type: ignore[arg-type]
    everything, nothing = divided(fetch(("a", 2)), 12, name_of, lambda topic, _: topic == "a")
    assert (everything, nothing) == (fetch(("a", 2)), None)


# --- which requests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "fits"),
    [
        ({}, True),
        ({"api": ApiKey.HEARTBEAT}, True),
        ({"api": ApiKey.FETCH}, False),
        ({"node": 1, "client_id": "me", "version": 4, "group": "g"}, True),
        ({"node": 2}, False),
        ({"client_id": "you"}, False),
        ({"version": 3}, False),
        ({"group": "h"}, False),
        ({"topic": "t"}, False),
        ({"transactional_id": "g"}, False),
        ({"where": lambda request: request.member_id == "m"}, True),
        ({"where": lambda request: request.member_id == "n"}, False),
    ],
)
def test_all_that_is_given_must_fit(which: dict[str, Any], fits: bool) -> None:
    assert Selector(**which).fits(asked()) == fits


def test_a_partition_must_be_named_with_its_topic() -> None:
    request = asked(fetch(("t", 1), ("u", 2)), 12)
    assert Selector(topic="u", partition=1).fits(request)
    assert not Selector(topic="t", partition=1).fits(request)
    with pytest.raises(ValueError, match="needs topic="):
        Selector(partition=1)


def test_a_fetch_is_for_what_its_session_reads() -> None:
    request = fetch()
    request.session_id, request.session_epoch = 5, 2
    session_of = {5: [("t", 0)]}.__getitem__
    assert Selector(topic="t").fits(asked(request, 12, session_of=session_of))


# --- how often ---------------------------------------------------------------------------------------------------


def taken(one: FaultRule, requests: int) -> list[bool]:
    return [one.take(asked()) for _ in range(requests)]


def test_an_order_acts_once_unless_told() -> None:
    assert taken(order(), 3) == [True, False, False]
    assert taken(order(times=2), 3) == [True, True, False]
    assert taken(order(times=None), 3) == [True, True, True]


def test_an_order_lets_some_pass_that_fit() -> None:
    one = order(after=2, api=ApiKey.HEARTBEAT)
    assert not one.take(asked(fetch()))
    assert taken(one, 4) == [False, False, True, False]


def test_an_order_counts_what_it_did_and_not_what_it_took() -> None:
    one = order()
    assert one.take(asked())
    assert (one.count, one.is_met, one.is_active) == (0, False, False)
    one.give_back()
    assert one.is_active
    assert one.take(asked())
    one.done()
    assert (one.count, one.is_met, one.is_active) == (1, True, False)


def test_an_order_that_is_removed_acts_no_more() -> None:
    one = order(times=None)
    one.remove()
    assert taken(one, 1) == [False]


def test_the_first_order_that_fits_acts_and_hides_the_request_from_the_others() -> None:
    orders, one, two, three = FaultRules(), order(), order(after=1), order(times=None, group="g")
    for each in (one, two, three):
        orders.add(each)
    assert [orders.take(asked()) for _ in range(5)] == [one, three, two, three, three]


def test_orders_that_were_not_asked_for_are_told() -> None:
    orders = FaultRules()
    forever, thrice, gone = order(times=None, api=ApiKey.FETCH, topic="t"), order(times=3), order()
    for each in (forever, thrice, gone):
        orders.add(each)
    gone.remove()
    with pytest.raises(UnusedFaultRules) as raised:
        orders.check()
    assert str(raised.value) == (
        "fault rules were applied less often than planned: <on FETCH topic='t': drop='before'; for ever, 0 so far>; "
        "<on any API: drop='before'; 3 times, 0 so far>"
    )
    forever.done()
    for _ in range(3):
        thrice.done()
    orders.check()


@pytest.mark.parametrize(
    ("action", "api", "told"),
    [
        ({}, None, "needs an action"),
        ({"drop": "before", "cut": True}, None, "drop=, swallow=, cut= and corrupt= exclude"),
        ({"swallow": "after", "corrupt": 1}, None, "drop=, swallow=, cut= and corrupt= exclude"),
        ({"drop": "before", "answer": ErrorCode.NOT_CONTROLLER}, None, "exclude each other"),
        ({"delay": -1}, None, "0 or more seconds"),
        ({"answer": ErrorCode.NONE}, None, "to let requests through, use after="),
        ({"answer": HeartbeatResponse(error_code=0)}, ApiKey.FETCH, "HeartbeatResponse does not answer FETCH"),
        ({"answer": HeartbeatResponse(error_code=0)}, None, "needs an API"),
    ],
)
def test_an_order_must_make_sense(action: dict[str, Any], api: ApiKey | None, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        FaultRule(Selector(api=api), Action(**action))


@pytest.mark.parametrize("often", [{"times": 0}, {"after": -1}])
def test_an_order_acts_at_least_once(often: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        order(**often)


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ({"drop": "befor"}, "drop= must be 'before' or 'after', got 'befor'"),
        ({"swallow": True}, "swallow= must be 'before' or 'after', got True"),
        ({"hold": "later"}, "hold= must be 'before' or 'after', got 'later'"),
        ({"corrupt": "record"}, "corrupt= must be an index or 'records', got 'record'"),
        ({"corrupt": True}, "corrupt= must be an index or 'records', got True"),
    ],
)
def test_moments_and_places_are_what_there_is(action: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        FaultRule(Selector(), Action(**action))


async def _async_answer(request: object, response: object) -> None: ...


@pytest.mark.parametrize("answer", [6, "NOT_LEADER_OR_FOLLOWER", HeartbeatResponse, _async_answer])
def test_an_answer_is_an_error_a_response_or_a_function(answer: Any) -> None:
    with pytest.raises(TypeError, match="must be an ErrorCode, a response, or a function"):
        FaultRule(Selector(api=ApiKey.HEARTBEAT), Action(answer=answer))


def test_selectors_of_a_broker_are_checked_at_once() -> None:
    broker = Broker(2, port=None)
    unknown: Any = {"topik": "t"}
    misspelt: Any = {"anser": 1}
    give: list[Any] = [lambda *api, **which: broker.on(*api, drop="before", **which), broker.hold]
    for order in give:
        with pytest.raises(TypeError, match=r"^unknown selector topik=; did you mean topic=\?$"):
            order(ApiKey.FETCH, **unknown)
        with pytest.raises(TypeError, match=r"^unknown selector anser=; did you mean answer=\?$"):
            order(ApiKey.FETCH, **misspelt)
        with pytest.raises(TypeError, match="api must be an ApiKey, or None for any, got 'FETCH'"):
            order("FETCH")
        with pytest.raises(ValueError, match="no node=3; known: 1, 2"):
            order(ApiKey.FETCH, node=3)
    assert broker.orders == []


def test_orders_that_are_over_are_not_asked_again() -> None:
    class Counted(FaultRule):
        asked = 0

        def take(self, asked: LoggedRequest) -> bool:
            self.asked += 1
            return super().take(asked)

    orders, removed, met = FaultRules(), *(Counted(Selector(), Action(drop="before")) for _ in range(2))
    for each in (removed, met):
        orders.add(each)
    removed.remove()
    assert orders.take(asked()) is met
    assert orders.take(asked()) is None  # it is under way, and may be given back
    met.give_back()
    assert orders.take(asked()) is met
    met.done()
    assert orders.take(asked()) is None
    assert (removed.asked, met.asked) == (0, 3)
    assert list(orders) == [met]
    orders.check()
