"""Settings: their names, types and bounds, and how addresses are written."""

import re
from collections.abc import Sequence
from typing import Any, get_args, get_type_hints

import attrs
import pytest
from support.foreign_settings import PAGE
from support.own_settings import CONFIGS
from support.rows import every_row

from aiokafkawire import Client
from aiokafkawire.config import (
    ClientConfig,
    ClientOptions,
    ConsumerConfig,
    ConsumerOptions,
    ProducerConfig,
    ProducerOptions,
    duration_ms,
    make_config,
    parse_servers,
)
from aiokafkawire.config.properties import settings_from
from aiokafkawire.errors import ConfigError
from aiokafkawire.group.assignors import RangeAssignor
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

PAIRS = [(ClientOptions, ClientConfig), (ProducerOptions, ProducerConfig), (ConsumerOptions, ConsumerConfig)]
FIELDS = [(cls, field.name) for _, cls in PAIRS for field in attrs.fields(cls)]
SECRETS = [field.name for field in attrs.fields(ClientConfig) if not field.repr]
IDS = [f"{cls.__name__}.{name}" for cls, name in FIELDS]


@pytest.mark.parametrize(("options", "config"), PAIRS, ids=lambda cls: cls.__name__)
def test_keyword_arguments_are_those_of_the_config_in_names_order_and_types(options: Any, config: Any) -> None:
    declared = {field.name: get_type_hints(config)[field.name] for field in attrs.fields(config)}
    assert list(get_type_hints(options).items()) == list(declared.items())
    assert options.__total__ is False


@pytest.mark.parametrize("config", [config for _, config in PAIRS])
def test_a_config_is_frozen_and_its_defaults_are_allowed(config: Any) -> None:
    made = make_config(config, {})
    assert make_config(config, attrs.asdict(made)) == made
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(made, attrs.fields(config)[0].name, None)


@every_row(("config", "name"), FIELDS)
def test_every_setting_refuses_a_value_of_another_kind(config: Any, name: str) -> None:
    shown = r"a tuple \(not shown\)" if name in SECRETS else r"\(\)"
    with pytest.raises(ConfigError, match=rf"^{name} must be .*, got {shown}$"):
        make_config(config, {name: ()})


@pytest.mark.parametrize("owner", CONFIGS)
def test_an_error_names_the_setting_that_the_page_of_settings_explains(owner: str) -> None:
    headings = set(re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE))
    for name in attrs.fields_dict(CONFIGS[owner]):
        with pytest.raises(ConfigError) as raised:
            make_config(CONFIGS[owner], {name: object()})
        assert raised.value.setting == name
        assert name in headings


def test_an_error_of_no_setting_names_none() -> None:
    with pytest.raises(ConfigError) as raised:
        make_config(ProducerConfig, {"linger": 5})
    assert raised.value.setting is None


CONTRADICTIONS: list[tuple[dict[str, object], str]] = [
    ({"transactional_id": "t", "acks": 1}, "acks"),
    ({"transactional_id": "t", "enable_idempotence": False}, "enable_idempotence"),
    ({"enable_idempotence": True, "max_in_flight_requests_per_connection": 6}, "max_in_flight_requests_per_connection"),
]


@pytest.mark.parametrize(("options", "named"), CONTRADICTIONS)
def test_an_error_of_settings_that_contradict_one_another_names_one(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make_config(ProducerConfig, options)
    assert raised.value.setting == named


def test_an_error_of_a_property_names_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"^linger\.ms must be") as raised:
        settings_from("linger.ms=-1")
    assert raised.value.setting == "linger_ms"


WHOLE = [(cls, name) for cls, name in FIELDS if get_type_hints(cls)[name] is int]


@every_row(("config", "name"), WHOLE)
@pytest.mark.parametrize("value", [-1, 2**31, 1.5, "5", True, None])
def test_a_number_has_bounds(config: Any, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} must be a whole number from \d+ to 2147483647, got "):
        make_config(config, {name: value})
    if name != "linger_ms":  # which has to be less than delivery_timeout_ms
        assert getattr(make_config(config, {name: 2**31 - 1}), name) == 2**31 - 1


def test_no_batch_lingers_until_its_records_have_failed() -> None:
    with pytest.raises(ConfigError, match="must be less than delivery_timeout_ms, got 5000 and 5000") as raised:
        ProducerConfig(linger_ms=5_000, delivery_timeout_ms=5_000)
    assert raised.value.setting == "linger_ms"
    with pytest.raises(ConfigError, match=r"^linger\.ms must be less than delivery_timeout_ms"):
        settings_from("linger.ms=120000")
    assert ProducerConfig(linger_ms=119_999).linger_ms == 119_999


CHOICES: list[tuple[Any, str, Sequence[object], Sequence[object]]] = [
    (ProducerConfig, "acks", ["all", -1, 0, 1], ["ALL", 2, True, False, "1"]),
    (ProducerConfig, "compression_type", ["none", "gzip", "snappy", "lz4", "zstd"], ["brotli", "LZ4", 0]),
    (ConsumerConfig, "isolation_level", ["read_uncommitted", "read_committed"], ["committed", 1]),
    (ConsumerConfig, "check_crcs", [True, False], [1, 0, "true"]),
    (ConsumerConfig, "enable_auto_commit", [True, False], [1, 0, "true"]),
    (ConsumerConfig, "heartbeat_thread", [True, False], [1, 0, "true"]),
    (
        ClientConfig,
        "client_dns_lookup",
        ["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"],
        ["default", True],
    ),
    (ClientConfig, "socket_keepalive_enable", [True, False], [1, "false"]),
    (ClientConfig, "metadata_recovery_strategy", ["rebootstrap", "none"], ["REBOOTSTRAP", None]),
    (ClientConfig, "allow_auto_create_topics", [True, False], [1, "false"]),
]


@pytest.mark.parametrize(("config", "name", "good", "bad"), CHOICES, ids=[name for _, name, _, _ in CHOICES])
def test_a_choice_takes_what_it_lists(config: Any, name: str, good: Sequence[object], bad: Sequence[object]) -> None:
    for value in good:
        assert getattr(make_config(config, {name: value}), name) == value
    for value in bad:
        with pytest.raises(ConfigError, match=rf"^{name} must be one of .*, got {value!r}$"):
            make_config(config, {name: value})


@pytest.mark.parametrize(
    ("reset", "ms"),
    [
        ("by_duration:P7DT12H", 648_000_000),
        ("by_duration:PT1M", 60_000),
        ("by_duration:PT0.5S", 500),
        ("by_duration:P0D", 0),
        *[(reset, None) for reset in ("earliest", "latest", "none")],
    ],
)
def test_a_reset_may_be_a_duration(reset: str, ms: int | None) -> None:
    assert make_config(ConsumerConfig, {"auto_offset_reset": reset}).auto_offset_reset == reset
    assert duration_ms(reset) == ms


@pytest.mark.parametrize(
    "reset", ["first", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:P1Y", "by_duration:-PT1S", "P1D"]
)
def test_another_reset_is_refused(reset: str) -> None:
    with pytest.raises(ConfigError, match=r"^auto_offset_reset must be 'earliest', 'latest', 'none' or 'by_duration:'"):
        make_config(ConsumerConfig, {"auto_offset_reset": reset})


@pytest.mark.parametrize("given", [[], "range", ["ranged"], ["range", "range"], [RangeAssignor()]])
def test_strategies_are_names_of_assignors(given: object) -> None:
    with pytest.raises(ConfigError, match=r"^partition_assignment_strategy "):
        make_config(ConsumerConfig, {"partition_assignment_strategy": given})
    assert make_config(ConsumerConfig, {"partition_assignment_strategy": ["sticky"]}).partition_assignment_strategy == (
        "sticky",
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"group_id": ""}, "group_id must not be empty"),
        ({"group_instance_id": "a"}, "group_instance_id must not be empty, and needs a group_id"),
        ({"group_id": "g", "group_instance_id": ""}, "group_instance_id must not be empty, and needs a group_id"),
        ({"group_remote_assignor": ""}, "group_remote_assignor must not be empty; leave it out, or set it to None"),
        ({"heartbeat_interval_ms": 45_000}, r"heartbeat_interval_ms must be less than session_timeout_ms \(45000\)"),
    ],
)
def test_a_membership_makes_sense(options: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Client("a:1").consumer(**options)


def test_a_heartbeat_thread_needs_tcp() -> None:
    with pytest.raises(ConfigError, match="heartbeat_thread opens its own TCP connections"):
        Client("a:1", connector=Broker(port=None).connect).consumer(group_id="g", heartbeat_thread=True)


def test_acks_all_is_minus_one_on_the_wire() -> None:
    assert [ProducerConfig(acks=acks).required_acks for acks in ("all", -1, 0, 1)] == [-1, -1, 0, 1]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("client.id", "did you mean client_id?"),
        ("clientid", "did you mean client_id?"),
        ("request.timeout.ms", "did you mean request_timeout_ms?"),
        ("metadata_max_age", "did you mean metadata_max_age_ms?"),
        ("zzz", "known are advertised_listeners_map, allow_auto_create_topics, "),
    ],
)
def test_an_unknown_name_gets_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_config(ClientConfig, {name: 1})
    assert str(caught.value).startswith(f"unknown setting {name!r}: {hint}")


# --- addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("localhost", [("localhost", 9092)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "b"], [("a", 1), ("b", 9092)]),
        (("a:65535",), [("a", 65535)]),
        ("10.0.0.1:19092", [("10.0.0.1", 19092)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("[fe80::1%eth0]:9092", [("fe80::1%eth0", 9092)]),
        ("broker_1.example.org:9092", [("broker_1.example.org", 9092)]),
    ],
)
def test_servers_are_read(servers: Any, addresses: list[tuple[str, int]]) -> None:
    assert parse_servers(servers) == tuple(Address(*one) for one in addresses)


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ("", "bootstrap servers are needed"),
        (" , ", "bootstrap servers are needed"),
        ([], "bootstrap servers are needed"),
        ([""], "bootstrap servers are needed"),
        ("a:0", "the port must be a number from 1 to 65535, got '0'"),
        ("a:65536", "the port must be a number from 1 to 65535, got '65536'"),
        pytest.param("a:" + "9" * 5000, "the port must be a number from 1 to 65535", id="a port of 5000 digits"),
        ("a:", "the port must be a number from 1 to 65535, got ''"),
        ("a:kafka", "the port must be a number from 1 to 65535, got 'kafka'"),
        ("a:-1", "the port must be a number from 1 to 65535, got '-1'"),
        (":9092", "the host is missing"),
        ("[]:9092", "the host is missing"),
        ("::1", "write an IPv6 address in brackets, such as '[::1]:9092'"),
        ("fe80::1:9092", "write an IPv6 address in brackets"),
        ("http://a:9092", "give host:port, without a scheme or a path"),
        ("PLAINTEXT://a:9092", "give host:port, without a scheme or a path"),
        ("a b:9092", "give host:port, without a scheme or a path"),
        (["good:1", "bad:x"], "bootstrap server 'bad:x': "),
        ("me:secret@a:9092", "without a name and a password (not shown)"),
        ("http://me:secret@a:9092", "without a name and a password (not shown)"),
        (None, "are a string or a sequence of strings, got None"),
        (9092, "are a string or a sequence of strings, got 9092"),
        (["a:1", 9092], "are a string or a sequence of strings, got "),
        (b"a:1", "are a string or a sequence of strings, got b'a:1'"),
        ([("a", 1)], "are a string or a sequence of strings, got "),
    ],
)
def test_servers_that_are_no_addresses_are_refused(servers: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_servers(servers)
    assert told in str(caught.value)
    assert "me:secret" not in str(caught.value)


def test_an_address_is_written_as_it_is_read() -> None:
    assert [str(one) for one in parse_servers("a:1,[::1]:2")] == ["a:1", "[::1]:2"]


def test_a_literal_type_lists_what_its_setting_takes() -> None:
    for config, name, good, _ in CHOICES:
        hint = get_type_hints(config)[name]
        assert hint is bool or set(get_args(hint)) == set(good)


@every_row(("cls", "name"), FIELDS)
def test_whatever_a_setting_is_given_is_taken_or_refused_in_words(cls: Any, name: str) -> None:
    strange: list[Any] = [None, "x", "\ud800", "", "x" * 40_000, 5, -1, 1.5, float("nan"), 2**80, True, b"x", object()]
    strange += [[1], [None], ("a",), {"a": 5}, {5: 5}, len]
    refused = 0
    for value in strange:
        try:
            make_config(cls, {name: value})
        except ConfigError as error:
            refused += 1
            told = str(error)
            assert len(told) < 1_000, told
    assert refused
    if name in ("group_id", "group_instance_id", "transactional_id", "client_id"):
        for value in ("\ud800", "x" * 40_000):
            with pytest.raises(ConfigError, match=name):
                make_config(cls, {name: value})


@pytest.mark.parametrize("reset", ["by_duration:P" + "9" * 400 + "D", "by_duration:PT" + "9" * 400 + "S"])
def test_a_duration_beyond_all_times_is_the_beginning(reset: str) -> None:
    assert make_config(ConsumerConfig, {"auto_offset_reset": reset})
    assert (duration_ms(reset) or 0) > 10**15
