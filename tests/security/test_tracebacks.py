"""No variable of the client's frames in a traceback is a secret: Sentry and rich show them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.connecting import connected, eventually
from support.log_scan import forms_of
from support.scripted_broker import ScriptedBroker
from support.scripted_logins import handshake
from support.token_endpoint import answering, endpoint
from support.tracebacks import variables_of

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.config.network import parse_proxy
from aiokafkawire.errors import AuthenticationFailed, ConfigError, ConnectionLost, KafkaError, ProxyRefused
from aiokafkawire.network.aws_credentials import find_credentials
from aiokafkawire.network.oauth_assertions import make_assertion
from aiokafkawire.network.oidc import fetch_token
from aiokafkawire.network.proxy_handshake import handshake as proxy_handshake
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.types import Address, AwsCredentials

SECRET = "Zq7-secret"
SASL: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT"}
PLAIN: dict[str, Any] = {**SASL, "sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": SECRET}


def shown(error: BaseException, secret: str = SECRET) -> list[str]:
    """The variables that have the secret, as it is or in Base64."""
    return [one for one in variables_of(error) if any(form in one for form in forms_of(secret))]


async def refused(broker: ScriptedBroker, **options: Any) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        async with connected(broker.connect, **options):
            raise AssertionError("opened")
    return caught.value


# --- logins at brokers -----------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_broker_that_hangs_up_on_a_password() -> None:
    async with ScriptedBroker() as broker, anyio.create_task_group() as tasks:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake

        async def hang_up() -> None:
            await eventually(lambda: bool(broker.peers))
            await broker.peers[0].next()
            await broker.peers[0].stream.aclose()

        tasks.start_soon(hang_up)
        error = await refused(broker, **PLAIN)
    assert isinstance(error, ConnectionLost)
    assert shown(error) == []


@pytest.mark.anyio
async def test_a_broker_that_leaves_a_password_unanswered() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        error = await refused(broker, **PLAIN, request_timeout_ms=50)
    assert shown(error) == []


@pytest.mark.anyio
async def test_a_broker_before_1_0_that_hangs_up_on_a_password() -> None:
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        peer = broker.peers[0]

        def hang_up(frame: bytes) -> Any:
            tasks.start_soon(peer.stream.aclose)
            raise anyio.EndOfStream

        peer._asked = hang_up  # type: ignore[method-assign]
        async with anyio.create_task_group() as tasks:
            with pytest.raises(ConnectionLost) as caught:
                await connection.send_token(f"\0alice\0{SECRET}".encode())
    assert shown(caught.value) == []


# --- logins at proxies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "answers"),
    [("socks5", [None, None, b"\5\2", None, b"\1\1"]), ("http", [None, None, b"HTTP/1.1 407 No\r\n\r\n"])],
)
def test_a_proxy_that_refuses_a_password(kind: str, answers: list[bytes | None]) -> None:
    conversation = proxy_handshake(parse_proxy(f"{kind}://me:{SECRET}@p:1"), Address("b", 9092))
    with pytest.raises(ProxyRefused, match="refused the name and password") as caught:
        for answer in answers:
            conversation.send(answer)
    assert shown(caught.value) == []


# --- tokens and credentials ------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("given", [f"{SECRET}\n", SECRET.encode(), {"access_token": SECRET}])
async def test_a_token_that_will_not_do(given: Any) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        options = {**SASL, "sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": lambda: given}
        error = await refused(broker, **options)
    assert isinstance(error, ConfigError)
    assert shown(error) == []


@pytest.mark.anyio
async def test_aws_credentials_that_will_not_do() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        given: Any = AwsCredentials("id", SECRET.encode())  # type: ignore[arg-type]
        options = {
            **SASL,
            "sasl_mechanism": "AWS_MSK_IAM",
            "sasl_aws_region": "x",
            "sasl_aws_credentials": lambda: given,
        }
        error = await refused(broker, **options)
    assert isinstance(error, ConfigError)
    assert shown(error) == []


def test_half_of_the_aws_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(ConfigError) as caught:
        find_credentials()
    assert shown(caught.value) == []


def test_a_key_in_the_url_of_an_endpoint() -> None:
    options = {**SASL, "sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_method": "oidc"}
    options |= {"sasl_oauthbearer_client_id": "me", "sasl_oauthbearer_client_secret": "Zq8-other"}
    with endpoint(answering(401, b"")) as (url, _), pytest.raises(AuthenticationFailed) as caught:
        location = {"sasl_oauthbearer_token_endpoint_url": f"{url}?key={SECRET}"}
        fetch_token(make_config(ClientConfig, {**options, **location}))
    assert shown(caught.value) == []
    assert shown(caught.value, "Zq8-other") == []


@pytest.mark.parametrize("passphrase", ["Zq8-wrong", None])
def test_a_key_for_assertions_that_cannot_be_decrypted(passphrase: str | None, tmp_path: Path) -> None:
    how = serialization.BestAvailableEncryption(SECRET.encode())
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
    file = tmp_path / "key.pem"
    file.write_bytes(pem)
    for source in ({"key_file": file}, {"key_pem": pem.decode()}):
        settings: dict[str, Any] = {
            f"sasl_oauthbearer_assertion_private_{name}": value for name, value in source.items()
        }
        settings["sasl_oauthbearer_assertion_private_key_passphrase"] = passphrase
        settings |= {"sasl_oauthbearer_token_endpoint_url": "https://x", "sasl_oauthbearer_method": "oidc"}
        config = make_config(ClientConfig, {**SASL, "sasl_mechanism": "OAUTHBEARER", **settings})
        with pytest.raises(ConfigError) as caught:
            make_assertion(config, 0)
        assert shown(caught.value, "Zq8-wrong") == []
        assert not any("PRIVATE KEY" in one for one in variables_of(caught.value))
