"""Makes attrs fields for settings, which validate their values; an error says which values are valid."""

import os
from typing import Any, TypeAlias

import attrs

from ..argument_checks import INT16, INT32, is_text, shown
from ..errors import ConfigError

__all__ = (
    "INT32",
    "FilePath",
    "choice",
    "is_text",
    "optional",
    "optional_text",
    "optional_integer",
    "path",
    "provider",
    "secret",
    "text",
    "integer",
    "number",
)

FilePath: TypeAlias = str | os.PathLike[str]
"""The path of a file, which the config stores as a string."""


def integer(default: int, *, minimum: int = 0, maximum: int = INT32) -> Any:
    """Return a field for a whole number from ``minimum`` to ``maximum``."""

    def check(_: object, attribute: "attrs.Attribute[int]", value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise ConfigError(
                f"{attribute.name} must be a whole number from {minimum} to {maximum}, got {value!r:.200}",
                setting=attribute.name,
            )

    return attrs.field(default=default, validator=check)


def number(default: float, *, minimum: float, maximum: float) -> Any:
    """Return a field for a number from ``minimum`` to ``maximum``, whole or not."""

    def check(_: object, attribute: "attrs.Attribute[float]", value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
            raise ConfigError(
                f"{attribute.name} must be a number from {minimum} to {maximum}, got {value!r:.200}",
                setting=attribute.name,
            )

    return attrs.field(default=default, validator=check)


def choice(default: object, *choices: object) -> Any:
    """Return a field whose value must be one of ``choices``."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        # Compare types too, since 1 == True.
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            named = ", ".join(repr(choice) for choice in choices)
            raise ConfigError(f"{attribute.name} must be one of {named}, got {value!r:.200}", setting=attribute.name)

    return attrs.field(default=default, validator=check)


def text(default: str) -> Any:
    """Return a field for a string that requests can contain."""

    def check(_: object, attribute: "attrs.Attribute[str]", value: object) -> None:
        if not isinstance(value, str):
            raise ConfigError(f"{attribute.name} must be a string, got {shown(value)}", setting=attribute.name)
        _check_carried(attribute.name, value)

    return attrs.field(default=default, validator=check)


def optional(expected: type, named: str) -> Any:
    """Return a field for a value of the ``expected`` type, or None; ``named`` is the type's name in errors.

    Errors do not show bytes, which may be a file with a private key.
    """

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, expected)):
            given = "bytes (not shown)" if isinstance(value, bytes) else f"{value!r:.200}"
            raise ConfigError(f"{attribute.name} must be {named} or None, got {given}", setting=attribute.name)

    return attrs.field(default=None, validator=check)


def optional_integer(*, minimum: int) -> Any:
    """Return a field for a whole number of at least ``minimum``, or None."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        is_valid = isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= INT32
        if value is not None and not is_valid:
            raise ConfigError(
                f"{attribute.name} must be None or a whole number from {minimum} to {INT32}, got {value!r:.200}",
                setting=attribute.name,
            )

    return attrs.field(default=None, validator=check)


def path() -> Any:
    """Return a field for a path, as a string or a ``pathlib.Path``, or None. No error shows PEM text, perhaps a key."""
    made = optional(str, "a path")
    made.converter = lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value
    made.validator(_refuse_pem)
    return made


def _refuse_pem(_: object, attribute: "attrs.Attribute[Any]", value: str | None) -> None:
    if value is not None and value.lstrip().startswith("-----BEGIN"):
        raise ConfigError(
            f"{attribute.name} must be a path or None, got PEM text (not shown): set the one that ends with _pem",
            setting=attribute.name,
        )


def secret(expected: type | tuple[type, ...] = str, named: str = "a string") -> Any:
    """Return a field for a secret of the ``expected`` type, or None. Neither the repr nor an error shows the value."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value is not None and not isinstance(value, expected):
            raise ConfigError(
                f"{attribute.name} must be {named} or None, got a {type(value).__name__} (not shown)",
                setting=attribute.name,
            )
        if value == "":
            raise ConfigError(
                f"{attribute.name} must not be empty; leave it out, or set it to None", setting=attribute.name
            )
        if isinstance(value, str) and not is_text(value):
            raise ConfigError(
                f"{attribute.name} has characters that UTF-8 cannot encode (half a surrogate pair)",
                setting=attribute.name,
            )

    return attrs.field(default=None, repr=False, validator=check)


def optional_text(named: str = "a string", *, empty: bool = True, **more: Any) -> Any:
    """Return a field for a string that requests can contain, or None; ``more`` are arguments of ``attrs.field``.

    Without ``empty``, the string must not be empty.
    """

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value is None:
            return
        if not isinstance(value, str):
            raise ConfigError(f"{attribute.name} must be {named} or None, got {shown(value)}", setting=attribute.name)
        if not (value or empty):
            raise ConfigError(
                f"{attribute.name} must not be empty; leave it out, or set it to None", setting=attribute.name
            )
        _check_carried(attribute.name, value)

    return attrs.field(default=None, validator=check, **more)


def _check_carried(name: str, value: str) -> None:
    """Raise ConfigError unless a request can contain the string."""
    if not is_text(value):
        raise ConfigError(f"{name} has characters that UTF-8 cannot encode (half a surrogate pair)", setting=name)
    if len(value.encode()) > INT16:
        raise ConfigError(f"{name} must be at most {INT16} bytes long, got {len(value.encode())} bytes", setting=name)


def provider() -> Any:
    """Return a field for a user's function that returns a secret, or None."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value is not None and not callable(value):
            raise ConfigError(
                f"{attribute.name} must be a function or None, got a {type(value).__name__} (not shown)",
                setting=attribute.name,
            )

    return attrs.field(default=None, repr=False, validator=check)
