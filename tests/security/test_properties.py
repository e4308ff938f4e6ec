"""Settings that people have already: .properties texts, JAAS, and dicts of confluent-kafka."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire import Client
from aiokafkawire.config.jaas import LoginModule, parse_jaas
from aiokafkawire.config.properties import settings_from
from aiokafkawire.config.properties_parser import parse_properties
from aiokafkawire.errors import ConfigError
from aiokafkawire.types import OAuthBearerToken

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="s3cret";'

JAVA = """\
# as Java has it
bootstrap.servers=a:9092,b:9092
security.protocol = SASL_SSL
sasl.mechanism: SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="alice" \\
    password="s3cr=et;\\\\"x";
ssl.truststore.type=PEM
ssl.truststore.location=/etc/ca.pem
ssl.endpoint.identification.algorithm=
request.timeout.ms=1000
acks=1
enable.idempotence=false
linger.ms 5
partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor
group.id=g
enable.auto.commit=false
key.serializer=org.apache.kafka.common.serialization.StringSerializer
"""


def test_the_way_to_the_brokers_by_kafkas_names() -> None:
    text = (
        "client.dns.lookup=use_all_dns_ips\nsocket.keepalive.enable=false\nmetadata.recovery.strategy=none\n"
        "metadata.recovery.rebootstrap.trigger.ms=5"
    )
    assert settings_from(text).client == {
        "client_dns_lookup": "use_all_dns_ips",
        "socket_keepalive_enable": False,
        "metadata_recovery_strategy": "none",
        "metadata_recovery_rebootstrap_trigger_ms": 5,
    }


def test_java_client_properties() -> None:
    settings = settings_from(JAVA)
    assert settings.bootstrap_servers == "a:9092,b:9092"
    assert settings.client == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "ssl_endpoint_identification_algorithm": "",
        "request_timeout_ms": 1000,
        "ssl_ca_location": "/etc/ca.pem",
        "sasl_username": "alice",
        "sasl_password": 's3cr=et;"x',
    }
    assert settings.producer == {"acks": 1, "enable_idempotence": False, "linger_ms": 5}
    assert settings.consumer == {
        "partition_assignment_strategy": ("cooperative-sticky",),
        "group_id": "g",
        "enable_auto_commit": False,
    }
    assert settings.ignored == ("key.serializer",)
    assert "s3cr" not in repr(settings)
    Client(settings.bootstrap_servers, **settings.client)


@pytest.mark.parametrize("given", [True, False])
def test_javas_setting_decides_whether_metrics_are_pushed(given: bool) -> None:
    settings = settings_from(f"bootstrap.servers=a:1\nenable.metrics.push={str(given).lower()}")
    assert settings.client == {"enable_metrics_push": given}
    assert settings.ignored == ()
    Client(settings.bootstrap_servers, **settings.client)


@pytest.mark.parametrize(("given", "means"), [("true", True), ("TRUE", True), ("false", False), ("yes", False)])
def test_a_login_by_a_delegation_token(given: str, means: bool) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="id" password="aG1hYw==" tokenauth="{given}";'
    settings = settings_from(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={jaas}")
    assert settings.client["sasl_tokenauth"] is means
    assert (settings.client["sasl_username"], settings.client["sasl_password"]) == ("id", "aG1hYw==")
    Client("a:1", **settings.client)


@pytest.mark.parametrize(
    ("given", "client"),
    [
        (
            {"security.protocol": "sasl_ssl", "sasl.mechanisms": "PLAIN", "sasl.username": "a", "sasl.password": "b"},
            {"security_protocol": "sasl_ssl", "sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": "b"},
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p",
             "ssl.key.password": "p"},
            {"security_protocol": "SSL", "ssl_keystore_location": "/k.p12", "ssl_keystore_password": "p",
             "ssl_key_password": "p"},
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.location": "/k.pem",
             "ssl.key.password": "p"},
            {"security_protocol": "SSL", "ssl_certificate_location": "/k.pem", "ssl_key_password": "p"},
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "c",
             "ssl.keystore.key": "k", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": "t"},
            {"security_protocol": "SSL", "ssl_certificate_pem": "c", "ssl_key_pem": "k", "ssl_ca_pem": "t"},
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
             "sasl.login.callback.handler.class": "org.apache.kafka.x.OAuthBearerLoginCallbackHandler",
             "sasl.oauthbearer.token.endpoint.url": "https://a/token",
             "sasl.jaas.config": 'x.OAuthBearerLoginModule required clientId="c" clientSecret="s" scope="z" '
             'extension_logicalCluster="l";'},
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_method": "oidc",
             "sasl_oauthbearer_token_endpoint_url": "https://a/token", "sasl_oauthbearer_client_id": "c",
             "sasl_oauthbearer_client_secret": "s", "sasl_oauthbearer_scope": "z",
             "sasl_oauthbearer_extensions": {"logicalCluster": "l"}},
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM",
             "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"},
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"},
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI",
             "sasl.jaas.config": 'x.Krb5LoginModule required useTicketCache=true serviceName="broker";'},
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "broker"},
        ),
    ],
)  # fmt: skip
def test_what_is_here_by_another_name(given: dict[str, str], client: dict[str, Any]) -> None:
    assert settings_from(given).client == client


def test_the_function_of_confluent_kafka() -> None:
    asked = list[str]()

    def oauth_cb(config: str) -> tuple[str, float, str, dict[str, str]]:
        asked.append(config)
        return "token", 1_700_000_000.5, "principal", {"a": "b"}

    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": oauth_cb,
        "sasl.oauthbearer.config": "c",
        "retries": 3,
        "enable.auto.commit": False,
    }
    settings = settings_from(given)
    provider: Any = settings.client["sasl_oauthbearer_token"]
    assert provider() == OAuthBearerToken("token", 1_700_000_000_500, {"a": "b"})
    assert asked == ["c"]
    assert settings.producer == {"retries": 3}
    assert settings.consumer == {"enable_auto_commit": False}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sasl.pasword": "s3cret"}, "unknown property 'sasl.pasword': did you mean sasl.password?"),
        ({"secruity.protocol": "SSL"}, "did you mean security.protocol?"),
        ({"qqqq": "s3cret"}, "unknown property 'qqqq': no known property is similar"),
        ({"linger.ms": "soon"}, "linger.ms must be a whole number, got 'soon'"),
        ({"enable.auto.commit": "yes"}, "enable.auto.commit must be true or false, got 'yes'"),
        ({"acks": "2"}, "acks must be one of"),
        ({"security.protocol": "SASL_SSL"}, "SASL_SSL needs sasl_mechanism"),
        ({"enable.ssl.certificate.verification": "false"}, "cannot be turned off"),
        ({"ssl.truststore.location": "/a", "ssl.truststore.type": "BKS"}, "ssl.truststore.type 'BKS' cannot be read"),
        ({"ssl.keystore.location": "/a", "ssl.keystore.type": "DKS"}, "ssl.keystore.type 'DKS' cannot be read: known"),
        ({"sasl.jaas.config": PLAIN}, "sasl_username is set, but security_protocol is PLAINTEXT"),
        ({"sasl.jaas.config": PLAIN.replace("password", "passwort")}, "did you mean password?"),
        ({"sasl.jaas.config": PLAIN.replace("Plain", "Fancy")}, "unknown login module FancyLoginModule"),
        (
            {"sasl.jaas.config": PLAIN.replace(";", ' tokenauth="true";')},
            "unknown option 'tokenauth' of PlainLoginModule",
        ),
        ({"sasl.jaas.config": 'x.IAMLoginModule required awsProfileName="s3cret";'}, "environment as AWS_PROFILE"),
        ({"sasl.jaas.config": 'x.IAMLoginModule required awsRoleArn="s3cret" awsStsRegion="x";'}, "assume the role"),
        (
            {"sasl.jaas.config": 'x.IAMLoginModule required awsDebugCreds="true";'},
            "awsDebugCreds cannot be used",
        ),
        ({"sasl.jaas.config": 'x.IAMLoginModule required awsProfilName="s3cret";'}, "did you mean awsProfileName?"),
        ({"sasl.jaas.config": 'x.IAMLoginModule required color="s3cret";'}, "unknown option 'color' of IAMLoginModule"),
        ({"sasl.jaas.config": 'x.OAuthBearerLoginModule required awsRoleArn="s3cret";'}, "awsRoleArn cannot be used"),
        (
            {"sasl.jaas.config": 'x.Krb5LoginModule required useKeyTab=true keyTab="s3cret";'},
            "useKeyTab cannot be used: get the ticket by kinit",
        ),
        ({"sasl.jaas.config": PLAIN[:-1]}, "must be one login module"),
        ({"sasl.jaas.config": PLAIN[:-2]}, "an unterminated quote"),
        ({"sasl.jaas.config": PLAIN + PLAIN}, "of one login module only (after 'password')"),
        ({"sasl.jaas.config": "s3cret"}, "must be one login module"),
        ({"sasl.jaas.config": ""}, "must be one login module"),
        ({"sasl.login.callback.handler.class": "x.OAuthBearerLoginCallbackHandler"}, "token.endpoint.url"),
    ],
)
def test_what_will_not_do_is_told_without_secrets(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_from(given)
    assert told in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        ("a:b\r\nc d\re\tf", {"a": "b", "c": "d", "e": "f"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("# x\n! y\n\n a=1", {"a": "1"}),
        ("a=1\\\n   2\\\n3\nb=2", {"a": "123", "b": "2"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a\\=b\\:c\\ d=e=f", {"a=b:c d": "e=f"}),
        ("a=\\t\\n\\u00e4\\q\\ud83d\\ude00", {"a": "\t\näq😀"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x\\\n# no comment", {"a": "x# no comment"}),
    ],
)
def test_the_grammar_of_properties_is_javas(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_a_broken_escape_is_told_by_its_line() -> None:
    with pytest.raises(ConfigError, match=r"^line 2 of the properties has a broken \\u escape$"):
        parse_properties("a=b\nsecret=\\u12x")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PLAIN, LoginModule("PlainLoginModule", {"username": "alice", "password": "s3cret"})),
        ("M REQUIRED\n a = b\n c=\"d e\" ;", LoginModule("M", {"a": "b", "c": "d e"})),
        ('a.b.M required x="\\"\\\\\\n";', LoginModule("M", {"x": '"\\\n'})),
        ("M required a='b' c='d\"e\\'f' g=\"h'i\";", LoginModule("M", {"a": "b", "c": "d\"e'f", "g": "h'i"})),
        ("M optional;", LoginModule("M", {})),
    ],
)  # fmt: skip
def test_the_grammar_of_jaas(text: str, found: LoginModule) -> None:
    assert parse_jaas(text) == found


@given(st.one_of(st.text(), st.text(alphabet="aM =\"\\;'requid\n")))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_properties, parse_jaas, settings_from, lambda one: parse_jaas(f"M required {one};")):
        try:
            found = read(text)
        except ConfigError:
            continue
        assert found is not None


def test_names_of_properties_are_text() -> None:
    with pytest.raises(ConfigError, match="the names of properties are text, not int"):
        settings_from({5: "x"})  # type: ignore[dict-item]
