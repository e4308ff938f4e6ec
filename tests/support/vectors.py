"""The golden vectors: messages written by Kafka's own Java classes, as JSON and as bytes."""

import gzip
import json
import os
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from aiokafkawire.protocol import api, messages
from aiokafkawire.protocol.schema import Message

OURS = Path(__file__).parent.parent / "data"
"""The vectors that the project keeps."""

DIRECTORY = Path(os.environ.get("AIOKAFKAWIRE_VECTORS") or OURS)
"""Where the vectors are: another set with the same file names takes the place of ours by this variable."""


def vectors(name: str) -> Iterator[dict[str, Any]]:
    """The vectors of ``name.jsonl.gz``, a line each."""
    with gzip.open(DIRECTORY / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def declared_messages() -> dict[str, type[Message]]:
    """Every message class that the package declares, by its name, which no other has.

    Raises:
        ValueError: two modules declare the same message.
    """
    modules = [import_module(f"{messages.__name__}.{one.name}") for one in pkgutil.iter_modules(messages.__path__)]
    found: dict[str, type[Message]] = {}
    for module in (api, *modules):
        for name in module.__all__:
            value = getattr(module, name)
            if not (isinstance(value, type) and issubclass(value, Message)):
                continue
            if found.setdefault(name, value) is not value:
                raise ValueError(f"{name} is declared in {found[name].__module__} and in {value.__module__}")
    return found
