"""What is said to proxies, byte by byte, and what proxies may answer: only documented errors come of it, and soon."""

from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.config.network import Proxy, parse_proxy
from aiokafkawire.errors import ConfigError, ProxyFailed, ProxyRefused, WireError
from aiokafkawire.network.proxy_handshake import handshake
from aiokafkawire.types import Address

BROKER = Address("kafka-1.internal", 9092)
SOCKS5, SOCKS5_LOGIN = parse_proxy("socks5://p:1080"), parse_proxy("socks5://al%40ice:s3cr%3At@p:1080")
HTTP, HTTP_LOGIN = parse_proxy("http://p:3128"), parse_proxy("http://al%40ice:s3cr%3At@p:3128/")
ASKS = b"\5\1\0\3\x10kafka-1.internal\x23\x84"


def run(proxy: Proxy, answers: bytes, to: Address = BROKER, *, piece: int = 10**6) -> tuple[list[bytes], bytes]:
    """What is said while a proxy says this, so many bytes at once; and what of it was not read."""
    conversation, said, heard = handshake(proxy, to), list[bytes](), None
    for _ in range(100_000):
        try:
            turn = conversation.send(heard)
        except StopIteration:
            return said, answers
        if isinstance(turn, bytes):
            said.append(turn)
            heard = None
            continue
        assert turn > 0
        heard, answers = answers[: min(turn, piece)], answers[min(turn, piece) :]
        if not heard:
            raise EOFError(said)
    raise AssertionError("no end")


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_socks5_as_the_rfc_has_it(piece: int) -> None:
    said, _ = run(SOCKS5, b"\5\0\5\0\0\1\1\2\3\4\0\1rest", piece=piece)
    assert said == [b"\5\1\0", ASKS]


def test_nothing_behind_the_answer_is_read() -> None:
    for address in (b"\1\1\2\3\4", b"\3\4host", b"\4" + bytes(16)):
        assert run(SOCKS5, b"\5\0\5\0\0" + address + b"\0\1rest")[1] == b"rest"


def test_socks5_with_a_login() -> None:
    said, _ = run(SOCKS5_LOGIN, b"\5\2\1\0\5\0\0\1\1\2\3\4\0\1")
    assert said == [b"\5\2\0\2", b"\1\6al@ice\6s3cr:t", ASKS]
    assert run(SOCKS5_LOGIN, b"\5\0\5\0\0\1\1\2\3\4\0\1")[0] == [b"\5\2\0\2", ASKS]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", b"\1\x0a\0\0\1"),
        ("::1", b"\4" + bytes(15) + b"\1"),
        ("bücher.example", b"\3\x15xn--bcher-kva.example"),
        ("straße.example", b"\3\x15xn--strae-oqa.example"),  # and not strasse.example, which is another host
    ],
)
def test_socks5_addresses(host: str, address: bytes) -> None:
    said, _ = run(SOCKS5, b"\5\0\5\0\0\1\1\2\3\4\0\1", Address(host, 9092))
    assert said[1] == b"\5\1\0" + address + b"\x23\x84"


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_http_connect(piece: int) -> None:
    asks = b"CONNECT kafka-1.internal:9092 HTTP/1.1\r\nHost: kafka-1.internal:9092\r\n\r\n"
    assert run(HTTP, b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\n", piece=piece)[0] == [asks]
    known = base64.b64encode(b"al@ice:s3cr:t")
    said, _ = run(HTTP_LOGIN, b"HTTP/1.0 299 Fine\n\n", piece=piece)
    assert said == [asks[:-2] + b"Proxy-Authorization: Basic " + known + b"\r\n\r\n"]


def test_http_connect_to_an_ipv6_address() -> None:
    assert run(HTTP, b"HTTP/1.1 200\r\n\r\n", Address("::1", 9092))[0][0].startswith(b"CONNECT [::1]:9092 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("proxy", "answers", "error", "told"),
    [
        (SOCKS5, b"\5\xff", ProxyRefused, "the SOCKS5 proxy p:1080 requires a name and password"),
        (SOCKS5_LOGIN, b"\5\xff", ProxyRefused, "does not support name and password"),
        (SOCKS5_LOGIN, b"\5\2\1\1", ProxyRefused, "refused the name and password"),
        (SOCKS5, b"\5\2", WireError, "chose an authentication method that was not offered: 2"),
        (SOCKS5, b"HTTP/1.1 400", WireError, "did not answer as a SOCKS5 proxy, but with 4854"),
        (SOCKS5, b"\5\0\4\0\0\1", WireError, "but with version 4"),
        (SOCKS5, b"\5\0\5\2\0\1", ProxyRefused, "did not connect to kafka-1.internal:9092: its rules do not allow"),
        (SOCKS5, b"\5\0\5\4\0\1", ProxyFailed, "the host is unreachable"),
        (SOCKS5, b"\5\0\5\x63\0\1", ProxyFailed, "reply 99"),
        (SOCKS5, b"\5\0\5\0\0\7", WireError, "unknown address type: 7"),
        (HTTP, b"HTTP/1.1 407 Log in\r\n\r\n", ProxyRefused, "with 407 Log in: it requires a name and password"),
        (HTTP_LOGIN, b"HTTP/1.1 407 No\r\n\r\n", ProxyRefused, "refused the name and password"),
        (HTTP, b"HTTP/1.1 403 No\x1b[0m\r\n\r\n", ProxyRefused, "403 No?[0m: its rules do not allow"),
        (HTTP, b"HTTP/1.1 502 Bad Gateway\r\nA: b\r\n\r\n<html>", ProxyFailed, "with 502 Bad Gateway"),
        (HTTP, b"HTTP/1.1 100 Continue\r\n\r\n", ProxyFailed, "with 100 Continue"),
        (HTTP, b"\5\0\5\0\0\1", WireError, "did not answer in HTTP"),
        (HTTP, b"SSH-2.0-x\r\n", WireError, "did not answer in HTTP"),
        (HTTP, b"HTTP/1.1 2OO OK\r\n\r\n", WireError, "did not answer in HTTP"),
        (HTTP, b"HTTP/1.1 200 OK\r\n\r\n\0", WireError, "sent bytes after its answer"),
        (HTTP, b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10_000, WireError, "a header larger than 16384 bytes"),
    ],
)
def test_what_proxies_refuse_and_what_is_no_proxy(proxy: Proxy, answers: bytes, error: type, told: str) -> None:
    with pytest.raises(error) as caught:
        run(proxy, answers)
    assert type(caught.value) is error
    assert told in str(caught.value)
    assert "s3cr" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("proxy", [SOCKS5, HTTP])
@pytest.mark.parametrize("host", ["a b", "a\r\nProxy-Authorization: x", "", "a" * 256, "ü" * 300, "\x7f"])
def test_a_host_that_is_none_is_not_said_to_a_proxy(proxy: Proxy, host: str) -> None:
    with pytest.raises(ProxyFailed, match="it is no host name"):
        run(proxy, b"\5\0" * 100, Address(host, 9092))


@given(st.sampled_from([SOCKS5, SOCKS5_LOGIN, HTTP, HTTP_LOGIN]), st.binary(max_size=40), st.integers(1, 10))
def test_only_documented_errors_come_of_hostile_bytes(proxy: Proxy, answers: bytes, piece: int) -> None:
    first = b"\5\0\5\0" if proxy.kind == "socks5" else b"HTTP/1.1 2"
    for said in (answers, first + answers):
        with suppress(ProxyFailed, ProxyRefused, WireError, EOFError):
            run(proxy, said, piece=piece)


# --- the setting ---------------------------------------------------------------------------------------------


def test_urls_are_read() -> None:
    assert parse_proxy("SOCKS5H://[::1]:1080") == Proxy("socks5", Address("::1", 1080))
    assert parse_proxy("http://u:@h:1") == Proxy("http", Address("h", 1), b"u", b"")
    assert repr(SOCKS5_LOGIN) == "Proxy(kind='socks5', at=Address(host='p', port=1080))"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("p:1080", "proxy is not understood: use socks5://host:port"),
        ("ftp://s3cret:s3cret@p:1", "is not understood"),
        ("https://s3cret:s3cret@p:1", "TLS to the proxy is not supported"),
        ("socks5://s3cret:s3cret@p", "proxy needs a port"),
        ("socks5://s3cret:s3cret@p:0", "proxy needs a port"),
        ("socks5://s3cret:s3cret@p:70000", "proxy is no URL"),
        ("socks5://s3cret:s3cret@p:x", "proxy is no URL"),
        ("socks5://s3cret:s3cret@[p:1", "proxy is no URL"),
        ("socks5://p:1/s3cret", "is not understood"),
        ("socks5://p:1?s3cret", "is not understood"),
        ("socks5://s3cret@p:1", "a login needs a name and a password"),
        ("socks5://:s3cret@p:1", "a login needs a name and a password"),
        (f"socks5://s3cret:{'x' * 256}@p:1", "have at most 255 bytes"),
        ("http://s3cret%3A:s3cret@p:1", "cannot contain a colon"),
        ("", "is not understood"),
    ],
)
def test_what_is_no_url_of_a_proxy_is_refused_and_not_shown(url: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_proxy(url)
    assert told in str(caught.value)
    assert "s3cret" not in str(caught.value)
