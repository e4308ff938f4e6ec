"""Opening a connection: reaching the broker, agreeing on versions, and what is said when that fails."""

from typing import Any

import anyio
import pytest
from support.connecting import connected, eventually, running_tasks
from support.patience import SOON
from support.scripted_broker import SPOKEN, Asked, ScriptedBroker, api_versions

from aiokafkawire.errors import ConnectionLost, ErrorCode, UnsupportedVersionAnswered
from aiokafkawire.network.connection import Connection
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import FinalizedFeatureKey
from aiokafkawire.protocol.schema import Response, Versions

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"socket_connection_setup_timeout_ms": 50}, "b:9092 did not answer ApiVersions "),
        ({"request_timeout_ms": 50}, "no answer from b:9092 to ApiVersions within 0.05 s "),
    ],
)
async def test_a_peer_silent_from_the_start_is_given_up(options: dict[str, Any], told: str) -> None:
    before = running_tasks()
    async with ScriptedBroker(spoken=None) as broker:
        with pytest.raises(ConnectionLost) as caught, anyio.fail_after(SOON):
            async with connected(broker.connect, **options):
                raise AssertionError("opened")
        assert str(caught.value).startswith(told)
        assert "(is it a Kafka listener?)" in str(caught.value)
        await broker.peers[0].hung_up()
    assert running_tasks() <= before


async def test_a_connector_that_hangs_is_given_up() -> None:
    async def hang(host: str, port: int) -> Any:
        await anyio.sleep_forever()

    with pytest.raises(ConnectionLost, match=r"^b:9092 did not accept a connection within 0\.05 s$"):
        async with connected(hang, socket_connection_setup_timeout_ms=50):
            raise AssertionError("opened")


async def test_opening_that_is_cancelled_closes_the_stream() -> None:
    async with ScriptedBroker(spoken=None) as broker:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_open_and_leave, broker)
                await eventually(lambda: bool(broker.peers))
                await broker.peers[0].next()
                scope.cancel()
        await broker.peers[0].hung_up()


async def _open_and_leave(broker: ScriptedBroker) -> None:
    async with connected(broker.connect):
        raise AssertionError("opened")


def versions_of(connection: Connection) -> dict[int, Versions]:
    return dict(connection.versions)


async def test_the_versions_are_asked_for_once_in_the_newest_form() -> None:
    async with ScriptedBroker() as broker:
        asked: list[Asked] = []

        def answer(one: Asked) -> Response:
            asked.append(one)
            return api_versions(SPOKEN)

        broker.on[ApiKey.API_VERSIONS] = answer
        async with connected(broker.connect) as connection:
            assert [one.version for one in asked] == [5]
            assert asked[0].request.client_software_name == "aiokafkawire"
            assert versions_of(connection) == SPOKEN


@pytest.mark.parametrize(
    ("listed", "second"), [({18: Versions(0, 2)}, 2), ({18: Versions(0, 99)}, 5), ({}, 0), ({3: Versions(0, 9)}, 0)]
)
async def test_a_broker_that_lacks_our_version_of_the_question_is_asked_again(
    listed: dict[int, Versions], second: int
) -> None:
    async with ScriptedBroker(spoken=None) as broker:

        async def serve() -> None:
            await eventually(lambda: bool(broker.peers))
            first = await broker.peers[0].next()
            await first.answer(api_versions(listed, ErrorCode.UNSUPPORTED_VERSION), version=0)
            again = await broker.peers[0].next()
            assert again.version == second
            await again.answer(api_versions({3: Versions(0, 7)}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            async with connected(broker.connect) as connection:
                assert versions_of(connection) == {3: Versions(0, 7)}


async def test_the_levels_of_finalised_features_are_kept_by_name() -> None:
    async with ScriptedBroker() as broker:
        answer = api_versions(SPOKEN)
        answer.finalized_features = [
            FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=1),
            FinalizedFeatureKey(name="metadata.version", max_version_level=27, min_version_level=7),
        ]
        broker.on[ApiKey.API_VERSIONS] = lambda _: answer
        async with connected(broker.connect) as connection:
            assert connection.features == {"transaction.version": 2, "metadata.version": 27}


async def test_a_broker_from_before_features_has_none() -> None:
    async with ScriptedBroker(spoken=None) as broker:

        async def serve() -> None:
            await eventually(lambda: bool(broker.peers))
            first = await broker.peers[0].next()
            await first.answer(api_versions({18: Versions(0, 2)}, ErrorCode.UNSUPPORTED_VERSION), version=0)
            await (await broker.peers[0].next()).answer(api_versions({3: Versions(0, 7)}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            async with connected(broker.connect) as connection:
                assert connection.features == {}


async def test_a_broker_that_refuses_every_version_of_the_question_is_told() -> None:
    async with ScriptedBroker(spoken=None) as broker:

        async def serve() -> None:
            await eventually(lambda: bool(broker.peers))
            for _ in range(2):
                one = await broker.peers[0].next()
                await one.answer(api_versions({}, ErrorCode.UNSUPPORTED_VERSION), version=0)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            with pytest.raises(UnsupportedVersionAnswered, match="b:9092 to ApiVersions"):
                async with connected(broker.connect):
                    raise AssertionError("opened")
        await broker.peers[0].hung_up()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(111, "refused"), r"cannot connect to b:9092: \[Errno 111\] refused"),
        (TimeoutError(110, "timed out"), r"cannot connect to b:9092: \[Errno 110\] timed out"),
        (UnicodeError("label too long"), "cannot connect to b:9092: label too long"),
        (anyio.BrokenResourceError(), r"cannot connect to b:9092: BrokenResourceError\(\)"),
    ],
)
async def test_a_connector_that_fails_is_told_with_its_reason(error: Exception, told: str) -> None:
    async def fail(host: str, port: int) -> Any:
        raise error

    with pytest.raises(ConnectionLost, match=f"^{told}$") as caught:
        async with connected(fail):
            raise AssertionError("opened")
    assert caught.value.__cause__ is error


async def test_a_name_with_several_addresses_tells_what_each_of_them_said() -> None:
    async def fail(host: str, port: int) -> Any:
        causes = [OSError("::1 refused"), OSError("127.0.0.1 refused")]
        raise OSError("All connection attempts failed") from ExceptionGroup("multiple", causes)

    with pytest.raises(ConnectionLost, match=r"^cannot connect to \[::1\]:9092: ::1 refused; 127\.0\.0\.1 refused$"):
        async with connected(fail, host="::1"):
            raise AssertionError("opened")
