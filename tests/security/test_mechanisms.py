"""SASL mechanisms alone: the vectors of their RFCs, and brokers that lie. No loop, no stream."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.errors import AuthenticationFailed, ConfigError
from aiokafkawire.network.aws_msk_iam import aws_msk_iam, region_of, signed_payload
from aiokafkawire.network.sasl import (
    Exchange,
    Need,
    RunInThread,
    check_extensions,
    check_token,
    oauthbearer,
    plain,
    renew_after,
)
from aiokafkawire.network.scram import scram
from aiokafkawire.types import AwsCredentials, OAuthBearerToken

TOKEN = OAuthBearerToken("abc.def-._~+/==")
KEYS = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def run(exchange: Exchange, *answers: bytes) -> list[bytes]:
    """What the client said; the broker's answers come one after the other, and then no more are asked for."""
    said: list[bytes] = []
    left = list(answers)
    step: Any = next(exchange)
    try:
        while True:
            if isinstance(step, RunInThread):
                step = exchange.send(step.function())
            elif isinstance(step, Need):
                step = exchange.send(TOKEN if step is Need.TOKEN else KEYS)
            else:
                said.append(step)
                step = exchange.send(left.pop(0))
    except StopIteration:
        assert not left
        return said


def test_plain_is_the_example_of_rfc_4616() -> None:
    assert run(plain("tim", "tanstaaftanstaaf"), b"") == [b"\0tim\0tanstaaftanstaaf"]
    assert run(plain("Jürgen", "pæss"), b"") == ["\0Jürgen\0pæss".encode()]


# --- SCRAM -------------------------------------------------------------------------------------------------------


def rfc(**more: Any) -> Exchange:
    return scram("SCRAM-SHA-256", "user", "pencil", NONCE, **{"max_iterations": 100_000, **more})


def test_scram_is_the_example_of_rfc_7677() -> None:
    assert run(rfc(), SERVER_FIRST.encode(), SERVER_FINAL.encode()) == [
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    ]


def test_a_name_is_escaped() -> None:
    first = next(scram("SCRAM-SHA-512", "a=b,c", "p", "n", max_iterations=4096))
    assert first == b"n,,n=a=3Db=2Cc,r=n"


def test_a_login_by_a_token_says_so_and_the_proof_covers_it() -> None:
    exchange = rfc(tokenauth=True)
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO,tokenauth=true"
    assert len(run(rfc(), SERVER_FIRST.encode(), SERVER_FINAL.encode())) == 2
    with pytest.raises(AuthenticationFailed, match="signature is wrong"):
        run(rfc(tokenauth=True), SERVER_FIRST.encode(), SERVER_FINAL.encode())


def server(mechanism: str, password: str, salt: bytes, iterations: int) -> Callable[[Exchange], list[bytes]]:
    """A broker that knows the password; runs a login, and checks the client's proof."""
    name = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]

    def answer(exchange: Exchange) -> list[bytes]:
        first = next(exchange)
        assert isinstance(first, bytes)
        nonce = first.rpartition(b"r=")[2].decode() + "more"
        challenge = f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}"
        work = exchange.send(challenge.encode())
        assert isinstance(work, RunInThread)
        final = exchange.send(work.function())
        assert isinstance(final, bytes)
        bare, _, proof = final.decode().rpartition(",p=")
        signed = f"{first.decode()[3:]},{challenge},{bare}".encode()
        salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        mixed = bytes(one ^ other for one, other in zip(base64.b64decode(proof), signature, strict=True))
        assert mixed == client_key
        server_key = hmac.digest(salted, b"Server Key", name)
        with pytest.raises(StopIteration):
            exchange.send(b"v=" + base64.b64encode(hmac.digest(server_key, signed, name)))
        return [first, final]

    return answer


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("password", ["pencil", "Gruß = x,y", "pªss Ⅸ"])  # the last, SASLprep would change; Kafka not
def test_both_sides_prove_the_password(mechanism: str, password: str) -> None:
    exchange = scram(mechanism, "user", password, NONCE, max_iterations=4096)
    server(mechanism, password, b"salt", 4096)(exchange)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (SERVER_FIRST.replace(NONCE, "another"), "nonce does not begin with the client's"),
        (f"r={NONCE},s=c2FsdA==,i=4096", "nonce does not begin with the client's"),
        (SERVER_FIRST.replace("4096", "1"), "asks for 1 iterations, allowed are 4096 to 100000"),
        (SERVER_FIRST.replace("4096", "4095"), "asks for 4095 iterations"),
        (SERVER_FIRST.replace("4096", "0"), "asks for 0 iterations"),
        (SERVER_FIRST.replace("4096", "100001"), "asks for 100001 iterations"),
        (SERVER_FIRST.replace("4096", str(2**31)), "asks for 2147483648 iterations"),
        (SERVER_FIRST.replace("4096", "9" * 30), "is no SCRAM message"),
        (SERVER_FIRST.replace("4096", "-4096"), "is no SCRAM message"),
        (SERVER_FIRST.replace("4096", "٤٠٩٦"), "is no SCRAM message"),
        (f"m=ext,{SERVER_FIRST}", "needs an extension"),
        (SERVER_FIRST.replace("W22ZaJ0SNY7soEsUEjb6gQ==", ""), "empty salt"),
        (SERVER_FIRST.replace("gQ==", "gQ="), "is no SCRAM message"),
        (f"{SERVER_FIRST},x={'y' * 5000}", "is no SCRAM message"),
        ("", "is no SCRAM message"),
        ("e=other-error", "is no SCRAM message"),
    ],
)
def test_a_first_answer_that_lies(first: str, told: str) -> None:
    exchange = rfc()
    next(exchange)
    with pytest.raises(AuthenticationFailed, match=told):
        exchange.send(first.encode())


@pytest.mark.parametrize(
    ("final", "told"),
    [
        ("v=" + base64.b64encode(bytes(32)).decode(), "it does not know the password, so"),
        ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4", "is no SCRAM message"),
        ("v=", "it does not know the password, so"),
        ("", "is no SCRAM message"),
        ("e=invalid-proof", "the broker refused the login: 'invalid-proof'"),
    ],
)
def test_a_last_answer_that_lies(final: str, told: str) -> None:
    with pytest.raises(AuthenticationFailed, match=told):
        run(rfc(), SERVER_FIRST.encode(), final.encode())


def test_hashing_is_for_a_thread() -> None:
    exchange = rfc()
    next(exchange)
    work = exchange.send(SERVER_FIRST.encode())
    assert isinstance(work, RunInThread)
    assert "pencil" not in repr(work)


# --- OAUTHBEARER -------------------------------------------------------------------------------------------------


def test_a_token_is_shown_as_rfc_7628_says() -> None:
    assert run(oauthbearer({}), b"") == [b"n,,\x01auth=Bearer abc.def-._~+/==\x01\x01"]
    assert run(oauthbearer({"logicalCluster": "lkc-1"}), b"") == [
        b"n,,\x01auth=Bearer abc.def-._~+/==\x01logicalCluster=lkc-1\x01\x01"
    ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b'{"status":"invalid_token","scope":"s"}', "status 'invalid_token', scope 's'"),
        (b"{}", "it gives no reason"),
        (b"[]", "the token: '\\[\\]'"),
        (b"\xff\xfe", "refused the token"),
        (b"[" * 100_000, "refused the token"),
    ],
)
def test_a_refusal_is_acknowledged_and_told(answer: bytes, told: str) -> None:
    exchange = oauthbearer({})
    next(exchange)
    exchange.send(TOKEN)
    assert exchange.send(answer) == b"\x01"
    with pytest.raises(AuthenticationFailed, match=told) as caught:
        exchange.send(b"")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", ["", "a b", "a\x01host=b", "ü", "a\n", "=", "a=b"])
def test_what_is_no_token_is_not_sent(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_token(OAuthBearerToken(value))
    assert len(value) < 2 or value not in str(caught.value)


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a1": "x"}, {"": "x"}, {"a": ""}, {"a": "x\x01y"}, {"a": "ü"}])
def test_extensions_that_cannot_be_said(extensions: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"^the SASL extension "):
        check_extensions(extensions)


# --- AWS_MSK_IAM -------------------------------------------------------------------------------------------------

HOST = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com"
MOMENT_MS = 1_714_979_289_000  # 2024-05-06 07:08:09 UTC


@pytest.mark.parametrize(
    ("session", "signature"),
    [  # by botocore's SigV4QueryAuth
        (None, "f0721e7aaf4124b988173246ec416041122f9b7547d06d56d620873a0bc86b96"),
        ("to/ken+==", "9b3976ab46093f90b8a0647185cb0a7069c340f1f9d8cc307c63bda054d23ae5"),
    ],
)
def test_a_request_is_signed_as_botocore_does(session: str | None, signature: str) -> None:
    keys = AwsCredentials(KEYS.access_key_id, KEYS.secret_access_key, session)
    told = json.loads(signed_payload(keys, HOST, "eu-west-1", MOMENT_MS))
    assert told["x-amz-signature"] == signature
    assert told.get("x-amz-security-token") == session
    assert (told["version"], told["host"], told["action"]) == ("2020_10_22", HOST, "kafka-cluster:Connect")
    assert told["x-amz-credential"] == "AKIDEXAMPLE/20240506/eu-west-1/kafka-cluster/aws4_request"
    assert told["x-amz-date"] == "20240506T070809Z"
    assert KEYS.secret_access_key not in json.dumps(told)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-west-1"),
        ("boot-x.c1.kafka-serverless.us-east-2.amazonaws.com", "us-east-2"),
        ("b-1.x.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.example.org", None),
        ("localhost", None),
    ],
)
def test_a_brokers_name_tells_the_region(host: str, region: str | None) -> None:
    assert region_of(host) == region


def test_a_login_to_msk() -> None:
    said = run(aws_msk_iam(HOST, None, lambda: MOMENT_MS), b'{"version":"2020_10_22","request-id":"r"}')
    assert said == [signed_payload(KEYS, HOST, "eu-west-1", MOMENT_MS)]
    with pytest.raises(AuthenticationFailed):
        run(aws_msk_iam(HOST, None, lambda: MOMENT_MS), b"")
    with pytest.raises(ConfigError, match="sasl_aws_region is needed"):
        run(aws_msk_iam("localhost", None, lambda: MOMENT_MS))


# --- whatever a broker says --------------------------------------------------------------------------------------

MAKERS: dict[str, Callable[[], Exchange]] = {
    "plain": lambda: plain("a", "b"),
    "scram": rfc,
    "oauthbearer": lambda: oauthbearer({}),
    "aws": lambda: aws_msk_iam(HOST, None, lambda: MOMENT_MS),
}
SERVER = st.one_of(
    st.binary(max_size=64),
    st.text(alphabet="rsive=,mNA1290+/ \0ü", max_size=40).map(str.encode),
    st.builds(
        lambda text, at, byte: text[:at] + bytes([byte]) + text[at + 1 :],
        st.sampled_from([SERVER_FIRST.encode(), SERVER_FINAL.encode(), b'{"status":1}']),
        st.integers(0, 90),
        st.integers(0, 255),
    ),
)


@pytest.mark.parametrize("name", MAKERS)
@given(answers=st.lists(SERVER, max_size=4))
def test_nothing_that_a_broker_says_raises_anything_else(name: str, answers: list[bytes]) -> None:
    exchange = MAKERS[name]()
    with suppress(AuthenticationFailed, IndexError, AssertionError):  # the latter two: more answers wanted, or fewer
        run(exchange, *answers)


@given(answers=st.lists(SERVER, min_size=2, max_size=2))
def test_nobody_but_who_knows_the_password_gets_to_the_end(answers: list[bytes]) -> None:
    if answers == [SERVER_FIRST.encode(), SERVER_FINAL.encode()]:
        return
    with pytest.raises((AuthenticationFailed, IndexError)):
        run(rfc(), *answers)


# --- when to log in again ----------------------------------------------------------------------------------------


def test_a_login_is_renewed_before_it_ends() -> None:
    chance = Random(1)
    waits = [renew_after(60_000, chance) for _ in range(100)]
    assert all(wait is not None and 51 <= wait <= 57 for wait in waits)
    assert len(set(waits)) > 90
    assert renew_after(0, chance) is None
    assert renew_after(-1, chance) is None
    assert renew_after(1, chance) == 1.0  # a hostile broker does not keep us at it
    assert (renew_after(2**63 - 1, chance) or 0) <= 7 * 86_400
