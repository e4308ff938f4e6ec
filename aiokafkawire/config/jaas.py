"""Parses the login module in ``sasl.jaas.config``.

Errors contain the names of options, but not their values, which may be secret.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ..errors import ConfigError

__all__ = ("LoginModule", "parse_jaas")

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class LoginModule(NamedTuple):
    """The login module in a ``sasl.jaas.config``: the name of its Java class without the package, and its options."""

    name: str
    options: Mapping[str, str]


_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quote>["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)|"""
    r"""(?P<word>[^\s="';]+)|(?P<mark>[=;]))""",
    re.S,
)
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")


def parse_jaas(text: str) -> LoginModule:
    """Parse a login module: ``org.example.PlainLoginModule required username="alice" password="...";``.

    Single and double quotes are allowed, as in Java.

    Raises:
        ConfigError: the text is not exactly one login module.
    """
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[1][0].lower() not in _FLAGS or tokens[-1] != (";", True):
        raise ConfigError('sasl.jaas.config must be one login module: <class> required <option>="<value>" ... ;')
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    while rest:
        if len(rest) < 3 or rest[0][1] or rest[1] != ("=", True) or rest[2][1]:
            last = f" (after {list(options)[-1]!r})" if options else ""
            raise ConfigError(f'sasl.jaas.config: options are <name>="<value>", of one login module only{last}')
        options[rest[0][0]] = rest[2][0]
        rest = rest[3:]
    return LoginModule(tokens[0][0].rpartition(".")[2], options)


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Return pairs of each token of the text and whether this token is punctuation."""
    found, position, text = [], 0, text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ConfigError("sasl.jaas.config has an unterminated quote, or an unexpected character")
        quoted = match["quoted"]
        if quoted is not None:
            plain = re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted, flags=re.S)
            found.append((plain, False))
        else:
            found.append((match["word"] or match["mark"], match["mark"] is not None))
        position = match.end()
    return found
