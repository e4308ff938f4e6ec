"""Kafka's own assignors, asked in one run of Java."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
from support.apache_kafka import NEEDS, NEWEST, missing, resolve
from support.needing import require

from .cases import Case

__all__ = ("Answer", "ask")

_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


@attrs.frozen
class Answer:
    """What Java said: bytes by member id, or why it failed."""

    assignments: dict[str, bytes]
    user_data: dict[str, bytes | None]
    """What members would put into their next subscriptions."""
    again: dict[str, bytes]
    """Subscriptions, read and written."""
    error: str | None


def ask(cases: Iterable[Case]) -> list[Answer]:
    """What Kafka's newest release says to each. Skips the test where there is no Java compiler, or no Maven."""
    require(missing() or (None if shutil.which("javac") else f"{NEEDS}no `javac` on PATH"))
    program = Path(__file__).with_name("Assign.java")
    done = subprocess.run(
        ["java", *_JVM, "-cp", f"{resolve(NEWEST)}/*", str(program)],
        input="".join(json.dumps(_line(case)) + "\n" for case in cases).encode(),
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return [_answer(json.loads(line)) for line in done.stdout.splitlines()]


def _line(case: Case) -> dict[str, Any]:
    members = [
        (name, one.instance, base64.b64encode(one.subscription(case.assignor)).decode())
        for name, one in case.members.items()
    ]
    topics = {topic: [info.racks for info in infos] for topic, infos in case.topics.items()}
    return {"assignor": case.assignor, "topics": topics, "members": members, "generation": case.generation}


def _answer(said: dict[str, Any]) -> Answer:
    if "error" in said:
        return Answer({}, {}, {}, said["error"])
    read = {
        part: {name: None if text is None else base64.b64decode(text) for name, text in said[part].items()}
        for part in ("members", "user_data", "again")
    }
    return Answer(read["members"], read["user_data"], read["again"], None)  # type: ignore[arg-type]
