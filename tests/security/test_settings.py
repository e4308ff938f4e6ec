"""Settings of TLS and SASL: what contradicts itself is refused with what to do, and no secret is shown."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import attrs
import pytest

from aiokafkawire import Client
from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.config.security import SecurityConfig
from aiokafkawire.errors import ConfigError
from aiokafkawire.network.client_security import Security
from aiokafkawire.runtime import Runtime
from aiokafkawire.types import AwsCredentials, OAuthBearerToken

TLS: dict[str, Any] = {"security_protocol": "SSL"}
SASL: dict[str, Any] = {"security_protocol": "SASL_SSL", "sasl_username": "a", "sasl_password": "s3cret"}
OAUTH: dict[str, Any] = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
OIDC = {
    **OAUTH,
    "sasl_oauthbearer_method": "oidc",
    "sasl_oauthbearer_client_id": "c",
    "sasl_oauthbearer_client_secret": "s3cret",
    "sasl_oauthbearer_token_endpoint_url": "https://login.example.org/token",
}

GOOD: list[dict[str, Any]] = [
    {},
    {"security_protocol": "plaintext"},
    {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": "b"},
    {**SASL, "sasl_mechanism": "scram-sha-256"},
    {**SASL, "sasl_mechanism": "SCRAM-SHA-512", "ssl_ca_location": "/ca.pem"},
    {**TLS, "ssl_ca_location": Path("/ca.pem")},
    {**TLS, "ssl_certificate_location": "/c.pem"},
    {**TLS, "ssl_certificate_location": "/c.pem", "ssl_key_pem": "key", "ssl_key_password": "p"},
    {**TLS, "ssl_keystore_location": "/k.p12", "ssl_keystore_password": "p"},
    {**TLS, "ssl_endpoint_identification_algorithm": ""},
    {**TLS, "ssl_context": ssl.create_default_context()},
    {**OAUTH, "sasl_oauthbearer_token": lambda: "t"},
    OIDC,
    {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"},
    {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"},
]


@pytest.mark.parametrize("options", GOOD, ids=range(len(GOOD)))
def test_what_makes_sense_is_taken(options: dict[str, Any]) -> None:
    config = make_config(ClientConfig, options)
    assert config.security_protocol.isupper()
    assert config.uses_tls == ("SSL" in config.security_protocol)
    assert config.uses_sasl == ("SASL" in config.security_protocol)
    assert config.ssl_ca_location in (None, "/ca.pem")
    assert config.ssl_endpoint_identification_algorithm in ("https", "none")


def without(options: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != name}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"security_protocol": "TLS"}, "security_protocol must be one of 'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'"),
    (SASL, "SASL_SSL needs sasl_mechanism: one of PLAIN, SCRAM-SHA-256, "),
    ({**SASL, "sasl_mechanism": "DIGEST-MD5"}, "sasl_mechanism must be one of None, 'PLAIN', "),
    ({**without(SASL, "sasl_username"), "sasl_mechanism": "PLAIN"}, "sasl_mechanism PLAIN needs sasl_username"),
    (
        {**without(SASL, "sasl_password"), "sasl_mechanism": "SCRAM-SHA-256"},
        "sasl_mechanism SCRAM-SHA-256 needs sasl_password",
    ),
    ({**SASL, "sasl_mechanism": "PLAIN", "sasl_password": ""}, "sasl_password must not be empty"),
    (
        {**SASL, "sasl_mechanism": "PLAIN", "sasl_username": "a\ud800"},
        "sasl_username has characters that UTF-8 cannot encode",
    ),
    ({**SASL, "sasl_mechanism": "PLAIN", "sasl_username": 5}, "sasl_username must be a string or None, got 5"),
    (
        {**OIDC, "sasl_oauthbearer_client_id": "\udc00"},
        "sasl_oauthbearer_client_id has characters that UTF-8 cannot encode",
    ),
    ({**OIDC, "sasl_oauthbearer_scope": "\udc00"}, "sasl_oauthbearer_scope has characters that UTF-8 cannot encode"),
    ({**SASL, "sasl_mechanism": "PLAIN", "sasl_password": "s3cret\0"}, "cannot contain a NUL"),
    (
        {**SASL, "sasl_mechanism": "PLAIN", "sasl_password": "s3cret\ud800"},
        "sasl_password has characters that UTF-8 cannot",
    ),
    (
        {**SASL, "sasl_mechanism": "PLAIN", "sasl_password": b"s3cret"},
        "sasl_password must be a string or None, got a bytes",
    ),
    (
        {"sasl_mechanism": "PLAIN"},
        "sasl_mechanism is set, but security_protocol is PLAINTEXT: set security_protocol to 'SASL_SSL' or ",
    ),
    (
        {"ssl_ca_location": "/ca.pem"},
        "ssl_ca_location is set, but security_protocol is PLAINTEXT: set security_protocol to 'SSL' or 'SASL_SSL'",
    ),
    ({**TLS, "sasl_username": "a"}, "sasl_username is set, but security_protocol is SSL"),
    (
        {**TLS, "ssl_ca_location": "/ca.pem", "ssl_ca_pem": "x"},
        "ssl_ca_location and ssl_ca_pem are two sources of the same",
    ),
    ({**TLS, "ssl_key_location": "/k", "ssl_key_pem": "s3cret"}, "ssl_key_location and ssl_key_pem are two sources"),
    (
        {**TLS, "ssl_certificate_location": "/c", "ssl_key_location": "-----BEGIN PRIVATE KEY-----\ns3cret"},
        "ssl_key_location must be a path or None, got PEM text (not shown): set the one that ends with _pem",
    ),
    (
        {**OIDC, "sasl_oauthbearer_assertion_private_key_file": " -----BEGIN PRIVATE KEY-----s3cret"},
        "sasl_oauthbearer_assertion_private_key_file must be a path or None, got PEM text (not shown)",
    ),
    ({**TLS, "ssl_key_location": b"s3cret"}, "ssl_key_location must be a path or None, got bytes (not shown)"),
    ({**TLS, "ssl_certificate_pem": b"s3cret"}, "ssl_certificate_pem must be a string of PEM or None, got bytes (not"),
    (
        {**TLS, "ssl_key_location": "/k"},
        "ssl_key_location needs the certificate: ssl_certificate_location or ssl_certificate_pem",
    ),
    ({**TLS, "ssl_key_password": "s3cret"}, "ssl_key_password needs the certificate: ssl_certificate_location"),
    ({**TLS, "ssl_keystore_password": "s3cret"}, "ssl_keystore_password needs ssl_keystore_location"),
    (
        {**TLS, "ssl_keystore_location": "/k", "ssl_certificate_pem": "x"},
        "ssl_certificate_pem and ssl_keystore_location both set the client's certificate",
    ),
    ({**TLS, "ssl_keystore_location": "/k", "ssl_key_pem": "s3cret"}, "a keystore contains its key"),
    ({**TLS, "ssl_truststore_password": "s3cret"}, "ssl_truststore_password needs ssl_truststore_location"),
    (
        {**TLS, "ssl_truststore_location": "/t", "ssl_ca_pem": "x"},
        "ssl_ca_pem and ssl_truststore_location are two sources of the same",
    ),
    ({**TLS, "ssl_context": "x"}, "ssl_context must be an ssl.SSLContext or None, got 'x'"),
    (
        {**TLS, "ssl_context": ssl.create_default_context(), "ssl_ca_location": "/ca.pem"},
        "ssl_ca_location and ssl_context: set it in the context instead",
    ),
    (
        {**TLS, "ssl_context": ssl.create_default_context(), "ssl_endpoint_identification_algorithm": "none"},
        "ssl_endpoint_identification_algorithm and ssl_context",
    ),
    ({**TLS, "ssl_endpoint_identification_algorithm": "hostname"}, "must be one of 'https', 'none'"),
    (OAUTH, "OAUTHBEARER needs sasl_oauthbearer_token, or sasl_oauthbearer_method 'oidc'"),
    ({**OAUTH, "sasl_oauthbearer_client_id": "c"}, "'oidc' ('oidc', since there is an endpoint?)"),
    ({**OAUTH, "sasl_oauthbearer_token": "s3cret"}, "sasl_oauthbearer_token must be a function or None, got a str"),
    ({**OIDC, "sasl_oauthbearer_token": lambda: "t"}, "sasl_oauthbearer_token and sasl_oauthbearer_method 'oidc'"),
    (without(OIDC, "sasl_oauthbearer_client_secret"), "'oidc' needs sasl_oauthbearer_client_secret"),
    ({**OIDC, "sasl_oauthbearer_token_endpoint_url": "file:///etc/passwd"}, "must begin with https:// or http://"),
    ({**OAUTH, "sasl_oauthbearer_extensions": {"a": 1}}, "sasl_oauthbearer_extensions must be a mapping of strings"),
    ({**SASL, "sasl_mechanism": "PLAIN", "sasl_scram_iterations_max": 1}, "sasl_scram_iterations_max must be a whole"),
    (
        {**SASL, "sasl_mechanism": "PLAIN", "sasl_tokenauth": True},
        "sasl_tokenauth needs SCRAM-SHA-256 or SCRAM-SHA-512",
    ),
    ({**SASL, "sasl_tokenauth": "true"}, "sasl_tokenauth must be one of True, False, got 'true'"),
    ({"sasl_tokenauth": True}, "sasl_tokenauth is True: set security_protocol to 'SASL_SSL' or 'SASL_PLAINTEXT'"),
    ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": ""}, "must be a name"),
    ({"security.protocol": "SSL"}, "unknown setting 'security.protocol': did you mean security_protocol?"),
    ({"sasl.passwort": "s3cret"}, "unknown setting 'sasl.passwort': did you mean sasl_password?"),
]


@pytest.mark.parametrize(("options", "told"), BAD, ids=range(len(BAD)))
def test_what_contradicts_itself_is_refused_and_no_secret_is_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client("a:1", **options)
    assert told in str(caught.value)
    assert "s3cret" not in str(caught.value)
    if "unknown setting" in told:
        assert caught.value.setting is None
    else:
        assert caught.value.setting is not None
        assert caught.value.setting in str(caught.value)


def test_an_extension_that_cannot_be_said_is_told_when_a_client_is_made() -> None:
    with pytest.raises(ConfigError, match="the SASL extension 'auth' must have a name"):
        Client("a:1", **OAUTH, sasl_oauthbearer_token=lambda: "t", sasl_oauthbearer_extensions={"auth": "x"})


def test_no_repr_shows_a_secret() -> None:
    named = (
        "ssl_key_pem",
        "ssl_key_password",
        "ssl_keystore_password",
        "ssl_truststore_password",
        "sasl_password",
        "sasl_oauthbearer_client_secret",
    )
    for name in (*named, "sasl_oauthbearer_token", "sasl_aws_credentials"):
        assert not getattr(attrs.fields(SecurityConfig), name).repr, name
    config = make_config(ClientConfig, OIDC)
    assert "s3cret" not in repr(config)
    url = f"{OIDC['sasl_oauthbearer_token_endpoint_url']}?key=s3cret"
    asked = repr(make_config(ClientConfig, {**OIDC, "sasl_oauthbearer_token_endpoint_url": url}))
    assert "sasl_oauthbearer_token_endpoint_url='https://login.example.org/token'" in asked
    assert "s3cret" not in asked
    assert "s3cret" not in repr(OAuthBearerToken("s3cret"))
    assert "s3cret" not in repr(AwsCredentials("id", "s3cret", "s3cret"))
    assert "s3cret" not in repr(vars(Security(config, Runtime())))


def test_plain_connections_load_no_tls() -> None:
    security = Security(make_config(ClientConfig, {}), Runtime())
    assert (security.tls, security._login) == (None, None)


def test_a_heartbeat_thread_cannot_wait_for_async_functions() -> None:
    async def provide() -> str:
        return "t"

    with pytest.raises(ConfigError, match="sasl_oauthbearer_token must not be a coroutine function"):
        Client("a:1", **OAUTH, sasl_oauthbearer_token=provide).consumer(group_id="g", heartbeat_thread=True)
