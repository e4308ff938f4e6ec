"""Tokens for an assertion: what a token endpoint gets, and what cannot be signed is told."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from support.bearer import unsecured
from support.securing import there_and_back
from support.token_endpoint import answering, endpoint

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.config.properties import settings_from
from aiokafkawire.errors import AuthenticationFailed, ConfigError, KafkaError
from aiokafkawire.network.oauth_assertions import make_assertion
from aiokafkawire.network.oidc import fetch_token
from aiokafkawire.testing.broker import Broker

PASSPHRASE = "of-the-key"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
NOW = 1_700_000_000
GOT = b'{"access_token":"tok","expires_in":3600}'
SETTINGS: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_method": "oidc",
    "sasl_oauthbearer_token_endpoint_url": "https://login.example.org/token",
    "sasl_oauthbearer_assertion_claim_iss": "me",
}


def pem(key: Any, passphrase: str | None = None) -> str:
    how: Any = serialization.NoEncryption()
    if passphrase is not None:
        how = serialization.BestAvailableEncryption(passphrase.encode())
    return str(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how).decode())


def made_of(**more: Any) -> ClientConfig:
    options = {f"sasl_oauthbearer_{name}": value for name, value in more.items()}
    return make_config(ClientConfig, {**SETTINGS, **options})


def signed(**more: Any) -> ClientConfig:
    return made_of(**{"assertion_private_key_pem": pem(RSA), **more})


def read(assertion: str, key: Any = RSA) -> tuple[dict[str, Any], dict[str, Any]]:
    checked: Any = {"verify_exp": False, "verify_nbf": False, "verify_aud": False, "verify_iat": False}
    claims = jwt.decode(assertion, key.public_key(), algorithms=["RS256", "ES256"], options=checked)
    return jwt.get_unverified_header(assertion), claims


def test_the_claims_are_the_settings() -> None:
    config = signed(
        assertion_claim_sub="sub",
        assertion_claim_aud="aud",
        assertion_claim_exp_seconds=10,
        assertion_claim_nbf_seconds=5,
    )
    header, claims = read(make_assertion(config, NOW))
    assert header == {"alg": "RS256", "typ": "JWT"}
    assert claims == {"iss": "me", "sub": "sub", "aud": "aud", "iat": NOW, "exp": NOW + 10, "nbf": NOW - 5}


def test_the_defaults_are_javas() -> None:
    _, claims = read(make_assertion(signed(), NOW))
    assert claims == {"iss": "me", "iat": NOW, "exp": NOW + 300, "nbf": NOW - 60}


def test_an_id_is_another_each_time() -> None:
    config = signed(assertion_claim_jti_include=True)
    ids = {read(make_assertion(config, NOW))[1]["jti"] for _ in range(2)}
    assert len(ids) == 2


def test_a_key_on_a_curve(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_text(pem(CURVE, PASSPHRASE))
    config = made_of(
        assertion_private_key_file=file,
        assertion_private_key_passphrase=PASSPHRASE,
        assertion_algorithm="es256",
    )
    header, claims = read(make_assertion(config, NOW), CURVE)
    assert (header["alg"], claims["iss"]) == ("ES256", "me")


def test_a_template_adds_to_header_and_claims_but_not_to_the_times(tmp_path: Path) -> None:
    file = tmp_path / "template.json"
    file.write_text(json.dumps({"header": {"kid": "k1", "alg": "none"}, "payload": {"iss": "it", "exp": 1, "x": [1]}}))
    header, claims = read(make_assertion(signed(assertion_template_file=file), NOW))
    assert header == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert claims == {"iss": "it", "x": [1], "iat": NOW, "exp": NOW + 300, "nbf": NOW - 60}
    file.write_text("{}")
    assert read(make_assertion(signed(assertion_template_file=file), NOW))[1]["iss"] == "me"


def test_an_assertion_of_another_program_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "assertion.jwt"
    config = made_of(assertion_file=file, assertion_claim_iss=None)
    for text in ("a.b.c", "d.e.f"):
        file.write_text(f"{text}\n")
        assert make_assertion(config, NOW) == text


def test_a_client_shows_its_assertion_instead_of_a_secret() -> None:
    with endpoint(answering(200, GOT)) as (url, seen):
        token = fetch_token(signed(token_endpoint_url=url, client_id="me", scope="read write"))
    assert token.value == "tok"
    (asked,) = seen
    [assertion] = asked["form"].pop("client_assertion")
    assert read(assertion)[1]["iss"] == "me"
    assert asked["form"] == {
        "grant_type": ["client_credentials"],
        "client_assertion_type": ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"],
        "client_id": ["me"],
        "scope": ["read write"],
    }
    assert asked["who"] is None


def test_the_assertion_is_the_grant() -> None:
    with endpoint(answering(200, GOT)) as (url, seen):
        fetch_token(signed(token_endpoint_url=url, grant_type=JWT_BEARER, scope="read"))
    (asked,) = seen
    [assertion] = asked["form"].pop("assertion")
    assert read(assertion)[1]["iss"] == "me"
    assert asked["form"] == {"grant_type": [JWT_BEARER], "scope": ["read"]}
    assert asked["who"] is None


def test_a_refusal_does_not_show_the_assertion(tmp_path: Path) -> None:
    file = tmp_path / "assertion.jwt"
    file.write_text("secret.secret.secret")
    body = b'{"error":"invalid_client","error_description":"secret.secret.secret"}'
    with endpoint(answering(401, body)) as (url, _), pytest.raises(AuthenticationFailed) as caught:
        fetch_token(made_of(token_endpoint_url=url, assertion_file=file))
    assert "secret" not in str(caught.value)
    assert "answered 401: invalid_client *** (see sasl_oauthbearer_assertion_... and _scope)" in str(caught.value)


def test_metadata_of_azure_is_requested_without_a_secret() -> None:
    with endpoint(answering(200, GOT)) as (url, seen):
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
            "sasl.oauthbearer.token.endpoint.url": url.partition("?")[0],
            "sasl.oauthbearer.config": "query=api-version=2025-04-07&resource=api://app",
        }
        token = fetch_token(make_config(ClientConfig, dict(settings_from(properties).client)))
    assert token.value == "tok"
    assert seen == [
        {"path": "/token?api-version=2025-04-07&resource=api://app", "who": None, "metadata": "true"},
    ]


def test_the_metadata_service_has_an_address() -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
        "sasl.oauthbearer.config": "query=resource=a",
    }
    url = settings_from(properties).client["sasl_oauthbearer_token_endpoint_url"]
    assert url == "http://169.254.169.254/metadata/identity/oauth2/token?resource=a"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"assertion_private_key_pem": "x"}, "it holds no private key in PEM"),
        ({"assertion_private_key_pem": pem(RSA, PASSPHRASE)}, "is encrypted: set sasl_oauthbearer_assertion_private_k"),
        (
            {"assertion_private_key_pem": pem(RSA, PASSPHRASE), "assertion_private_key_passphrase": "another"},
            "sasl_oauthbearer_assertion_private_key_passphrase is wrong, or it is damaged",
        ),
        ({"assertion_algorithm": "ES256"}, "cannot sign an assertion by ES256"),
        ({"assertion_private_key_pem": pem(CURVE)}, "cannot sign an assertion by RS256"),
        ({"assertion_private_key_pem": None, "assertion_private_key_file": "none.pem"}, "No such file or directory"),
        ({"assertion_file": "none.jwt"}, "sasl_oauthbearer_assertion_file 'none.jwt' cannot be read"),
        ({"assertion_template_file": "none.json"}, "sasl_oauthbearer_assertion_template_file 'none.json' cannot be"),
    ],
)
def test_what_cannot_be_signed_is_told(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_assertion(signed(**more), NOW)
    assert told in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("text", ["x", "[]", '{"header": 1}', '{"payload": []}', "[" * 100_000])
def test_a_template_that_is_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "template.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="must be a JSON object with the objects header and payload"):
        make_assertion(signed(assertion_template_file=file), NOW)


@pytest.mark.parametrize("text", ["", "x", "a.b", "a.b c.d", "ä.b.c"])
def test_a_file_without_an_assertion(text: str, tmp_path: Path) -> None:
    file = tmp_path / "assertion.jwt"
    file.write_text(text)
    with pytest.raises(ConfigError, match="holds no JWT"):
        make_assertion(made_of(assertion_file=file), NOW)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "an assertion needs sasl_oauthbearer_assertion_private_key_file or "),
        ({"assertion_claim_iss": None, "grant_type": JWT_BEARER}, "an assertion needs"),
        ({"assertion_private_key_pem": "x", "assertion_private_key_file": "y"}, "are two sources of the same"),
        ({"grant_type": "password"}, "sasl_oauthbearer_grant_type must be one of 'client_credentials', 'urn:"),
        ({"assertion_algorithm": "none"}, "must be one of 'RS256', 'ES256'"),
        ({"assertion_claim_exp_seconds": 0}, "must be a whole number from 1"),
        ({"assertion_file": "f", "token_endpoint_url": None}, "'oidc' needs sasl_oauthbearer_token_endpoint_url"),
        ({"assertion_file": "f", "metadata_authentication_type": "azure_imds"}, "'azure_imds' sends no assertion"),
        ({"assertion_claim_iss": None}, "'oidc' needs sasl_oauthbearer_client_id"),
    ],
)
def test_contradictory_settings_are_told(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made_of(**more)
    assert told in str(caught.value)


def test_no_repr_shows_a_key() -> None:
    config = signed(assertion_private_key_passphrase="s3cret")
    assert "BEGIN" not in repr(config)
    assert "s3cret" not in repr(config)
    assert not attrs.fields(ClientConfig).sasl_oauthbearer_assertion_private_key_pem.repr


@pytest.mark.parametrize("more", [{"sasl.oauthbearer.grant.type": JWT_BEARER},
                                  {"sasl.oauthbearer.jwt.retriever.class": "x.JwtBearerJwtRetriever"}])  # fmt: skip
def test_properties_of_java_and_librdkafka(more: dict[str, str], tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text(pem(RSA))
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://login.example.org/token",
        "sasl.oauthbearer.assertion.private.key.file": str(key),
        "sasl.oauthbearer.assertion.claim.iss": "me",
        "sasl.oauthbearer.assertion.claim.exp.seconds": "30",
        **more,
    }
    config = make_config(ClientConfig, dict(settings_from(given).client))
    assert config.sasl_oauthbearer_grant_type == JWT_BEARER
    assert read(make_assertion(config, NOW))[1]["exp"] == NOW + 30


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"sasl.oauthbearer.jwt.retriever.class": "org.example.Own"}, "'org.example.Own' cannot be used: known are"),
        ({"sasl.oauthbearer.metadata.authentication.type": "aws_iam"}, "'aws_iam' cannot be used: known is azure_imds"),
    ],
)
def test_sources_of_tokens_that_this_client_lacks(more: dict[str, str], told: str) -> None:
    with pytest.raises(KafkaError, match=told):
        settings_from(more)


def test_signing_without_the_library_names_the_extra() -> None:
    program = """
import sys
sys.modules["jwt"] = None
from aiokafkawire.config.oauth import OAuthConfig
from aiokafkawire.network.oauth_assertions import make_assertion
make_assertion(OAuthConfig(sasl_oauthbearer_assertion_private_key_pem="x"), 1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "needs the library PyJWT: pip install 'aiokafkawire[oauth]'" in done.stderr


@pytest.mark.anyio
async def test_a_login_by_an_assertion() -> None:
    token = unsecured(time.time())
    with endpoint(answering(200, json.dumps({"access_token": token}).encode())) as (url, seen):
        options = {**SETTINGS, "sasl_oauthbearer_token_endpoint_url": url}
        async with Broker(oauthbearer=True) as broker:
            await there_and_back(broker.bootstrap, **options, sasl_oauthbearer_assertion_private_key_pem=pem(RSA))
    assert len(seen) == 1  # the connections share the token
