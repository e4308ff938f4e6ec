"""The configuration dict of confluent-kafka becomes arguments of this client, or is refused with a sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from confluent_kafka import Producer as ConfluentProducer
from support.foreign_settings import ForeignSetting, foreign_settings
from support.rows import every_row

from aiokafkawire import Client, from_confluent
from aiokafkawire.config.confluent import KEPT_DEFAULTS
from aiokafkawire.config.properties import KafkaSettings, settings_from
from aiokafkawire.config.property_names import CONFLUENT_CALLBACKS
from aiokafkawire.errors import ConfigError
from aiokafkawire.testing import Broker
from aiokafkawire.types import OAuthBearerToken

BOOTSTRAP = {"bootstrap.servers": "a:9092,b:9092"}


@pytest.fixture
def own_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("aiokafkawire")
    before = list(logger.handlers)
    yield logger
    logger.handlers[:] = before


class Lines(logging.Handler):
    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def options(config: dict[str, Any]) -> dict[str, Any]:
    """What the settings add to those that every dict has."""
    settings, kept = from_confluent(config), settings_from(KEPT_DEFAULTS)
    given = {**settings.client, **settings.producer, **settings.consumer}
    always = {**kept.client, **kept.producer, **kept.consumer}
    return {name: value for name, value in given.items() if name not in always}


def test_a_configuration_of_a_whole_service_becomes_the_arguments_of_client_producer_and_consumer() -> None:
    settings = from_confluent(
        {
            "bootstrap.servers": "a:9092,b:9092",
            "client.id": "billing",
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "u",
            "sasl.password": "p",
            "ssl.ca.location": "probe",
            "linger.ms": 5.5,
            "compression.type": "lz4",
            "group.id": "billing",
            "enable.auto.commit": False,
            "queue.buffering.max.messages": 100_000,
            "statistics.interval.ms": 60_000,
            "group.instance.id": None,
            "default.topic.config": {"auto.offset.reset": "smallest", "acks": -1},
        }
    )
    assert isinstance(settings, KafkaSettings)
    assert settings.bootstrap_servers == "a:9092,b:9092"
    assert settings.client == {
        "client_id": "billing",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "u",
        "sasl_password": "p",
    }
    expected = {"linger_ms": 6, "compression_type": "lz4", "acks": -1, "partitioner": "consistent_random"}
    assert settings.producer == expected
    assert settings.consumer == {
        "group_id": "billing",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
    }
    assert settings.ignored == ("queue.buffering.max.messages", "statistics.interval.ms")


@every_row("setting", foreign_settings("librdkafka"))
def test_the_defaults_of_librdkafka_are_taken(setting: ForeignSetting) -> None:
    login = {"security.protocol": "sasl_plaintext"} if setting.name.startswith("sasl.mechanism") else {}
    from_confluent({**login, setting.name: setting.default or None})


def test_connections_without_a_limit_of_idleness_stay_open() -> None:
    assert options({"connections.max.idle.ms": 0}) == {"connections_max_idle_ms": 2**31 - 1}


def test_what_the_dict_says_wins_over_the_defaults_of_librdkafka() -> None:
    settings = from_confluent({**BOOTSTRAP, "partitioner": "murmur2", "isolation.level": "read_uncommitted"})
    assert settings.producer["partitioner"] == "murmur2"
    assert settings.consumer["isolation_level"] == "read_uncommitted"


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), (False, False), ("1", True), ("f", False), (0, False), ("True", True)]
)
def test_booleans_have_the_words_of_librdkafka(value: object, expected: bool) -> None:
    assert options({"enable.auto.commit": value}) == {"enable_auto_commit": expected}


@pytest.mark.parametrize("name", CONFLUENT_CALLBACKS)
def test_a_callback_is_refused_with_what_there_is_instead(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_confluent({**BOOTSTRAP, name: lambda *_: None})
    assert str(caught.value) == f"{name} {CONFLUENT_CALLBACKS[name]}"
    assert options({**BOOTSTRAP, name: None}) == {}


def test_oauth_cb_gives_the_tokens() -> None:
    def fetch(config: str) -> tuple[str, float]:
        return f"token for {config}", 1_795_000_000.5

    given = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.config": "scope=a",
    }
    provide = from_confluent({**given, "oauth_cb": fetch}).client["sasl_oauthbearer_token"]
    assert callable(provide)
    assert provide() == OAuthBearerToken("token for scope=a", 1_795_000_000_500, {})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("bootstrap.servers=a:9092", "config must be a mapping, as confluent-kafka takes it, not str"),
        ({"default.topic.config": "acks=1"}, "default.topic.config must be a mapping, not str"),
        ({"logger": "app"}, "logger must be a logging.Logger, not str"),
        ({"linger.mss": 5}, "unknown property 'linger.mss': did you mean linger.ms?"),
        ({5: 5}, "the names of properties are text, not int"),
        ({"enable.auto.commit": "maybe"}, "enable.auto.commit must be true or false, got 'maybe'"),
    ],
)
def test_what_is_wrong_is_one_clear_error(config: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_confluent(config)
    assert str(caught.value) == message


def test_the_log_goes_to_the_handlers_of_the_given_logger_once(own_logger: logging.Logger) -> None:
    app, alone, shared = logging.getLogger("an-app"), Lines(), Lines(logging.ERROR)
    app.handlers[:] = [alone]
    app.propagate = True
    logging.getLogger().addHandler(shared)
    try:
        from_confluent({**BOOTSTRAP, "logger": app})
        from_confluent({**BOOTSTRAP, "logger": app})
        logging.getLogger("aiokafkawire.cluster").warning("a broker is away")
        logging.getLogger("aiokafkawire.cluster").error("all brokers are away")
        assert alone.lines == ["a broker is away", "all brokers are away"]
        assert shared.lines == ["all brokers are away"]
        app.setLevel(logging.ERROR)
        logging.getLogger("aiokafkawire").warning("again")
        assert alone.lines[2:] == []
    finally:
        logging.getLogger().removeHandler(shared)
        app.handlers.clear()
        app.setLevel(logging.NOTSET)


@pytest.mark.parametrize("name", ["aiokafkawire", "aiokafkawire.cluster", ""])
def test_a_logger_that_gets_the_lines_anyway_gets_them_once(name: str, own_logger: logging.Logger) -> None:
    lines, logger = Lines(), logging.getLogger(name)
    logger.addHandler(lines)
    try:
        from_confluent({"logger": logger})
        logging.getLogger("aiokafkawire.cluster").warning("a broker is away")
        assert lines.lines == ["a broker is away"]
    finally:
        logger.removeHandler(lines)


@pytest.mark.anyio
async def test_keys_stay_in_the_partitions_where_confluent_kafka_has_put_them() -> None:
    keys = [f"key-{number}".encode() for number in range(40)]
    async with Broker() as broker:
        config = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0}
        settings = from_confluent(config)
        async with Client(settings.bootstrap_servers, **settings.client) as kafka:
            await kafka.admin.create_topics({"orders": 7})
            async with kafka.producer(**settings.producer) as producer:
                sent = [(await producer.send("orders", b"v", key=key)).partition for key in keys]
        theirs: dict[Any, Any] = {}

        def produce() -> None:
            producer = ConfluentProducer(config)
            for key in keys:
                producer.produce(
                    "orders", b"v", key=key, on_delivery=lambda _, m: theirs.update({m.key(): m.partition()})
                )
            producer.flush()

        await anyio.to_thread.run_sync(produce)
    assert [theirs[key] for key in keys] == sent
    assert len(set(sent)) > 1
