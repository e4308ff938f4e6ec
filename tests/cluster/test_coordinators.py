"""Coordinators: looked up once, however many need one, and remembered."""

import anyio
import pytest
from support.clusters import metadata, opened
from support.connecting import eventually
from support.patience import SOON
from support.scripted_broker import SPOKEN, Asked, ScriptedBroker, api_versions

from aiokafkawire.cluster import coordinators as coordinators_module
from aiokafkawire.cluster.coordinators import CoordinatorLog
from aiokafkawire.cluster.metadata import Node
from aiokafkawire.errors import (
    ConnectionLost,
    ErrorCode,
    GroupAuthorizationFailed,
    KafkaError,
    RequestTimeout,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersion,
    WireError,
)
from aiokafkawire.observe import CoordinatorChanged, Observer, Observers
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.protocol.schema import Response, Versions
from aiokafkawire.types import Address, CoordinatorType

pytestmark = pytest.mark.anyio

GROUP, TRANSACTION = CoordinatorType.GROUP, CoordinatorType.TRANSACTION


def found(asked: Asked, host: str = "b", node_id: int = 1, error: int = 0, said: str | None = None) -> Response:
    """The answer to FindCoordinator, in the form of the version that was asked in."""
    at = (-1, "", -1) if error else (node_id, host, 9092)
    if asked.version < 4:
        return FindCoordinatorResponse(
            node_id=at[0], host=at[1], port=at[2], error_code=error, error_message=said if asked.version else ""
        )
    keys = asked.request.coordinator_keys
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=at[0], host=at[1], port=at[2], error_code=error, error_message=said)
            for key in keys
        ]
    )


def speaking(broker: ScriptedBroker, last: int) -> None:
    """Let the broker speak FindCoordinator up to this version."""
    spoken = {**SPOKEN, ApiKey.FIND_COORDINATOR: Versions(0, last)}
    broker.on[ApiKey.API_VERSIONS] = lambda _: api_versions(spoken)


@pytest.mark.parametrize("last", range(7))
@pytest.mark.parametrize("kind", list(CoordinatorType))
async def test_each_version_asks_in_its_own_form(kind: CoordinatorType, last: int) -> None:
    async with ScriptedBroker() as broker:
        speaking(broker, last)
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        asked: list[Asked] = []

        def answer(one: Asked) -> Response:
            asked.append(one)
            # A broker that Metadata does not list, as one that has just started.
            return found(one, "c", 3)

        broker.on[ApiKey.FIND_COORDINATOR] = answer
        async with opened(broker.connect) as cluster:
            if last < {TRANSACTION: 1, CoordinatorType.SHARE: 6}.get(kind, 0):
                with pytest.raises(UnsupportedVersion, match=r"b:9092 speaks FindCoordinator 0"):
                    await cluster.coordinator(kind, "k", cluster.deadline(10))
                assert asked == []
                return
            node = await cluster.coordinator(kind, "k", cluster.deadline(10))
        assert node == Node(3, Address("c", 9092))
        (one,) = asked
        key = ([], "k") if last < 4 else (["k"], "")
        assert (one.version, one.request.key_type, one.request.coordinator_keys, one.request.key) == (last, kind, *key)


async def test_however_many_need_a_coordinator_one_request_is_under_way() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect) as cluster:
            nodes = list[Node]()

            async def find(kind: CoordinatorType, key: str) -> None:
                nodes.append(await cluster.coordinator(kind, key, cluster.deadline(10)))

            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(find, GROUP, "g")
                one = await broker.peers[0].next()
                await anyio.wait_all_tasks_blocked()
                await one.answer(found(one))
            assert nodes == [Node(1, Address("b", 9092))] * 10
            assert not cluster._coordinators._lookups
            await find(GROUP, "g")
            assert broker.count(FindCoordinatorRequest) == 1
            # The same name of another kind, and another name, are coordinated elsewhere.
            broker.on[ApiKey.FIND_COORDINATOR] = lambda asked: found(asked, "c", 3)
            await find(TRANSACTION, "g")
            await find(GROUP, "h")
            assert [node.node_id for node in nodes[-2:]] == [3, 3]
            assert broker.count(FindCoordinatorRequest) == 3


async def test_a_caller_that_leaves_while_it_asks_leaves_the_turn_to_the_next() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect) as cluster, anyio.create_task_group() as tasks:
            leaving, nodes = anyio.CancelScope(), list[Node]()

            async def find(scope: anyio.CancelScope) -> None:
                with scope:
                    nodes.append(await cluster.coordinator(GROUP, "g", cluster.deadline(10)))

            tasks.start_soon(find, leaving)
            first = await broker.peers[0].next()
            tasks.start_soon(find, anyio.CancelScope())
            await anyio.wait_all_tasks_blocked()
            leaving.cancel()
            second = await broker.peers[0].next()
            for one in (first, second):
                await one.answer(found(one))
            await eventually(lambda: len(nodes) == 1)
            assert leaving.cancelled_caught


async def test_a_caller_that_waits_for_its_turn_keeps_its_own_deadline_and_hears_the_cause() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        broker.on[ApiKey.FIND_COORDINATOR] = lambda asked: found(asked, error=code, said="starting")
        async with opened(broker.connect) as cluster, anyio.create_task_group() as tasks:
            tasks.start_soon(cluster.coordinator, TRANSACTION, "x", cluster.deadline(60))
            await eventually(lambda: broker.count(FindCoordinatorRequest) >= 2)
            told = (
                r"^FindCoordinator of transactional id 'x' did not succeed within 0\.05 s; at last "
                r"CoordinatorNotAvailable: FindCoordinator of transactional id 'x': starting: COORDINATOR_NOT_AVAIL"
            )
            with anyio.fail_after(SOON), pytest.raises(RequestTimeout, match=told):
                await cluster.coordinator(TRANSACTION, "x", cluster.deadline(0.05))
            tasks.cancel_scope.cancel()


async def test_a_coordinator_that_is_not_there_yet_is_looked_for_again() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        left = iter([ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3)
        broker.on[ApiKey.FIND_COORDINATOR] = lambda asked: found(asked, error=next(left, ErrorCode.NONE))
        async with opened(broker.connect) as cluster:
            assert (await cluster.coordinator(GROUP, "g", cluster.deadline(10))).node_id == 1
        assert broker.count(FindCoordinatorRequest) == 4
        assert broker.count(MetadataRequest) == 1


@pytest.mark.parametrize(
    ("kind", "code", "error"),
    [
        (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailed),
        (TRANSACTION, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TransactionalIdAuthorizationFailed),
    ],
)
async def test_a_refusal_is_raised_at_once_for_all_who_wait_and_asked_about_anew_later(
    kind: CoordinatorType, code: ErrorCode, error: type[KafkaError]
) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect) as cluster:
            heard = list[Exception]()

            async def find() -> None:
                try:
                    await cluster.coordinator(kind, "k", cluster.deadline(60))
                except KafkaError as refusal:
                    heard.append(refusal)

            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(find)
                one = await broker.peers[0].next()
                await anyio.wait_all_tasks_blocked()
                await one.answer(found(one, error=code))
            assert [type(one) for one in heard] == [error] * 10
            # Each has its own, or their tracebacks would gather in one.
            assert len({id(one) for one in heard}) == 10
            assert "'k'" in str(heard[0])
            assert broker.count(FindCoordinatorRequest) == 1
            broker.on[ApiKey.FIND_COORDINATOR] = found
            assert (await cluster.coordinator(kind, "k", cluster.deadline(10))).node_id == 1


async def test_whoever_asks_anew_after_a_refusal_does_not_hear_the_old_one() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect) as cluster:
            nodes = list[Node]()

            async def find() -> None:
                # The first to hear it asks again while the others have not heard it yet.
                try:
                    await cluster.coordinator(GROUP, "g", cluster.deadline(60))
                except GroupAuthorizationFailed:
                    nodes.append(await cluster.coordinator(GROUP, "g", cluster.deadline(60)))

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(find)
                one = await broker.peers[0].next()
                await anyio.wait_all_tasks_blocked()
                broker.on[ApiKey.FIND_COORDINATOR] = found
                await one.answer(found(one, error=ErrorCode.GROUP_AUTHORIZATION_FAILED))
            assert [node.node_id for node in nodes] == [1, 1, 1]
            assert broker.count(FindCoordinatorRequest) == 2


@pytest.mark.parametrize(
    "answer",
    [
        FindCoordinatorResponse(),
        FindCoordinatorResponse(
            coordinators=[Coordinator(key="other", node_id=1, host="b", port=1, error_code=0, error_message=None)]
        ),
        FindCoordinatorResponse(
            coordinators=[Coordinator(key="g", node_id=1, host="", port=1, error_code=0, error_message=None)]
        ),
    ],
    ids=["empty", "another key", "no host"],
)
async def test_an_answer_without_what_was_asked_is_an_error(answer: FindCoordinatorResponse) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        broker.on[ApiKey.FIND_COORDINATOR] = lambda _: answer
        async with opened(broker.connect) as cluster:
            with pytest.raises(WireError, match=r"FindCoordinator names no coordinator of group 'g'"):
                await cluster.coordinator(GROUP, "g", cluster.deadline(60))


async def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators_module, "_MAX_CACHED", 2)
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        broker.on[ApiKey.FIND_COORDINATOR] = found
        async with opened(broker.connect) as cluster:
            for key in ("a", "b", "c", "b", "c", "a"):
                await cluster.coordinator(TRANSACTION, key, cluster.deadline(10))
        assert broker.count(FindCoordinatorRequest) == 4


def test_only_so_many_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators_module, "_MAX_FOLLOWED", 2)
    changes = list[tuple[str, bool]]()

    class Listener(Observer):
        def coordinator_changed(self, event: CoordinatorChanged) -> None:
            changes.append((event.key, event.is_lost))

    log, node = CoordinatorLog(Observers([Listener()]), lambda: 0.0), Node(1, Address("b", 9092))
    for key in ("a", "b", "b", "c"):
        log.follow(TRANSACTION, key)
        log.found(TRANSACTION, key, node)
        log.lost(TRANSACTION, key, node, ConnectionLost("gone"))
    changes.clear()
    for key in ("a", "b", "c"):
        log.found(TRANSACTION, key, Node(2, node.address))
    assert changes == [("b", False), ("c", False)]
    assert [len(kept) for kept in (log._own, log._found, log._lost)] == [2, 2, 0]
