"""The fixtures that users get."""

from __future__ import annotations

import anyio
import pytest

from aiokafkawire import Client
from aiokafkawire.testing.background import BackgroundBroker

pytest_plugins = ["pytester"]


def test_a_test_without_a_loop_talks_to_a_broker(kafka_broker: BackgroundBroker) -> None:
    kafka_broker.create_topic("orders", partitions=6)

    async def topics() -> tuple[str, ...]:
        async with Client(kafka_broker.bootstrap) as client:
            return await client.admin.list_topics()

    assert anyio.run(topics) == ("orders",)


@pytest.mark.anyio
async def test_so_does_one_with_a_loop(kafka_cluster: BackgroundBroker) -> None:
    assert len(kafka_cluster.bootstrap.split(",")) == 3
    async with Client(kafka_cluster.bootstrap) as client, client.producer() as producer:
        await client.admin.create_topics({"orders": 3})
        assert (await producer.send("orders", b"value")).offset == 0


def test_a_broker_takes_orders_from_another_thread(kafka_cluster: BackgroundBroker) -> None:
    kafka_cluster.create_topic("orders")
    first = kafka_cluster.do(lambda broker: broker.leader("orders"))
    kafka_cluster.do(lambda broker: broker.stop_node(first))
    assert kafka_cluster.do(lambda broker: broker.leader("orders")) != first


def test_what_is_not_open_says_so() -> None:
    broker = BackgroundBroker()
    with pytest.raises(RuntimeError, match="this broker is not open: use it as a context manager"):
        broker.create_topic("orders")


def test_a_bug_in_the_broker_fails_the_test() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), BackgroundBroker() as broker:
        broker.do(lambda one: one.faults.append(ZeroDivisionError()))


def test_the_scope_is_the_users_choice(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nkafka_broker_scope = session\nkafka_cluster_nodes = 2\n")
    pytester.makepyfile(
        """
        seen = []

        def test_first(kafka_broker, kafka_cluster):
            seen.append(kafka_broker.bootstrap)
            assert len(kafka_cluster.bootstrap.split(",")) == 2

        def test_second(kafka_broker):
            assert seen == [kafka_broker.bootstrap]
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "told"),
    [
        (
            "kafka_broker_scope = bogus",
            "ERROR: kafka_broker_scope = bogus: it must be one of function, class, module, package, session",
        ),
        ("kafka_cluster_nodes = many", "ERROR: kafka_cluster_nodes = many: it must be a number from 1 to 100"),
        ("kafka_cluster_nodes = 0", "ERROR: kafka_cluster_nodes = 0: it must be a number from 1 to 100"),
    ],
)
def test_an_option_that_cannot_be_is_one_error(pytester: pytest.Pytester, option: str, told: str) -> None:
    pytester.makeini(f"[pytest]\n{option}\n")
    pytester.makepyfile("def test_with(kafka_broker): pass\ndef test_without(): pass\n")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in (*done.outlines, *done.errlines) if line] == [told]


def test_topics_have_settings() -> None:
    with BackgroundBroker(port=None) as broker:
        broker.create_topic("orders", configs={"cleanup.policy": "compact"})
        broker.do(lambda one: one.compact("orders"))
        broker.create_topic("payments")
        with pytest.raises(ValueError, match=r"cleanup\.policy"):
            broker.do(lambda one: one.compact("payments"))


def test_one_that_is_open_is_not_opened_again_and_stays() -> None:
    with BackgroundBroker(port=None) as broker:
        with pytest.raises(RuntimeError, match="this broker is open already"):
            broker.__enter__()
        broker.create_topic("orders")
    with broker:  # but after its end
        pass
