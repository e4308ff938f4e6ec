"""The cases: every alteration of every field of every response that a client's life reaches, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import attrs

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.message_registry import FAMILIES, request_of
from aiokafkawire.protocol.schema import Message

from .alterations import alterations
from .broker_stream import Hostility
from .lives import LIVES, lives_of
from .patches import patches
from .paths import FieldPath, change_fields, paths, succeed
from .wire import WIRE_ALTERATIONS

__all__ = ("Case", "all_cases", "hostility_of", "message_of")


@attrs.frozen
class Case:
    """One alteration in one life; its number among all cases is what repeats it."""

    number: int
    life: str
    api_key: ApiKey
    path: str
    """The field, by the names that lead to it; empty for an alteration of the whole frame."""
    alteration: str
    cap: int | None
    """The newest version that the broker offers, for fields that newer ones lack."""

    def __str__(self) -> str:
        field = f"{message_of(self.api_key)}.{self.path}" if self.path else f"{message_of(self.api_key)}'s frame"
        capped = f" up to v{self.cap}" if self.cap is not None else ""
        return f"case {self.number} ({self.life}{capped}): {field}: {self.alteration}"


def message_of(api_key: int) -> str:
    """Return the name of an API's response."""
    return request_of(api_key).response.__name__


@cache
def all_cases() -> tuple[Case, ...]:
    """Return all cases."""
    named = ((key, life) for key in sorted(FAMILIES) for life in lives_of(key))
    found = (one for key, life in named for one in _of_message(key, life))
    return tuple(Case(number, *one) for number, one in enumerate(found))


def _of_message(key: ApiKey, life: str) -> Iterator[tuple[str, ApiKey, str, str, int | None]]:
    for name in WIRE_ALTERATIONS:
        yield life, key, "", name, None
    request = request_of(key)
    for path in paths(request.response):
        cap = _cap(path, request.stable.last)
        for name in (*alterations(path.field), *patches(path)):
            yield life, key, str(path), name, cap


def _cap(path: FieldPath, newest: int) -> int | None:
    last = path.field.versions.last
    return last if last < newest else None


def hostility_of(case: Case) -> Hostility:
    """Return what is done in a case."""
    if not case.path:
        return Hostility(case.api_key, wire=WIRE_ALTERATIONS[case.alteration])
    path = next(path for path in paths(request_of(case.api_key).response) if str(path) == case.path)
    patch = patches(path).get(case.alteration)
    if patch is None:
        change = alterations(path.field)[case.alteration]

        def patch(message: Message, version: int) -> bytes:
            if LIVES[case.life].shares_client:
                succeed(message)
            change_fields(message, path.names, change)
            return encode(message, version)

    return Hostility(case.api_key, encode=patch, cap=case.cap)
