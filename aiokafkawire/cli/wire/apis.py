"""Finds the classes of APIs and messages by the names that users write."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from ...protocol import api
from ...protocol.api import ApiKey
from ...protocol.message_registry import FAMILIES, request_of
from ...protocol.messages import consumer_protocol, control_records
from ...protocol.schema import Message, Request, Response
from ..exit_status import MISSING, CommandFailed

__all__ = ("all_requests", "api_named", "message_named", "name_of", "name_of_key")

_EMBEDDED: Final = (consumer_protocol, control_records, api)


def name_of(request: type[Request[Response]]) -> str:
    """Return the API's name in Kafka's documentation, such as ``ListOffsets``."""
    return request.__name__.removesuffix("Request")


def name_of_key(api_key: int) -> str:
    """Return the name of the API with this key; empty for an unknown key."""
    return ApiKey(api_key).name.title().replace("_", "") if api_key in FAMILIES else ""


def all_requests() -> Iterator[type[Request[Response]]]:
    """Yield the request class of every API, in the order of keys; this imports all message modules."""
    return (request_of(key) for key in sorted(FAMILIES))


def api_named(text: str) -> tuple[type[Request[Response]], int | None]:
    """Parse ``Metadata:12``, ``metadata`` or ``3:12`` to the request class and the version, None if the text has none.

    Raises:
        CommandFailed: the API or the version is unknown; the message suggests known ones.
    """
    name, version = _parted(text)
    if name.isdecimal() and int(name) in FAMILIES:
        request = request_of(int(name))
    else:
        keys = {_folded(name_of_key(key)): key for key in FAMILIES}
        folded = re.sub(r"(request|response)$", "", _folded(name))
        if folded not in keys:
            raise _unknown("API", name, folded, {folded: name_of_key(key) for folded, key in keys.items()})
        request = request_of(keys[folded])
    _require(request, version, name_of(request))
    return request, version


def message_named(text: str) -> tuple[type[Message], int | None]:
    """Parse ``EndTxnMarker:1`` or ``MetadataResponse`` to the message class and the version, None if the text has none.

    Raises:
        CommandFailed: the message or the version is unknown; the error suggests known ones.
    """
    name, version = _parted(text)
    folded = _folded(name)
    known = {_folded(cls.__name__): cls for cls in _embedded()}
    found: type[Message] | None = known.get(folded)
    if found is None:
        names = {_folded(name_of_key(key) + suffix): key for key in FAMILIES for suffix in ("Request", "Response")}
        if folded not in names:
            spelled = {key: cls.__name__ for key, cls in known.items()}
            spelled |= {
                _folded(name_of_key(key) + suffix): name_of_key(key) + suffix
                for key in FAMILIES
                for suffix in ("Request", "Response")
            }
            raise _unknown("message", name, folded, spelled)
        request = request_of(names[folded])
        found = request if folded.endswith("request") else request.response
    _require(found, version, found.__name__)
    return found, version


def _embedded() -> Iterator[type[Message]]:
    for module in _EMBEDDED:
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, Message):
                yield value


def _parted(text: str) -> tuple[str, int | None]:
    name, colon, version = text.partition(":")
    version = version.strip().lower().removeprefix("v")
    if colon and not (version.isdecimal() and version.isascii() and len(version) < 6):
        raise CommandFailed(f"{text!r}: the colon must be followed by a version, as in Metadata:12", MISSING)
    return name.strip(), int(version) if colon else None


def _require(cls: type[Message], version: int | None, name: str) -> None:
    if version is not None and version not in cls.versions:
        raise CommandFailed(f"{name} v{version} is unknown; known versions: {cls.versions}", MISSING)


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _unknown(what: str, name: str, folded: str, spelled: dict[str, str]) -> CommandFailed:
    near = [spelled[match] for match in get_close_matches(folded, spelled, n=3)]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return CommandFailed(f"unknown {what} {name!r}{hint}", MISSING)
