"""Every setting that Java's clients and librdkafka document is applied, without effect, or refused; none is unknown."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import pytest
from support.foreign_settings import LISTS, PAGE, ForeignSetting, foreign_settings, outcome_of, page
from support.log_watch import watched_log
from support.rows import every_row

from aiokafkawire.config import ShareConsumerConfig, make_config
from aiokafkawire.config.environment import properties_from_environment
from aiokafkawire.config.properties import KafkaSettings, settings_from
from aiokafkawire.config.property_names import (
    ALIASES,
    LONGS,
    MEANINGS,
    REFUSED,
    SPECIAL,
    WITHOUT_CONSUMER,
    WITHOUT_EFFECT,
)
from aiokafkawire.errors import ConfigError
from aiokafkawire.records.compression import Codec, check_level

LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
OIDC = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://a/token",
    "sasl.oauthbearer.client.id": "c",
    "sasl.oauthbearer.client.secret": "s",
}
SIGNED = {**OIDC, "sasl.oauthbearer.assertion.private.key.file": "k"}
KEYED = {"ssl.certificate.pem": "c", "ssl.key.pem": "k"}
MSK = "software.amazon.msk.auth.iam"
MSK_OAUTH = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
    "sasl.login.callback.handler.class": f"{MSK}.IAMOAuthBearerLoginCallbackHandler",
    "sasl.client.callback.handler.class": f"{MSK}.IAMOAuthBearerLoginCallbackHandler",
}
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
JWT_RETRIEVER = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"

# The values that a type does not tell, and the settings beside which each can stand.
VALUES: dict[str, Any] = {
    "acks": "1",
    "auto.offset.reset": "earliest",
    "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
    "compression.codec": "lz4",
    "compression.type": "lz4",
    "group.protocol": "CONSUMER",
    "interceptor.classes": "test_foreign_settings:Interceptor",
    "isolation.level": "read_committed",
    "metadata.recovery.strategy": "NONE",
    "oauth_cb": lambda config: ("token", 1.0),
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor",
    "partitioner": "murmur2",
    "partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
    "request.required.acks": "1",
    "sasl.jaas.config": 'x.PlainLoginModule required username="v" password="q";',
    "sasl.login.callback.handler.class": HANDLER,
    "sasl.login.refresh.window.factor": "0.75",
    "sasl.login.refresh.window.jitter": "0.25",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.mechanisms": "SCRAM-SHA-256",
    "sasl.oauthbearer.config": "query=resource=a",
    "sasl.oauthbearer.extensions": "a=b",
    "sasl.oauthbearer.assertion.algorithm": "es256",
    "sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
    "sasl.oauthbearer.jwt.retriever.class": JWT_RETRIEVER,
    "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://b/token",
    "security.protocol": "sasl_plaintext",
    "share.acknowledgement.mode": "explicit",
    "share.acquire.mode": "RECORD_LIMIT",
    "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "ssl.enabled.protocols": "TLSv1.3",
    "ssl.endpoint.identification.algorithm": "none",
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
}
BESIDE: dict[str, dict[str, str]] = {
    "compression.gzip.level": {"compression.type": "gzip"},
    "compression.level": {"compression.type": "gzip"},
    "compression.lz4.level": {"compression.type": "lz4"},
    "compression.zstd.level": {"compression.type": "zstd"},
    "sasl.login.callback.handler.class": OIDC,
    "sasl.oauthbearer.assertion.claim.iss": SIGNED,
    "sasl.oauthbearer.config": {"sasl.oauthbearer.metadata.authentication.type": "azure_imds"},
    "sasl.oauthbearer.grant.type": SIGNED,
    "sasl.oauthbearer.jwt.retriever.class": SIGNED,
    "sasl.oauthbearer.metadata.authentication.type": OIDC,
    "ssl.certificate.location": {"ssl.key.location": "k"},
    "ssl.key.location": {"ssl.certificate.pem": "c"},
    "ssl.key.password": KEYED,
    "ssl.key.pem": {"ssl.certificate.pem": "c"},
    "ssl.keystore.key": {"ssl.certificate.pem": "c"},
    "ssl.keystore.password": {"ssl.keystore.location": "k.p12"},
    "ssl.keystore.type": {"ssl.keystore.location": "k"},
    "ssl.truststore.password": {"ssl.truststore.location": "t.jks"},
    "ssl.truststore.type": {"ssl.truststore.location": "t"},
}
SILENT = ("sasl.login.callback.handler.class", "sasl.oauthbearer.method")
"""Settings that change nothing beside those that they need."""
SETTINGS = [setting for source in LISTS for setting in foreign_settings(source)]


class Interceptor:
    def on_send(self, record: Any) -> Any:
        return record


def beside(setting: ForeignSetting) -> dict[str, Any]:
    """The settings beside which a setting can stand."""
    own = BESIDE.get(setting.name, {})
    if setting.name == "sasl.jaas.config":  # has a login
        return {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    if setting.name.startswith("sasl.oauthbearer."):
        return {**OIDC, **own}
    return {**LOGIN, **own} if setting.name.startswith(("ssl.", "sasl.", "security.")) else own


def value_of(setting: ForeignSetting) -> Any:
    """A value of the setting's type that is not its default."""
    if setting.name in VALUES:
        return VALUES[setting.name]
    if setting.type == "boolean":
        return "false" if setting.default == "true" else "true"
    if setting.type in ("int", "integer", "long", "short"):
        return "4" if setting.name.endswith(".level") else "4096"
    return "1.5" if setting.type in ("double", "float") else "other"


def effects(settings: KafkaSettings) -> dict[str, Any]:
    """What the settings change in a client."""
    return attrs.asdict(settings, filter=lambda field, _: field.name != "ignored")


@every_row("setting", SETTINGS)
def test_each_setting_is_applied_or_without_effect_or_refused(setting: ForeignSetting) -> None:
    name, (outcome, how) = setting.name, outcome_of(setting.name)
    given = {key: value for key, value in beside(setting).items() if key != ALIASES.get(name)}
    given[name] = value_of(setting)
    if outcome == "refused":
        with pytest.raises(ConfigError) as caught:
            settings_from(given)
        assert str(caught.value) == f"{name} {REFUSED[name].why}"
        return
    settings = settings_from(given)
    without = {key: value for key, value in given.items() if key != name}
    if outcome == "without effect":
        assert settings.ignored == (name,)
        assert effects(settings) == effects(settings_from(without))
        return
    assert outcome == "applied"
    assert settings.ignored == ((name,) if name in WITHOUT_CONSUMER else ())
    if name in SILENT:
        return
    try:
        before = effects(settings_from(without))
    except ConfigError:
        return  # the others need this one
    assert effects(settings) != before, how


REJECTED = {"sasl.mechanism": "GSSAPI", "sasl.mechanisms": "GSSAPI"}
"""Defaults of other clients that are errors here: a mechanism without SASL."""


@every_row("setting", [setting for setting in SETTINGS if setting.default])
def test_the_default_of_each_setting_is_accepted(setting: ForeignSetting) -> None:
    if REJECTED.get(setting.name) == setting.default:
        with pytest.raises(ConfigError, match=f"^{setting.name} is set, but security_protocol is PLAINTEXT"):
            settings_from({setting.name: setting.default})
    else:
        settings_from({setting.name: setting.default})


def test_a_setting_has_one_outcome() -> None:
    tables = (ALIASES, SPECIAL, WITHOUT_EFFECT, REFUSED)
    names = [name for table in tables for name in table]
    assert sorted(names) == sorted(set(names))


def test_settings_without_effect_are_one_line_of_the_log() -> None:
    with watched_log(logging.DEBUG) as log:
        settings = settings_from({"debug": "all", "linger.ms": 5, "stats_cb": print, "config.providers.env.class": "E"})
        settings_from({"linger.ms": 5})
    assert settings.ignored == ("debug", "stats_cb", "config.providers.env.class")
    assert [(one.name, one.levelname, one.getMessage()) for one in log.records] == [
        (
            "aiokafkawire.config",
            "DEBUG",
            "settings without effect in this client: debug, stats_cb, config.providers.env.class",
        )
    ]


def test_a_refused_setting_does_not_show_its_value() -> None:
    with pytest.raises(ConfigError) as caught:
        settings_from({"sasl.oauthbearer.assertion.private.key.passphrase": "s3cret"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "part", "options"),
    [
        ({"group.id": "g", "fetch.max.bytes": 5}, "share_consumer", {"group_id": "g", "fetch_max_bytes": 5}),
        ({"share.acquire.mode": "RECORD_LIMIT"}, "share_consumer", {"share_acquire_mode": "record_limit"}),
        ({"group.protocol": "CONSUMER"}, "consumer", {"group_protocol": "consumer"}),
        ({"auto.offset.reset": "smallest"}, "consumer", {"auto_offset_reset": "earliest"}),
        ({"auto.offset.reset": "error"}, "consumer", {"auto_offset_reset": "none"}),
        ({"ssl.cipher.suites": "", "ssl.enabled.protocols": "TLSv1.3, TLSv1.2"}, "client", {}),
        ({"ssl.enabled.protocols": ["TLSv1.2", "TLSv1.3"]}, "client", {}),
        (
            {"send.buffer.bytes": "-1", "socket.receive.buffer.bytes": 0},
            "client",
            {"send_buffer_bytes": None, "receive_buffer_bytes": None},
        ),
        ({"socket.send.buffer.bytes": "9", "send.buffer.bytes": "8"}, "client", {"send_buffer_bytes": 8}),
        ({"linger.ms": "0.5"}, "producer", {"linger_ms": 1}),
        ({"linger.ms": 5, "queue.buffering.max.ms": 7}, "producer", {"linger_ms": 5}),
        ({"queue.buffering.max.ms": 7}, "producer", {"linger_ms": 7}),
        ({"request.timeout.ms": 5, "socket.timeout.ms": 7}, "client", {"request_timeout_ms": 5}),
        ({"queue.buffering.max.kbytes": "2"}, "producer", {"buffer_memory": 2048}),
        ({"queue.buffering.max.kbytes": 2**31 - 1}, "producer", {"buffer_memory": 2**31 - 1}),
        ({"queue.buffering.max.kbytes": 2, "buffer.memory": 9}, "producer", {"buffer_memory": 9}),
        ({"buffer.memory": "4294967296"}, "producer", {"buffer_memory": 2**31 - 1}),
        ({"max.block.ms": 2**63 - 1}, "producer", {"max_block_ms": 2**31 - 1}),
        ({"message.timeout.ms": "0"}, "producer", {"delivery_timeout_ms": 2**31 - 1}),
        ({"delivery.timeout.ms": "0"}, "producer", {"delivery_timeout_ms": 2**31 - 1}),
        ({"batch.size": "0"}, "producer", {"batch_size": 1}),
        ({"connections.max.idle.ms": "-1"}, "client", {"connections_max_idle_ms": 2**31 - 1}),
        ({"connections.max.idle.ms": 0}, "client", {"connections_max_idle_ms": 2**31 - 1}),
        ({"topic.metadata.refresh.interval.ms": "-1"}, "client", {"metadata_max_age_ms": 2**31 - 1}),
        ({"auto.commit.interval.ms": "0"}, "consumer", {"auto_commit_interval_ms": 2**31 - 1}),
        ({"bootstrap.resolve.timeout.ms": "5000"}, "client", {"bootstrap_timeout_ms": 5000}),
        ({"bootstrap.resolve.timeout.ms": 2**40}, "client", {"bootstrap_timeout_ms": 2**31 - 1}),
        ({"bootstrap.resolve.timeout.ms": 5, "bootstrap.timeout.ms": 6}, "client", {"bootstrap_timeout_ms": 6}),
        ({"compression.level": "-1"}, "producer", {"compression_level": None}),
        (
            {"compression.type": "gzip", "compression.gzip.level": "3"},
            "producer",
            {"compression_type": "gzip", "compression_level": 3},
        ),
        (
            {"compression.gzip.level": "-1", "compression.type": "gzip"},
            "producer",
            {"compression_type": "gzip", "compression_level": None},
        ),
        (
            {"compression.zstd.level": "-1", "compression.type": "zstd"},
            "producer",
            {"compression_type": "zstd", "compression_level": -1},
        ),
        ({"partitioner.class": "o.RoundRobinPartitioner"}, "producer", {"partitioner": "round_robin"}),
        ({"partitioner.class": None}, "producer", {}),
    ],
)
def test_what_a_setting_becomes(given: dict[str, Any], part: str, options: dict[str, Any]) -> None:
    settings = settings_from(given)
    assert getattr(settings, part) == options
    assert settings.ignored == ()


@pytest.mark.parametrize(
    ("codec", "given", "level"),
    [
        ("gzip", "12", 9),
        ("gzip", "9", 9),
        ("gzip", "0", 1),
        ("gzip", "-1", None),
        ("lz4", "12", 12),
        ("lz4", "0", None),
        ("zstd", "12", 12),
        ("zstd", "22", 22),
    ],
)
def test_a_level_of_librdkafka_is_at_most_the_highest_of_the_codec(codec: str, given: str, level: int | None) -> None:
    settings = settings_from({"compression.type": codec, "compression.level": given})
    assert settings.producer == {"compression_type": codec, "compression_level": level}
    check_level(Codec.parse(codec), level)


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_the_levels_of_java_are_those_of_the_codecs(codec: str) -> None:
    for level in (-131073, -131072, -2, -1, 0, 1, 9, 10, 17, 18, 22, 23):
        given = {"compression.type": codec, f"compression.{codec}.level": level}
        try:
            check_level(Codec.parse(codec), level)
        except ConfigError:
            with pytest.raises(ConfigError, match=rf"^compression\.{codec}\.level must be .*, got {level}$"):
                settings_from(given)
        else:
            settings_from(given)


def test_the_properties_of_msk_are_taken() -> None:
    text = f"""\
security.protocol=SASL_SSL
sasl.mechanism=AWS_MSK_IAM
sasl.jaas.config={MSK}.IAMLoginModule required;
sasl.client.callback.handler.class={MSK}.IAMClientCallbackHandler
"""
    settings = settings_from(text)
    assert settings.client == {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"}
    assert settings.ignored == ("sasl.client.callback.handler.class",)


@pytest.mark.parametrize(
    ("mechanism", "jaas", "key", "other"),
    [
        ("PLAIN", 'x.PlainLoginModule required username="a" password="p";', "sasl.username", "b"),
        ("SCRAM-SHA-256", 'x.ScramLoginModule required username="a" password="p";', "sasl.password", "secret"),
        ("GSSAPI", 'x.Krb5LoginModule required serviceName="kafka";', "sasl.kerberos.service.name", "other"),
    ],
)
def test_a_login_beside_another_in_jaas_is_refused_without_showing_it(
    mechanism: str, jaas: str, key: str, other: str
) -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    with pytest.raises(ConfigError, match=rf"^{key} is another than \w+ in sasl\.jaas\.config") as raised:
        settings_from({**given, key: other})
    assert other not in str(raised.value).split()
    same = attrs.asdict(settings_from(given))["client"][key.replace(".", "_")]
    assert settings_from({**given, key: same}).client == settings_from(given).client


def test_a_property_of_oauthbearer_counts_before_its_option_in_jaas() -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
        "sasl.jaas.config": 'x.OAuthBearerLoginModule required clientId="old" clientSecret="s";',
        "sasl.oauthbearer.client.credentials.client.id": "new",
    }
    assert settings_from(given).client["sasl_oauthbearer_client_id"] == "new"
    extended = given["sasl.jaas.config"].replace(";", ' extension_a="old";')
    given |= {"sasl.jaas.config": extended, "sasl.oauthbearer.extensions": "a=new"}
    assert settings_from(given).client["sasl_oauthbearer_extensions"] == {"a": "new"}


def test_msk_by_oauthbearer_is_the_same_login() -> None:
    settings = settings_from(MSK_OAUTH)
    assert settings.client == {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"}
    assert settings.ignored == ("sasl.client.callback.handler.class",)


@every_row(
    ("given", "why"),
    [
        ({"group.id": "g", "max.poll.records": "5"}, "consumers have poll(max_records=...) instead"),
        ({"bootstrap.resolve.timeout.ms": "0"}, "without a limit of its own the client has bootstrap_timeout_ms"),
        ({"compression.gzip.level": "3"}, "compression.type is none"),
        ({"compression.type": "gzip", "compression.zstd.level": "4"}, "compression.type is gzip"),
        ({"compression.level": "3"}, "compression.type is none, which has no levels"),
        ({"compression.type": "snappy", "compression.level": "3"}, "compression.type is snappy, which has no levels"),
        ({**LOGIN, "ssl.truststore.password": "s3cret"}, "there is no ssl.truststore.location"),
        (
            {
                **LOGIN,
                "ssl.truststore.location": "t",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.password": "s3cret",
            },
            "ssl.truststore.type is PEM, which has no password",
        ),
        (
            {**LOGIN, "ssl.keystore.location": "k", "ssl.keystore.type": "PEM", "ssl.keystore.password": "s3cret"},
            "ssl.keystore.type is PEM: ssl.key.password is the key's",
        ),
        ({"sasl.oauthbearer.config": "s3cret=a"}, "it is the argument of oauth_cb, and there is none"),
        ({**LOGIN, "sasl.login.callback.handler.class": "my.Handler"}, "Java classes cannot be used"),
        ({**OIDC, "sasl.login.callback.handler.class": "my.Handler"}, "Java classes cannot be used"),
        (
            {**OIDC, "sasl.mechanism": "AWS_MSK_IAM", "sasl.login.callback.handler.class": HANDLER},
            "sasl.mechanism is not OAUTHBEARER",
        ),
    ],
)
def test_a_setting_that_does_nothing_beside_the_others_leaves_a_trace(given: dict[str, Any], why: str) -> None:
    name = list(given)[-1]
    with watched_log(logging.DEBUG) as log:
        settings = settings_from(given)
    assert settings.ignored == (name,)
    assert [one.getMessage() for one in log.records] == [f"settings without effect in this client: {name} ({why})"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"partitioner.class": "my.Own"}, "partitioner.class 'Own' cannot be used: known are Java's RoundRobinPart"),
        ({"queue.buffering.max.kbytes": "many"}, "queue.buffering.max.kbytes must be a whole number, got 'many'"),
        ({"compression.type": "lz4", "compression.lz4.level": "x"}, "compression.lz4.level must be a whole number"),
        ({"sasl.login.refresh.window.factor": "x"}, "sasl.login.refresh.window.factor must be a number, got 'x'"),
        (
            {"sasl.login.refresh.window.factor": "nan"},
            "sasl.login.refresh.window.factor must be a number from 0.5 to 1.0, got nan",
        ),
        ({**LOGIN, "ssl.enabled.protocols": "TLSv1.2,TLSv1.1"}, "ssl.enabled.protocols must be a sequence of some of"),
        ({**LOGIN, "ssl.enabled.protocols": 5}, "ssl.enabled.protocols must be a sequence of some of"),
        ({**LOGIN, "ssl.enabled.protocols": [["TLSv1.2"]]}, "ssl.enabled.protocols must be a sequence of some of"),
        ({"bootstrap.servers": 9092}, "bootstrap.servers must be 'host:port,host:port' or a list of 'host:port'"),
        ({"bootstrap.servers": ["a:1", None]}, "bootstrap.servers must be 'host:port,host:port' or a list"),
        ({**OIDC, "oauth_cb": "s3cret"}, "oauth_cb must be a function, not str"),
        ({"linger.ms": "1.x"}, "linger.ms must be a whole number, got '1.x'"),
        ({"max.poll.record": "5"}, "unknown property 'max.poll.record': did you mean max.poll.records?"),
        ({"auto.offset.reset": "first"}, "auto.offset.reset must be 'earliest'"),
        ({"message.timeout.ms": "-1"}, "message.timeout.ms must be a whole number from 1 to 2147483647, got -1"),
        ({"queue.buffering.max.kbytes": "-1"}, "queue.buffering.max.kbytes must be a whole number from 1 to"),
        ({"bootstrap.resolve.timeout.ms": "-1"}, "bootstrap.resolve.timeout.ms must be a whole number from 1 to"),
        (
            {"buffer.memory": 2**63},
            "buffer.memory must be a whole number from 1 to 2147483647, got 9223372036854775808",
        ),
        ({"batch.size": 2**31}, "batch.size must be a whole number from 1 to 2147483647, got 2147483648"),
        ({"max.in.flight": 6, "enable.idempotence": "true"}, "enable.idempotence needs max.in.flight to be at most 5"),
        ({"client.id": ("client_id",)}, "client.id must be a string, got ('client_id',)"),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "t"},
            "ssl.truststore.location is set, but security_protocol is PLAINTEXT",
        ),
        (
            {**LOGIN, "ssl.ca.location": "c", "ssl.truststore.type": "PEM", "ssl.truststore.location": "t"},
            "ssl.truststore.location and ssl.ca.location are two sources of the same: set one of them",
        ),
        (
            {**LOGIN, "ssl.certificate.location": "c", "ssl.keystore.type": "PEM", "ssl.keystore.location": "k"},
            "ssl.keystore.location and ssl.certificate.location are two sources of the same: set one of them",
        ),
        (
            {"compression.type": "gzip", "compression.gzip.level": "12"},
            "compression.gzip.level must be a whole number from 1 to 9, or -1 for the default, got 12",
        ),
        ({"compression.lz4.level": "18"}, "compression.lz4.level must be a whole number from 1 to 17, got 18"),
        ({"compression.zstd.level": "zzz"}, "compression.zstd.level must be a whole number, got 'zzz'"),
        ({"compression.gzip.level": True}, "compression.gzip.level must be a whole number, got True"),
        (
            {"compression.type": "gzip", "compression.level": "13"},
            "compression.level must be a whole number from -1 to 12",
        ),
        (
            {"compression.type": "zstd", "compression.level": 23},
            "compression.level must be a whole number from -131072",
        ),
        ({"compression.level": "zzz"}, "compression.level must be a whole number, got 'zzz'"),
        ({"sasl.client.callback.handler.class": "my.Handler"}, "Java classes cannot be used; set sasl_username"),
        (
            {**MSK_OAUTH, "sasl.login.callback.handler.class": "my.Handler"},
            "sasl.login.callback.handler.class 'my.Handler' cannot be used: known are Java's OAuthBearerLoginCallback",
        ),
        ({"exclude.internal.topics": "false"}, "exclude.internal.topics is not supported: patterns never match"),
    ],
)
def test_wrong_values_are_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_from(given)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("given", "servers"),
    [
        ({}, ""),
        ({"bootstrap.servers": None}, ""),
        ({"bootstrap.servers": "a:1,b:2"}, "a:1,b:2"),
        ({"bootstrap.servers": ["a:1", "b:2"]}, "a:1,b:2"),
        ({"metadata.broker.list": ("a:1", "b:2")}, "a:1,b:2"),
    ],
)
def test_bootstrap_servers_are_text_or_a_list(given: dict[str, Any], servers: str) -> None:
    assert settings_from(given).bootstrap_servers == servers


def test_the_numbers_of_64_bits_are_those_of_java() -> None:
    longs = {
        one.name for one in foreign_settings("java") if one.type == "long" and outcome_of(one.name)[0] == "applied"
    }
    assert longs == LONGS


@every_row(("name", "given"), [(name, given) for name, numbers in MEANINGS.items() for given in numbers])
def test_a_number_that_turns_something_off_is_on_the_page(name: str, given: int) -> None:
    assert f"; `{given}` becomes {MEANINGS[name][given]}" in outcome_of(name)[1]


@every_row("setting", SETTINGS)
def test_the_page_names_everything_that_gets_an_option(setting: ForeignSetting) -> None:
    outcome, how = outcome_of(setting.name)
    option = ALIASES.get(setting.name, setting.name).replace(".", "_")
    if outcome != "applied" or not how.startswith(f"`{option}` of "):
        return
    settings = settings_from({**beside(setting), setting.name: value_of(setting)})
    parts = {
        "Client": settings.client,
        "producer()": settings.producer,
        "consumer()": settings.consumer,
        "share_consumer()": settings.share_consumer,
    }
    having = ", ".join(f"`{part}`" for part, options in parts.items() if option in options)
    assert how.split("; ")[0] == f"`{option}` of {having}"


def test_a_share_consumer_takes_the_settings_for_it() -> None:
    settings = settings_from("group.id=g\nmax.poll.records=7\nshare.acknowledgement.mode=implicit")
    config = make_config(ShareConsumerConfig, settings.share_consumer)
    assert (config.group_id, config.max_poll_records, config.share_acknowledgement_mode) == ("g", 7, "implicit")
    assert repr(settings).endswith("share_consumer=<group_id, max_poll_records, share_acknowledgement_mode>)")


def test_properties_of_environment_variables() -> None:
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": "a:1",
        "KAFKA_SOCKET_TIMEOUT_MS": "5",
        "KAFKA_DEBUG": "all",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_": "x",
        "LINGER_MS": "6",
        "ORDERS_LINGER_MS": "7",
    }
    found = properties_from_environment(environment)
    assert found == {"bootstrap.servers": "a:1", "socket.timeout.ms": "5", "debug": "all"}
    assert settings_from(found).client == {"request_timeout_ms": 5}
    assert properties_from_environment(environment, "ORDERS_") == {"linger.ms": "7"}


@every_row("setting", SETTINGS)
def test_every_setting_with_dots_has_a_variable(setting: ForeignSetting) -> None:
    if "_" not in setting.name:
        variable = "KAFKA_" + setting.name.upper().replace(".", "_")
        assert properties_from_environment({variable: "1"}) == {setting.name: "1"}


def test_the_page_is_up_to_date() -> None:
    # If not: python tests/support/foreign_settings.py
    assert PAGE.read_text() == page()


def test_extensions_may_have_blanks_between_them_and_none_is_left_out() -> None:
    def extensions(text: str) -> object:
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": print}
        return settings_from({**login, "sasl.oauthbearer.extensions": text}).client.get("sasl_oauthbearer_extensions")

    assert extensions("logicalCluster=lkc-1, identityPoolId=pool-2,") == {
        "logicalCluster": "lkc-1",
        "identityPoolId": "pool-2",
    }
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.extensions must be name=value"):
        extensions("logicalCluster:lkc-1")
