"""kafka-configs and kafka-delegation-tokens, and clusters with users, whose tokens and settings they show."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from support.apache_kafka import ApacheKafka
from support.java_tools import java_command
from support.login_settings import login

from aiokafkawire.testing.background import BackgroundBroker

__all__ = (
    "ALICE",
    "CONFIGS",
    "TOKENS",
    "Served",
    "login_file",
    "serve",
    "shown",
    "token_rows",
    "tool",
    "until",
)

CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
ALICE = login("SCRAM-SHA-256", "alice", "alice-secret")

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_TOKEN_KEY = "the-key-of-all-tokens"


class Served(NamedTuple):
    """A cluster whose clients log in, or are anonymous and may do everything."""

    guarded: str
    open: str


@contextmanager
def serve(kind: str) -> Iterator[Served]:
    """Run the in-process broker, or Apache Kafka, with the user alice and tokens."""
    java_command()
    if kind == "in-process":
        with (
            BackgroundBroker(users={"alice": "alice-secret"}, delegation_token_secret_key=_TOKEN_KEY) as guarded,
            BackgroundBroker() as open_,
        ):
            yield Served(guarded.bootstrap, open_.bootstrap)
        return
    properties = {
        "delegation.token.secret.key": _TOKEN_KEY,
        "listener.name.guarded.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.guarded.scram-sha-256.sasl.jaas.config": f"{_SCRAM} required;",
    }
    scram = ["SCRAM-SHA-256=[name=alice,password=alice-secret]"]
    with ApacheKafka(properties=properties, listeners={"GUARDED": "SASL_PLAINTEXT"}, scram=scram) as kafka:
        yield Served(kafka.addresses["GUARDED"], kafka.bootstrap)


def tool(bootstrap: str, main: str, *argv: str) -> str:
    """Run a tool to its end; what it prints."""
    command = [*java_command(), main, "--bootstrap-server", bootstrap, *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shown(text: str) -> dict[str, dict[str, str]]:
    """The configs of each entity, from "... configs for <entity> are a=1, b=2"."""
    found = re.findall(r"configs for (?:the )?(.*?) are (.*)", text)
    return {entity: dict(part.split("=", 1) for part in configs.split(", ") if part) for entity, configs in found}


def until(condition: Callable[[], bool]) -> None:
    """Wait for what a broker of Apache Kafka hears from its controller."""
    ends = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends


def login_file(path: Path, user: str, password: str, *, tokenauth: bool = False) -> tuple[str, str]:
    """The arguments by which a tool logs in."""
    more = ' tokenauth="true"' if tokenauth else ""
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={_SCRAM} required username="{user}" password="{password}"{more};\n'
    )
    return "--command-config", str(path)


def token_rows(text: str) -> dict[str, list[str]]:
    """The HMAC, owner, requester and renewers of each token in the tool's table, by the token's id."""
    lines = text.partition("TOKENID")[2].splitlines()[1:]
    return {(words := line.split())[0]: words[1:5] for line in lines if line.strip()}
