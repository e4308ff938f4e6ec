"""No secret is in any log, repr, or error, whatever becomes of a login."""

from __future__ import annotations

import base64
import hashlib
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from support.log_scan import LogScan, forms_of, secrets_of
from support.securing import Papers, make_papers
from support.tracebacks import variables_of

from aiokafkawire import Client
from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import AuthenticationFailed, KafkaError
from aiokafkawire.network.aws_msk_iam import aws_msk_iam
from aiokafkawire.network.sasl import Exchange, RunInThread, oauthbearer
from aiokafkawire.network.scram import scram
from aiokafkawire.protocol.messages.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import AwsCredentials, OAuthBearerToken

PASSWORD, OTHER, KEY_PASSWORD, TOKEN = "Zq7-password", "Zq7-other", "Zq7-key", "Zq7.token.Zq7"
MARK = "Zq7"
SASL = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "alice"}
USERS = ("a", "me", "alice")


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode().rstrip("=")


CODED = [form for word in (PASSWORD, OTHER, TOKEN) for form in forms_of(word)]


class Ear(logging.Handler):
    """Hears every record of every logger, formatted with its traceback."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(self.format(record))


@pytest.fixture
def ear() -> Iterator[Ear]:
    root, ear = logging.getLogger(), Ear()
    before = root.level
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    logging.getLogger("aiokafkawire").setLevel(logging.DEBUG)
    yield ear
    logging.getLogger("aiokafkawire").setLevel(logging.NOTSET)
    root.setLevel(before)
    root.removeHandler(ear)


def told(error: BaseException) -> str:
    """An error as a log shows it, and its parts; without the lines of the tests themselves."""
    parts = [repr(error), str(error), *map(str, error.args)]
    while error.__cause__ is not None:
        error = error.__cause__
        parts += [repr(error), str(error)]
    return "\n".join(parts)


def attributes_of(thing: object, depth: int = 6, seen: set[int] | None = None) -> Iterator[str]:
    """The reprs of an object and of all that hangs from it, as a debugger or an error reporter shows them."""
    seen = set() if seen is None else seen
    if id(thing) in seen or depth == 0 or isinstance(thing, str | bytes | int | float | type(None) | type):
        return
    seen.add(id(thing))
    yield repr(thing)
    if not type(thing).__module__.startswith("aiokafkawire"):
        return
    for name in getattr(thing, "__dict__", {}):
        yield from attributes_of(getattr(thing, name), depth - 1, seen)


def encrypted_key(papers: Papers) -> str:
    key = serialization.load_pem_private_key(Path(papers.key).read_bytes(), None)
    how = serialization.BestAvailableEncryption(KEY_PASSWORD.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how).decode()


def runs(papers: Papers) -> list[dict[str, Any]]:
    """Ways to log in to a broker that knows alice, right and wrong."""
    tls = {"ssl_ca_location": papers.ca, "security_protocol": "SASL_SSL"}
    own = {"ssl_certificate_location": papers.certificate, "ssl_key_pem": encrypted_key(papers)}
    alice = {**tls, "sasl_username": "alice", "sasl_password": PASSWORD}
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    token = {**tls, "sasl_mechanism": "OAUTHBEARER"}
    endpoint = {
        "sasl_oauthbearer_method": "oidc",
        "sasl_oauthbearer_token_endpoint_url": f"http://127.0.0.1:1/token?key={OTHER}",
        "sasl_oauthbearer_client_id": "me",
        "sasl_oauthbearer_client_secret": OTHER,
    }
    return [
        *({**alice, "sasl_mechanism": one} for one in mechanisms),
        *({**alice, "sasl_mechanism": one, "sasl_password": OTHER} for one in mechanisms),
        {**alice, "sasl_mechanism": "PLAIN", **own, "ssl_key_password": KEY_PASSWORD},
        {**alice, "sasl_mechanism": "PLAIN", **own, "ssl_key_password": f"{KEY_PASSWORD}-wrong"},
        {**alice, "sasl_mechanism": "PLAIN", "proxy": f"http://me:{OTHER}@127.0.0.1:1", "bootstrap_timeout_ms": 200},
        {**alice, "sasl_mechanism": "PLAIN", "ssl_keystore_location": papers.ca, "ssl_keystore_password": KEY_PASSWORD},
        {**token, **endpoint, "bootstrap_timeout_ms": 200},
        {**token, "sasl_oauthbearer_token": lambda: TOKEN},
        {**token, "sasl_oauthbearer_token": lambda: f"{TOKEN} "},
        {**token, "sasl_oauthbearer_token": lambda: dict[str, str]()[TOKEN]},
        {
            **tls,
            "sasl_mechanism": "AWS_MSK_IAM",
            "sasl_aws_region": "x",
            "sasl_aws_credentials": lambda: AwsCredentials("id", PASSWORD, TOKEN),
        },
    ]


@pytest.mark.anyio
async def test_nothing_shows_a_secret(ear: Ear, tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    shown, opened = list[str](), 0
    async with Broker(
        users={"alice": PASSWORD}, tls=papers.server(), connection_failed_authentication_delay_ms=0
    ) as broker:
        for options in runs(papers):
            client = Client(broker.bootstrap, **options)
            try:
                async with client:
                    opened += 1
                    shown += attributes_of(client)
            except KafkaError as error:
                if isinstance(error.__cause__, KeyError):
                    error.__cause__.args = ()  # the user's own words, of the user's own function
                shown.append(told(error))
                shown.append("".join(traceback.format_exception_only(error)))
                shown += variables_of(error)
            shown += attributes_of(client)
        shown += [repr(one) for one in broker.requests]
    assert opened == 4
    assert ear.heard
    everything = "\n".join([*shown, *ear.heard])
    lines = [line for line in everything.splitlines() if MARK in line or any(one in line for one in CODED)]
    assert lines == []
    assert "PRIVATE KEY" not in everything


@pytest.mark.parametrize(
    ("exchange", "answers"),
    [
        (
            scram("SCRAM-SHA-256", "alice", PASSWORD, "n", max_iterations=4096),
            [b"r=n1,s=c2FsdA==,i=4096", None, b"v=" + base64.b64encode(bytes(32))],
        ),
        (scram("SCRAM-SHA-256", "alice", PASSWORD, "n", max_iterations=4096), [b"r=n1,s=c2FsdA==,i=1"]),
        (
            scram("SCRAM-SHA-256", "alice", PASSWORD, "n", max_iterations=4096),
            [b"r=n1,s=c2FsdA==,i=4096", None, b"e=x"],
        ),
        (oauthbearer({}), [OAuthBearerToken(TOKEN), b'{"status": "invalid_token"}', b""]),
        (aws_msk_iam("b", "eu-1", lambda: 0), [AwsCredentials("id", PASSWORD, TOKEN), b"no"]),
    ],
)
def test_no_variable_of_a_frame_is_a_secret(exchange: Exchange, answers: list[Any]) -> None:
    """Sentry and rich show the variables of frames."""
    step = next(exchange)
    with pytest.raises(AuthenticationFailed) as failed:
        for answer in answers:
            step = exchange.send(step.function() if isinstance(step, RunInThread) else answer)
    shown = list(variables_of(failed.value))
    assert len(shown) > 1
    assert [line for line in shown if MARK in line or any(one in line for one in CODED)] == []
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"salt", 4096)
    assert not any(repr(salted) in line for line in shown)


def test_messages_that_carry_tokens_do_not_show_them() -> None:
    assert MARK not in repr(SaslAuthenticateRequest(auth_bytes=PASSWORD.encode()))
    assert MARK not in repr(SaslAuthenticateResponse(error_code=0, error_message="", auth_bytes=TOKEN.encode()))


# --- what the whole run logs, see tests/conftest.py ------------------------------------------------------------------


@pytest.mark.parametrize("text", [PASSWORD, f"auth={TOKEN}", *(f"Basic {coded(f'{who}:{OTHER}')}" for who in USERS)])
def test_a_secret_that_is_logged_is_found(text: str) -> None:
    scan = LogScan()
    for given in (
        make_config(ClientConfig, {**SASL, "sasl_password": PASSWORD, "proxy": f"http://me:{OTHER}@127.0.0.1:1"}),
        OAuthBearerToken(TOKEN),
    ):
        scan.learn(secrets_of(given))
    told = logging.LogRecord("aiokafkawire", logging.INFO, __file__, 1, "logging in with %s", (text,), None)
    other = logging.LogRecord("aiokafkawire", logging.INFO, __file__, 1, "no password is wrong", (), None)
    for record in (other, told, other):
        scan.handle(record)
    assert scan.leaks() == [f"aiokafkawire: logging in with {text}"]
    assert scan.leaks() == []


def test_a_secret_in_a_field_of_a_line_is_found() -> None:
    scan = LogScan()
    scan.learn([PASSWORD])
    told = logging.LogRecord("aiokafkawire", logging.INFO, __file__, 1, "logging in", (), None)
    told.reason = f"as {PASSWORD}"
    scan.handle(told)
    assert scan.leaks() == [f"aiokafkawire: logging in as {PASSWORD}"]


def test_what_clients_are_given_is_learnt() -> None:
    known = next(one for one in logging.getLogger().handlers if isinstance(one, LogScan)).secrets
    secrets = {f"Zq7-{name}-{token_hex(4)}" for name in ("password", "key", "proxy", "token", "aws", "session")}
    password, key, proxy, token, aws, session = sorted(secrets)
    make_config(ClientConfig, {**SASL, "sasl_password": password, "proxy": f"socks5://me:{proxy}@127.0.0.1:1"})
    make_config(
        ClientConfig, {"security_protocol": "SSL", "ssl_certificate_location": "c.pem", "ssl_key_password": key}
    )
    OAuthBearerToken(token)
    AwsCredentials("id", aws, session)
    assert secrets <= known
