"""Tokens of OAUTHBEARER: how long they are kept, and where they come from over HTTP."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.securing import make_papers
from support.token_endpoint import answering, endpoint, settings_for

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import AuthenticationFailed, ConfigError, ConnectionLost, KafkaError
from aiokafkawire.network import oauth_tokens, oidc
from aiokafkawire.network.oauth_tokens import Tokens, TokenSchedule, expiry_of
from aiokafkawire.network.oidc import fetch_token
from aiokafkawire.types import OAuthBearerToken


def jwt(claims: object) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}."


@pytest.mark.parametrize(
    ("token", "ends"),
    [
        (jwt({"exp": 1_700_000_000}), 1_700_000_000_000),
        (jwt({"exp": 1_700_000_000.5}), 1_700_000_000_500),
        (jwt({"exp": "1700000000"}), None),
        (jwt({"exp": True}), None),
        (jwt({"exp": 10**30}), None),
        (jwt({"exp": float("nan")}), None),
        (jwt({}), None),
        (jwt([]), None),
        ("opaque", None),
        ("a.b.c", None),
        (f"a.{base64.urlsafe_b64encode(b'[' * 100_000).decode()}.c", None),
    ],
)
def test_a_jwt_says_until_when_it_holds(token: str, ends: int | None) -> None:
    assert expiry_of(token) == ends


@given(st.text())
def test_any_text_says_so_or_not(text: str) -> None:
    for token in (text, f"a.{text}.c"):
        assert isinstance(expiry_of(token), int | None)


def test_a_token_is_replaced_after_most_of_its_time() -> None:
    assert SCHEDULE.refresh_at(1_000, 101_000, 0.5) == 81_000
    assert SCHEDULE.refresh_at(1_000, 500, 0.5) == 1_000


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("options", "lifetime", "chance", "wait"),
    [
        ({}, HOUR, 0.0, 0.8 * HOUR),
        ({}, HOUR, 1.0, 0.85 * HOUR),
        ({"window_factor": 1.0, "window_jitter": 0.25, "buffer_seconds": 0, "min_period_seconds": 0}, HOUR, 1.0, HOUR),
        ({"window_factor": 0.5}, HOUR, 0.0, HOUR / 2),
        ({"buffer_seconds": 1800}, HOUR, 0.0, HOUR / 2),
        ({"min_period_seconds": 3300}, HOUR, 0.0, 3_300_000),
        ({"min_period_seconds": 3301}, HOUR, 0.0, 0.8 * HOUR),
        ({}, 100_000, 0.0, 80_000),
    ],
)
def test_the_settings_decide_when_a_token_is_replaced(
    options: dict[str, float], lifetime: int, chance: float, wait: float
) -> None:
    settings = {f"sasl_login_refresh_{name}": value for name, value in options.items()}
    schedule = TokenSchedule.of(make_config(ClientConfig, settings))
    assert schedule.refresh_at(5, 5 + lifetime, chance) == 5 + int(wait)


def test_the_wait_for_a_token_source_doubles_up_to_its_limit() -> None:
    schedule = TokenSchedule.of(make_config(ClientConfig, {"sasl_login_retry_backoff_max_ms": 1000}))
    assert [schedule.backoff_after(failures) for failures in (1, 2, 4, 5, 5000)] == [100, 200, 800, 1000, 1000]


SCHEDULE = TokenSchedule(0.8, 0.0, 60_000, 300_000, 0, 0)
"""Replaces a token after 80 % of its lifetime, and tries again at once."""


class Clock:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


class Source:
    """Gives tokens that hold for 100 s, or fails."""

    def __init__(self, clock: Clock) -> None:
        self.asked = 0
        self.error: Exception | None = None
        self.clock = clock
        self.ends = True

    async def __call__(self) -> OAuthBearerToken:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        return OAuthBearerToken(f"t{self.asked}", self.clock.now + 100_000 if self.ends else None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def source(clock: Clock) -> Source:
    return Source(clock)


@pytest.fixture
def tokens(source: Source, clock: Clock) -> Tokens:
    return Tokens(source, clock, SCHEDULE, lambda: 0.5)


@pytest.mark.anyio
async def test_connections_share_a_token_until_it_is_time_for_the_next(
    source: Source, tokens: Tokens, clock: Clock
) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(tokens.get)
    assert source.asked == 1
    clock.now += 79_999
    assert (await tokens.get()).value == "t1"
    clock.now += 1
    assert (await tokens.get()).value == "t2"
    tokens.invalidate()
    assert (await tokens.get()).value == "t3"


@pytest.mark.anyio
async def test_a_source_that_fails_matters_when_the_token_has_ended(
    source: Source, tokens: Tokens, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await tokens.get()
    source.error = ConnectionLost("no endpoint")
    clock.now += 90_000
    assert (await tokens.get()).value == "t1"
    assert "keeping the previous one until it expires: no endpoint" in caplog.text
    clock.now += 10_000
    with pytest.raises(ConnectionLost):
        await tokens.get()
    source.error = None
    assert (await tokens.get()).value == "t4"


@pytest.mark.anyio
async def test_a_source_that_failed_is_left_alone_while_the_token_lasts(source: Source, clock: Clock) -> None:
    tokens = Tokens(source, clock, attrs.evolve(SCHEDULE, backoff_ms=1_000, backoff_max_ms=5_000), lambda: 0.5)
    await tokens.get()
    source.error = ConnectionLost("no endpoint")
    clock.now += 90_000
    asked = []
    for step in (0, 999, 1, 1_999, 1):
        clock.now += step
        assert (await tokens.get()).value == "t1"
        asked.append(source.asked)
    assert asked == [2, 2, 3, 3, 4]
    source.error = None
    clock.now += 4_000
    assert (await tokens.get()).value == "t5"
    assert (await tokens.get()).value == "t5"


@pytest.mark.anyio
async def test_a_source_that_failed_is_asked_again_after_the_wait(
    source: Source, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.now += round(seconds * 1000)

    waits = list[float]()
    patched = SimpleNamespace(sleep=sleep, Lock=anyio.Lock, move_on_after=anyio.move_on_after)
    monkeypatch.setattr(oauth_tokens, "anyio", patched)
    tokens = Tokens(source, clock, attrs.evolve(SCHEDULE, backoff_ms=1_000, backoff_max_ms=3_000), lambda: 0.5)
    source.error = ConnectionLost("no endpoint")
    for told in ("^no endpoint$", "^no endpoint$", r"^no endpoint \(the next attempt is in 2.0 s\)$"):
        with pytest.raises(ConnectionLost, match=told):
            await tokens.get()
    assert (source.asked, waits) == (2, [1.0])
    source.error = None
    clock.now -= 1_000_000  # a clock that was set back
    with pytest.raises(ConnectionLost, match=r"in 2\.0 s"):
        await tokens.get()
    clock.now += 1_001_500
    assert (await tokens.get()).value == "t3"
    assert waits == [1.0, 0.5]


@pytest.mark.anyio
async def test_a_token_whose_end_is_not_known_is_not_kept(source: Source, tokens: Tokens) -> None:
    source.ends = False
    assert [(await tokens.get()).value for _ in range(3)] == ["t1", "t2", "t3"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (5, ConfigError, "sasl_oauthbearer_token must return a str or an OAuthBearerToken, not a int"),
        (None, ConfigError, "not a NoneType"),
        ("", ConfigError, "is empty, or has invalid characters"),
        (OAuthBearerToken("t", 999_000), AuthenticationFailed, "expired 1 s ago"),
        (OAuthBearerToken("t", None, {"auth": "x"}), ConfigError, "the SASL extension 'auth'"),
    ],
)
async def test_what_is_no_token(given: Any, kind: type[KafkaError], told: str, clock: Clock) -> None:
    async def fetch() -> Any:
        return given

    with pytest.raises(kind, match=told):
        await Tokens(fetch, clock, SCHEDULE, lambda: 0.5).get()


@pytest.mark.anyio
async def test_a_source_that_keeps_silent_is_given_up_while_the_token_lasts(
    source: Source, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    silent = False

    async def fetch() -> OAuthBearerToken:
        if silent:
            source.asked += 1
            clock.now += 3_000
            await anyio.sleep_forever()
        return await source()

    tokens = Tokens(fetch, clock, SCHEDULE, lambda: 0.5, patience=0.01)
    await tokens.get()
    silent = True
    clock.now += 80_000
    with anyio.fail_after(10):
        assert (await tokens.get()).value == "t1"
        assert "keeping the previous one until it expires: no token within 0.01 s" in caplog.text
        clock.now += 2_999
        assert ((await tokens.get()).value, source.asked) == ("t1", 2)  # or each login would wait for it again
        clock.now += 1
        assert ((await tokens.get()).value, source.asked) == ("t1", 3)
    silent = False
    clock.now += 3_000
    assert (await tokens.get()).value == "t4"


# --- the endpoint ------------------------------------------------------------------------------------------------


def test_a_client_gets_a_token_for_its_secret() -> None:
    with endpoint(answering(200, b'{"access_token":"tok","expires_in":3600,"token_type":"Bearer"}')) as (url, seen):
        token = fetch_token(settings_for(url))
    assert token.value == "tok"
    assert token.expires_at_ms is not None
    (asked,) = seen
    assert asked["form"] == {"grant_type": ["client_credentials"], "scope": ["read write"]}
    assert asked["who"] == "Basic " + base64.b64encode(b"me:s3cret").decode()


@pytest.mark.parametrize(("encoded", "who"), [(False, "m e:s/c+r"), (True, "m+e:s%2Fc%2Br")])
def test_the_id_and_the_secret_are_url_encoded_on_request(encoded: bool, who: str) -> None:
    with endpoint(answering(200, b'{"access_token":"tok"}')) as (url, seen):
        config = attrs.evolve(
            settings_for(url),
            sasl_oauthbearer_client_id="m e",
            sasl_oauthbearer_client_secret="s/c+r",
            sasl_oauthbearer_header_urlencode=encoded,
        )
        fetch_token(config)
    assert seen[0]["who"] == "Basic " + base64.b64encode(who.encode()).decode()


def test_an_endpoint_may_say_the_lifetime_as_text() -> None:
    """As the metadata service of Azure does."""
    with endpoint(answering(200, b'{"access_token":"tok","expires_in":"3600"}')) as (url, _):
        began = time.time_ns() // 1_000_000
        ends = fetch_token(settings_for(url)).expires_at_ms
    assert ends is not None
    assert ends >= began + 3_600_000


@pytest.mark.parametrize(
    "more", ["", ',"expires_in":"soon"', ',"expires_in":"' + "9" * 5000 + '"', ',"expires_in":-1', ',"expires_in":true']
)
def test_an_endpoint_need_not_say_until_when(more: str) -> None:
    with endpoint(answering(200, f'{{"access_token":"tok"{more}}}'.encode())) as (url, _):
        assert fetch_token(settings_for(url)) == OAuthBearerToken("tok")


@pytest.mark.parametrize(
    ("code", "body", "kind", "told"),
    [
        (
            401,
            b'{"error":"invalid_client","error_description":"no s3cret"}',
            AuthenticationFailed,
            "invalid_client no [*]",
        ),
        (400, b'{"error":"invalid_scope"}', AuthenticationFailed, "answered 400: invalid_scope"),
        (403, b"<html>", AuthenticationFailed, "answered 403: Forbidden"),
        (404, b"[]", AuthenticationFailed, "answered 404: Not Found"),
        (500, b"", ConnectionLost, "answered 500"),
        (503, b'{"error":"later"}', ConnectionLost, "answered 503: later"),
        (429, b"", ConnectionLost, "answered 429"),
        (200, b"<html>", AuthenticationFailed, "without an access_token"),
        (200, b'{"access_token":5}', AuthenticationFailed, "without an access_token"),
        (200, b"[" * 100_000, AuthenticationFailed, "without an access_token"),
        (200, b"x" * (1024 * 1024 + 1), ConnectionLost, "its response is larger than"),
    ],
)
def test_an_endpoint_that_gives_none(code: int, body: bytes, kind: type[KafkaError], told: str) -> None:
    with endpoint(answering(code, body)) as (url, _), pytest.raises(KafkaError, match=told) as caught:
        fetch_token(settings_for(url))
    assert type(caught.value) is kind
    assert "http://127.0.0.1:" in str(caught.value)
    for secret in ("s3cret", "x=1", base64.b64encode(b"me:s3cret").decode()):
        assert secret not in str(caught.value)


def test_what_an_endpoint_or_a_proxy_says_moves_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    def garbage(handler: Any) -> None:
        handler.wfile.write(b"\x1b[2Jgarbage of s3cret\x07\r\n\r\n")

    with endpoint(garbage) as (url, _), pytest.raises(ConnectionLost, match=r"\?\[2Jgarbage of \*\*\*") as caught:
        fetch_token(settings_for(url))
    assert str(caught.value).isprintable()
    with proxy(b"HTTP/1.1 407 \x1b[2Jno\r\n\r\n") as (port, asked):
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        with pytest.raises(ConnectionLost, match=r"407 \?\[2Jno$") as caught:
            fetch_token(settings_for("https://login.example.org/token"))
    assert str(caught.value).isprintable()
    assert b"s3cret" not in asked[0]
    assert base64.b64encode(b"me:s3cret") not in asked[0]


@contextlib.contextmanager
def proxy(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A proxy that gives one answer; its port, and what it was asked."""
    asked = list[bytes]()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            asked.append(connection.recv(65536))
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], asked
        thread.join()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_whoever_is_redirected_to_is_not_shown_the_secret(code: int) -> None:
    with (
        endpoint(answering(200, b'{"access_token":"tok"}')) as (other, shown),
        endpoint(answering(code, b"", Location=other)) as (url, _),
        pytest.raises(AuthenticationFailed),
    ):
        fetch_token(settings_for(url))
    assert shown == []


def test_an_endpoint_that_is_not_there_or_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionLost, match="cannot be reached"):
            fetch_token(settings_for(f"http://127.0.0.1:{bound.getsockname()[1]}/"))
        bound.listen()
        monkeypatch.setattr(oidc, "_SECONDS", 0.05)  # it takes the connection, and is silent
        with pytest.raises(ConnectionLost, match=r"cannot be reached: (timed out|no complete response)"):
            fetch_token(settings_for(f"http://127.0.0.1:{bound.getsockname()[1]}/"))
    with endpoint(lambda handler: handler.connection.close()) as (url, _), pytest.raises(ConnectionLost):
        fetch_token(settings_for(url))


@pytest.mark.parametrize("lives", [True, False])
def test_the_addresses_of_an_endpoint_share_its_time(monkeypatch: pytest.MonkeyPatch, lives: bool) -> None:
    now, connect, resolve = [0.0], socket.socket.connect, socket.getaddrinfo

    def slow_connect(made: socket.socket, at: tuple[str, int]) -> None:
        if lives and at[0] == "127.0.0.1":
            connect(made, at)
            return
        now[0] += made.gettimeout() or 0
        raise TimeoutError("timed out")

    def several(_: str, port: int, *more: Any, **options: Any) -> list[Any]:
        return [found for last in (9, 8, 7, 1) for found in resolve(f"127.0.0.{last}", port, *more, **options)]

    with endpoint(answering(200, b'{"access_token":"tok"}')) as (url, _):
        monkeypatch.setattr(socket.socket, "connect", slow_connect)
        monkeypatch.setattr(socket, "getaddrinfo", several)
        monkeypatch.setattr(oidc, "time", SimpleNamespace(monotonic=lambda: now[0], time_ns=lambda: 0))
        with contextlib.nullcontext() if lives else pytest.raises(ConnectionLost, match="timed out"):
            fetch_token(settings_for(url.replace("127.0.0.1", "localhost")))
    assert now == [pytest.approx(7.5 if lives else 10)]


@pytest.mark.parametrize("code", [200, 401])
@pytest.mark.parametrize("part", [b"HTTP/1.1 ", b"{code} x\r\nA: b\r\n", b"{code} x\r\n\r\n{{"])
def test_an_endpoint_that_says_a_byte_now_and_then_is_given_up(
    monkeypatch: pytest.MonkeyPatch, code: int, part: bytes
) -> None:
    def trickle(handler: Any) -> None:
        began = (b"" if part.startswith(b"HTTP") else b"HTTP/1.1 ") + part.replace(b"{code}", b"%d" % code)
        with contextlib.suppress(OSError):
            handler.wfile.write(began)
            while not gone.wait(0.02):
                handler.wfile.write(b"x")

    gone = threading.Event()
    monkeypatch.setattr(oidc, "_SECONDS", 0.2)
    with endpoint(trickle) as (url, _):
        with pytest.raises(KafkaError, match=r"within 0\.2 s|timed out|answered 401"):
            fetch_token(settings_for(url))
        gone.set()


def test_an_endpoint_with_a_certificate_that_is_not_trusted_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    papers = make_papers(tmp_path)
    with endpoint(answering(200, b'{"access_token":"tok"}'), tls=papers.server()) as (url, _):
        with pytest.raises(AuthenticationFailed, match=r"its certificate is not trusted: .*SSL_CERT_FILE"):
            fetch_token(settings_for(url))
        monkeypatch.setenv("SSL_CERT_FILE", papers.ca)
        assert fetch_token(settings_for(url)).value == "tok"


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http://[",
        "https://hö.example.org/",
        "https://a/\x01",
        "https://a/ö",
        "http://a b/",
        "https://a:99999/",
        "https://u:s3cret@a/",
        "ftp://a/",
        "a/b",
        "",
    ],
)
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match="sasl_oauthbearer_token_endpoint_url") as caught:
        settings_for(url)
    assert "s3cret" not in str(caught.value)
