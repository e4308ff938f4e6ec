"""A token endpoint that answers as a test wants."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

from aiokafkawire.config import ClientConfig, make_config

__all__ = ("Answer", "answering", "endpoint", "options_for", "settings_for")

Answer = Callable[[BaseHTTPRequestHandler], None]


def answering(code: int, body: bytes, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@contextmanager
def endpoint(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            seen.append({"path": self.path, "form": parse_qs(body), "who": self.headers["Authorization"]})
            answer(self)

        def do_GET(self) -> None:
            seen.append({"path": self.path, "who": self.headers["Authorization"], "metadata": self.headers["Metadata"]})
            answer(self)

        def log_message(self, *_: Any) -> None:
            """Not to the terminal."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/token?x=1", seen
        finally:
            server.shutdown()
            thread.join()


def options_for(url: str) -> dict[str, Any]:
    """Settings of a client that gets its tokens there."""
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_method": "oidc",
        "sasl_oauthbearer_client_id": "me",
        "sasl_oauthbearer_client_secret": "s3cret",
        "sasl_oauthbearer_scope": "read write",
        "sasl_oauthbearer_token_endpoint_url": url,
    }


def settings_for(url: str) -> ClientConfig:
    return make_config(ClientConfig, options_for(url))
