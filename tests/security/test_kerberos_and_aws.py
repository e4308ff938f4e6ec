"""GSSAPI over a library that is played here, and where AWS credentials come from."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from support.connecting import connected
from support.scripted_broker import Asked, ScriptedBroker

from aiokafkawire.errors import AuthenticationFailed, ConfigError
from aiokafkawire.network.aws_credentials import find_credentials
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from aiokafkawire.types import AwsCredentials

SECURITY: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}


class Context:
    """A security context as python-gssapi has it: two steps, then it wraps by turning bytes round."""

    actual_flags = 3

    def __init__(self, name: str, usage: str, flags: int, mech: str) -> None:
        self.name, self.complete = name, False
        assert (usage, flags, mech) == ("initiate", 3, "krb5")

    def step(self, token: bytes | None = None) -> bytes | None:
        if token is None:
            return f"ticket for {self.name}".encode()
        if token != b"and mine":
            raise RuntimeError("Major (851968): Unspecified GSS failure")
        self.complete = True
        return None

    def unwrap(self, message: bytes) -> Any:
        return SimpleNamespace(message=message[::-1])

    def wrap(self, message: bytes, encrypt: bool) -> Any:
        assert not encrypt
        return SimpleNamespace(message=message[::-1])


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    played = SimpleNamespace(
        Name=lambda name, kind: name,
        NameType=SimpleNamespace(hostbased_service=1),
        MechType=SimpleNamespace(kerberos="krb5"),
        RequirementFlag=SimpleNamespace(mutual_authentication=1, integrity=2),
        SecurityContext=Context,
    )
    monkeypatch.setitem(sys.modules, "gssapi", played)


class Kerberised(ScriptedBroker):
    """Answers a login with what it was given, token by token."""

    def __init__(self, *answers: bytes) -> None:
        super().__init__()
        self.tokens: list[bytes] = []
        left = list(answers)

        def answer(asked: Asked) -> SaslAuthenticateResponse:
            self.tokens.append(bytes(asked.request.auth_bytes))
            return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=left.pop(0))

        self.on[ApiKey.SASL_HANDSHAKE] = lambda _: SaslHandshakeResponse(error_code=0, mechanisms=["GSSAPI"])
        self.on[ApiKey.SASL_AUTHENTICATE] = answer


@pytest.mark.anyio
@pytest.mark.usefixtures("library")
async def test_a_ticket_is_shown_and_no_layer_chosen() -> None:
    async with Kerberised(b"and mine", bytes((7, 0, 255, 255))[::-1], b"") as broker:
        async with connected(broker.connect, **SECURITY, sasl_kerberos_service_name="broker"):
            pass
        assert broker.tokens == [b"ticket for broker@b", b"", bytes((1, 0, 0, 0))[::-1]]


@pytest.mark.anyio
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ((b"not mine",), r"^b:9092: GSSAPI: Major \(851968\): Unspecified GSS failure \(is there a ticket\?"),
        ((b"and mine", bytes((6, 0, 0, 0))[::-1]), "requires a SASL security layer"),
        ((b"and mine", b""), "requires a SASL security layer"),
        ((b"and mine", b"\1" * 100), "requires a SASL security layer"),
    ],
)
async def test_a_broker_that_lies(answers: tuple[bytes, ...], told: str) -> None:
    async with Kerberised(*answers) as broker:
        with pytest.raises(AuthenticationFailed, match=told):
            async with connected(broker.connect, **SECURITY):
                raise AssertionError("opened")


@pytest.mark.anyio
@pytest.mark.usefixtures("library")
async def test_a_broker_that_does_not_prove_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "actual_flags", 2)
    async with Kerberised(b"and mine", bytes((7, 0, 255, 255))[::-1], b"") as broker:
        with pytest.raises(AuthenticationFailed, match="did not prove its identity"):
            async with connected(broker.connect, **SECURITY):
                raise AssertionError("opened")


@pytest.mark.anyio
@pytest.mark.usefixtures("library")
async def test_a_library_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "step", lambda *_: b"again")
    async with Kerberised(*[b"on and on"] * 30) as broker:
        with pytest.raises(AuthenticationFailed, match="did not finish after 20 steps"):
            async with connected(broker.connect, **SECURITY):
                raise AssertionError("opened")


@pytest.mark.anyio
async def test_without_the_library_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    async with Kerberised() as broker:
        with pytest.raises(ConfigError, match=r"pip install 'aiokafkawire\[kerberos\]'"):
            async with connected(broker.connect, **SECURITY):
                raise AssertionError("opened")


# --- AWS ---------------------------------------------------------------------------------------------------------

NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def test_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(NAMES, ("id", "key", "token"), strict=True):
        monkeypatch.setenv(name, value)
    assert find_credentials() == AwsCredentials("id", "key", "token")
    monkeypatch.delenv(NAMES[2])
    assert find_credentials() == AwsCredentials("id", "key", None)


def session(found: Any) -> Any:
    def get_credentials() -> Any:
        if isinstance(found, Exception):
            raise found
        return None if found is None else SimpleNamespace(get_frozen_credentials=lambda: found)

    return SimpleNamespace(Session=lambda: SimpleNamespace(get_credentials=get_credentials))


def test_credentials_that_botocore_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(ConfigError, match="set sasl_aws_credentials, or AWS_ACCESS_KEY_ID and "):
        find_credentials()
    monkeypatch.setitem(sys.modules, "botocore", SimpleNamespace())
    found = SimpleNamespace(access_key="id", secret_key="key", token="token")
    monkeypatch.setitem(sys.modules, "botocore.session", session(found))
    assert find_credentials() == AwsCredentials("id", "key", "token")
    monkeypatch.setitem(sys.modules, "botocore.session", session(None))
    with pytest.raises(ConfigError, match="botocore found none"):
        find_credentials()
    monkeypatch.setitem(sys.modules, "botocore.session", session(RuntimeError("s3cret")))
    with pytest.raises(AuthenticationFailed, match=r"^botocore found no AWS credentials: RuntimeError$"):
        find_credentials()


@pytest.mark.anyio
async def test_a_provider_of_aws_credentials_that_gives_something_else() -> None:
    options: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "AWS_MSK_IAM",
        "sasl_aws_region": "x",
    }
    async with Kerberised() as broker:
        with pytest.raises(ConfigError, match="sasl_aws_credentials must return AwsCredentials, not a tuple"):
            async with connected(broker.connect, **options, sasl_aws_credentials=lambda: ("id", "key")):
                raise AssertionError("opened")


@pytest.mark.anyio
@pytest.mark.parametrize("given", [AwsCredentials("id", "Zq7\ud800"), AwsCredentials("id", b"Zq7")])  # type: ignore[arg-type]
async def test_aws_credentials_that_are_no_text_are_not_shown(given: AwsCredentials) -> None:
    options: dict[str, Any] = {"sasl_mechanism": "AWS_MSK_IAM", "sasl_aws_region": "x"}
    async with Kerberised() as broker:
        with pytest.raises(ConfigError, match="sasl_aws_credentials returned credentials that are no text") as caught:
            async with connected(
                broker.connect,
                security_protocol="SASL_PLAINTEXT",
                sasl_aws_credentials=lambda: given,
                **options,
            ):
                raise AssertionError("opened")
    assert "Zq7" not in repr(caught.value)
