"""The options of the JVM source: read, refused by name, and as Kafka's settings."""

from __future__ import annotations

import pickle

import pytest

from aiokafkawire import ConfigError, TopicPartition
from aiokafkawire.spark.offsets import EARLIEST, LATEST
from aiokafkawire.spark.options import Bound, ReadOptions, read_options, write_options
from aiokafkawire.spark.settings import read_settings

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
FLIGHTS = {**SERVERS, "subscribe": "flights"}
ZERO, ONE = TopicPartition("flights", 0), TopicPartition("flights", 1)


def batch(**options: str) -> ReadOptions:
    return read_options({**FLIGHTS, **options}, streaming=False)


def stream(**options: str) -> ReadOptions:
    return read_options({**FLIGHTS, **options}, streaming=True)


def test_a_batch_reads_everything_and_a_stream_what_comes() -> None:
    assert batch().start.everywhere == EARLIEST
    assert batch().end.everywhere == LATEST
    assert stream().start.everywhere == LATEST
    assert stream().fail_on_data_loss
    assert stream().max_trigger_delay == 900


def test_keys_are_known_in_any_case_as_spark_gives_them() -> None:
    assert batch(startingoffsets="EARLIEST").start.everywhere == EARLIEST
    assert stream(MAXOFFSETSPERTRIGGER="5").max_offsets_per_trigger == 5
    assert read_settings({"Kafka.Bootstrap.Servers": "here:1"}).bootstrap_servers == "here:1"


@pytest.mark.parametrize(("which", "bound"), [("starting", "start"), ("ending", "end")])
def test_one_time_goes_before_times_and_these_before_offsets(which: str, bound: str) -> None:
    said = {f"{which}Offsets": '{"flights":{"0":3}}'}

    def meant() -> Bound:
        found = getattr(batch(**said), bound)
        assert isinstance(found, Bound)
        return found

    assert meant() == Bound(offsets={ZERO: 3}, option=f"{which}Offsets")
    said[f"{which}OffsetsByTimestamp"] = '{"flights":{"0":1000}}'
    assert meant() == Bound(times={ZERO: 1000}, option=f"{which}OffsetsByTimestamp")
    said[f"{which}Timestamp"] = "5000"
    assert meant() == Bound(time=5000, option=f"{which}Timestamp")


def test_topics_are_named_matched_or_assigned() -> None:
    assert read_options({**SERVERS, "subscribe": "a, b,a"}, streaming=False).topics.names == ("a", "b")
    assert read_options({**SERVERS, "subscribePattern": "fl.*"}, streaming=False).topics.pattern == "fl.*"
    assert read_options({**SERVERS, "assign": '{"flights":[1,0]}'}, streaming=False).topics.assigned == (ZERO, ONE)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "kafka.bootstrap.servers is required"),
        (SERVERS, "exactly one of subscribe, subscribePattern, assign must be set, got none"),
        ({**FLIGHTS, "assign": "{}"}, "got subscribe and assign"),
        ({**SERVERS, "subscribe": " , "}, "must name a topic"),
        ({**SERVERS, "subscribe": "not/allowed"}, "subscribe: 'not/allowed' cannot be a topic's name"),
        ({**SERVERS, "subscribePattern": "("}, "must be a regular expression"),
        ({**SERVERS, "assign": '{"flights":0}'}, "assign must be JSON like"),
        ({**SERVERS, "assign": '{"flights":[-1]}'}, "a partition must be an integer from 0"),
        ({**FLIGHTS, "startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({**FLIGHTS, "valueFormatt": "json", "valueSchema": "a INT"}, "did you mean valueFormat?"),
        ({**FLIGHTS, "bootstrap.servers": "here:1"}, "did you mean kafka.bootstrap.servers?"),
        ({"kafka.bootstrap.server": "here:1"}, "'bootstrap.server': did you mean bootstrap.servers?"),
        ({**FLIGHTS, "colour": "red"}, "unknown option 'colour': known are subscribe"),
        ({**FLIGHTS, "startingOffsets": "{"}, "startingOffsets must be JSON"),
        ({**FLIGHTS, "startingOffsets": '{"flights":{"0":"1"}}'}, "startingOffsets must be like"),
        ({**FLIGHTS, "startingOffsets": '{"flights":{"0":-3}}'}, "flights-0 cannot be at -3"),
        ({**FLIGHTS, "startingOffsets": "latest"}, "a batch query cannot start at latest"),
        ({**FLIGHTS, "startingOffsets": '{"flights":{"0":-1}}'}, "a batch query cannot start at latest"),
        ({**FLIGHTS, "endingOffsets": "earliest"}, "a batch query cannot end at earliest"),
        (
            {**FLIGHTS, "startingOffsets": '{"flights":{"0":9}}', "endingOffsets": '{"flights":{"0":3}}'},
            "flights-0 starts at 9, after its end at 3",
        ),
        ({**FLIGHTS, "startingTimestamp": "yesterday"}, "startingTimestamp must be ms since the epoch"),
        ({**FLIGHTS, "startingOffsetsByTimestamp": '{"flights":{"0":-5}}'}, "needs ms since the epoch, got -5"),
        ({**FLIGHTS, "startingOffsetsByTimestampStrategy": "guess"}, "must be error or latest"),
        ({**FLIGHTS, "failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false"),
        ({**FLIGHTS, "minPartitions": "0"}, "minPartitions must be an integer of at least 1"),
        ({**FLIGHTS, "maxTriggerDelay": "soon"}, "maxTriggerDelay must be a duration"),
        ({**FLIGHTS, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "must not be more than"),
        ({**FLIGHTS, "kafka.auto.offset.reset": "earliest"}, "the option startingOffsets says where"),
        ({**FLIGHTS, "kafka.key.deserializer": "x"}, "keys are read as bytes"),
        ({**FLIGHTS, "kafka.enable.auto.commit": "true"}, "the source commits nothing"),
        ({**FLIGHTS, "kafka.fetch.max.byte": "1"}, "unknown property 'fetch.max.byte': did you mean fetch.max.bytes?"),
        ({**FLIGHTS, "kafka.flying": "1", "kafka.colour": "1"}, "unknown property 'flying'"),
        ({**FLIGHTS, "kafka.fetch.max.bytes": "many"}, "kafka.*: fetch.max.bytes must be a whole number"),
        ({**FLIGHTS, "kafka.check.crcs": "2"}, "kafka.*: check.crcs must be true or false"),
    ],
)
def test_what_cannot_be_is_one_clear_error(options: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_options(options, streaming=False)
    assert told in str(raised.value)


def test_a_stream_has_no_end() -> None:
    with pytest.raises(ConfigError, match="endingOffsets: a streaming query has no end"):
        stream(endingOffsets="latest")


def test_settings_of_kafka_are_passed_on_by_what_they_are() -> None:
    given = {
        "kafka.client.id": "spark",
        "kafka.fetch.max.bytes": "1000",
        "kafka.check.crcs": "False",
        "kafka.isolation.level": "read_committed",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.max.poll.records": "5",
        "kafka.client.dns.lookup": "use_all_dns_ips",
        "kafka.group.id": "mine",
    }
    settings = stream(**given).settings
    dns = {"client_dns_lookup": "use_all_dns_ips"}
    assert settings.client == {"client_id": "spark", "security_protocol": "PLAINTEXT"} | dns
    assert settings.consumer == {"fetch_max_bytes": 1000, "check_crcs": False, "isolation_level": "read_committed"}


def test_what_only_javas_client_needs_is_taken_and_checked() -> None:
    idle = {"groupIdPrefix": "mine", "fetchOffset.numRetries": "5", "fetchOffset.retryIntervalMs": "0"}
    assert stream(**idle) == stream()
    assert stream(**{"kafkaConsumer.pollTimeoutMs": "500"}).poll_timeout == 0.5
    with pytest.raises(ConfigError, match=r"fetchOffset\.numRetries must be an integer"):
        stream(**{"fetchOffset.numRetries": "many"})


def test_security_is_said_as_for_java_and_shown_nowhere() -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="of-mine";'
    given = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": jaas,
        "kafka.ssl.truststore.location": "/etc/ssl/ca.pem",
        "kafka.ssl.truststore.type": "PEM",
    }
    for options in (stream(**given), write_options({**SERVERS, **given})):
        assert options.settings.client == {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": "me",
            "sasl_password": "of-mine",
            "ssl_ca_location": "/etc/ssl/ca.pem",
        }
        assert "of-mine" not in repr(options)
        assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(ConfigError) as raised:
        stream(**{**given, "kafka.sasl.jaas.config": f"{jaas} x"})
    assert "of-mine" not in str(raised.value)


def test_a_sink_takes_producer_settings_and_refuses_what_it_does_itself() -> None:
    options = write_options({**SERVERS, "topic": "flights", "kafka.acks": "1", "kafka.compression.type": "lz4"})
    assert options.settings.producer == {"acks": 1, "compression_type": "lz4"}
    assert options.topic == "flights"
    assert write_options({**SERVERS, "checkpointLocation": "here", "queryName": "q"}).topic is None
    for key in ("kafka.key.serializer", "kafka.value.serializer", "kafka.transactional.id"):
        with pytest.raises(ConfigError, match=f"{key} is not supported"):
            write_options({**SERVERS, key: "x"})
    with pytest.raises(ConfigError, match="unknown option 'subscribe'"):
        write_options({**SERVERS, "subscribe": "flights"})


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("30s", 30), ("15m", 900), ("2 min", 120), ("1h", 3600), ("250", 0.25)]
)
def test_times_have_units(text: str, seconds: float) -> None:
    assert stream(maxTriggerDelay=text).max_trigger_delay == seconds
