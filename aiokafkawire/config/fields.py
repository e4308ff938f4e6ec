"""Makers of the fields that settings are: each checks its value, and says what would do."""

from collections.abc import Callable
from typing import Any

import attrs

from ..argument_checks import INT16, INT32, is_text, shown
from ..errors import ConfigError

__all__ = (
    "INT32",
    "choice",
    "is_text",
    "optional",
    "optional_text",
    "optional_whole",
    "provider",
    "secret",
    "text",
    "whole",
)


def whole(default: int, *, least: int = 0, most: int = INT32) -> Any:
    """A field for a whole number between two bounds, both included."""

    def check(_: object, attribute: "attrs.Attribute[int]", value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ConfigError(f"{attribute.name} must be a whole number from {least} to {most}, got {value!r:.200}")

    return attrs.field(default=default, validator=check)


def choice(default: object, *choices: object) -> Any:
    """A field for one of a few values."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        # 1 == True, and no setting takes a number where it takes a word.
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            named = ", ".join(repr(choice) for choice in choices)
            raise ConfigError(f"{attribute.name} must be one of {named}, got {value!r:.200}")

    return attrs.field(default=default, validator=check)


def text(default: str) -> Any:
    """A field for a string."""

    def check(_: object, attribute: "attrs.Attribute[str]", value: object) -> None:
        if not isinstance(value, str):
            raise ConfigError(f"{attribute.name} must be a string, got {shown(value)}")
        _check_carried(attribute.name, value)

    return attrs.field(default=default, validator=check)


def optional(kind: type, named: str) -> Any:
    """A field for one kind of value, or None."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise ConfigError(f"{attribute.name} must be {named} or None, got {value!r:.200}")

    return attrs.field(default=None, validator=check)


def optional_whole(*, least: int) -> Any:
    """A field for a whole number, or None."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        whole = isinstance(value, int) and not isinstance(value, bool) and least <= value <= INT32
        if value is not None and not whole:
            raise ConfigError(f"{attribute.name} must be None or a whole number from {least} on, got {value!r:.200}")

    return attrs.field(default=None, validator=check)


def secret(kind: type | tuple[type, ...] = str, named: str = "a string") -> Any:
    """A field for what nobody may see, or None: neither its repr nor an error shows it."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value is not None and not isinstance(value, kind):
            raise ConfigError(f"{attribute.name} must be {named} or None, got a {type(value).__name__} (not shown)")
        if value == "":
            raise ConfigError(f"{attribute.name} must not be empty; leave it out, or set it to None")
        if isinstance(value, str) and not is_text(value):
            raise ConfigError(f"{attribute.name} has letters that UTF-8 cannot say (half a surrogate pair)")

    return attrs.field(default=None, repr=False, validator=check)


def optional_text(named: str = "a string", **more: Any) -> Any:
    """A field for a string that is sent as it is, or None; ``more`` are arguments of ``attrs.field``."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value is None:
            return
        if not isinstance(value, str):
            raise ConfigError(f"{attribute.name} must be {named} or None, got {shown(value)}")
        _check_carried(attribute.name, value)

    return attrs.field(default=None, validator=check, **more)


def _check_carried(name: str, value: str) -> None:
    """Raise ConfigError unless a request can carry the string."""
    if not is_text(value):
        raise ConfigError(f"{name} has letters that UTF-8 cannot say (half a surrogate pair)")
    if len(value.encode()) > INT16:
        raise ConfigError(f"{name} must be at most {INT16} bytes long, got {len(value.encode())} bytes")


def provider(converter: Callable[[Any], Any] | None = None) -> Any:
    """A field for a function of the user's that gives something secret, or None."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value is not None and not callable(value):
            raise ConfigError(f"{attribute.name} must be a function or None, got a {type(value).__name__} (not shown)")

    return attrs.field(default=None, repr=False, validator=check, converter=converter)
