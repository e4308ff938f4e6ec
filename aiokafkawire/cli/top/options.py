"""The options of ``aiokafkawire top``."""

import re
from pathlib import Path

import attrs

from ...config import ClientOptions
from ..exit_status import MISSING, CommandFailed

__all__ = ("Pattern", "TopOptions", "client_settings", "pattern")


@attrs.frozen(kw_only=True)
class TopOptions:
    """The arguments of ``top``.

    ``topics`` and ``groups`` are regular expressions that must match whole names; None for all. ``interval`` is the
    time between two samples, and ``timeout`` the limit for connecting and for each response, both in seconds. With
    ``once`` the command prints one view and ends. With ``json`` it prints JSON, an object in each line. ``settings``
    are the client's, such as those of TLS and SASL.
    """

    bootstrap: str
    settings: ClientOptions = attrs.field(factory=lambda: ClientOptions(), repr=False)
    interval: float = 2.0
    topics: str | None = None
    groups: str | None = None
    once: bool = False
    json: bool = False
    timeout: float = 5.0


@attrs.frozen
class Pattern:
    """The names to show: all, or those that a regular expression matches as a whole."""

    expression: re.Pattern[str] | None = None

    def matches(self, name: str) -> bool:
        """Return whether the name is to be shown."""
        return self.expression is None or self.expression.fullmatch(name) is not None


def pattern(option: str, text: str | None) -> Pattern:
    """Return the pattern of an option's value.

    Raises:
        CommandFailed: the value is not a regular expression.
    """
    if text is None:
        return Pattern()
    try:
        return Pattern(re.compile(text))
    except re.error as error:
        raise CommandFailed(f"{option} is not a regular expression: {text!r}: {error}", MISSING) from None


def client_settings(bootstrap: str | None, config: str | None) -> tuple[str, ClientOptions]:
    """Return the bootstrap servers and the client's settings: those of a ``client.properties``, if there is one.

    Raises:
        CommandFailed: no bootstrap server is given.
        ConfigError: the file has an unknown or invalid setting.
        OSError: the file cannot be read.
    """
    settings = ClientOptions()
    if config is not None:
        from ...config.properties import settings_from

        found = settings_from(Path(config).read_text())
        bootstrap, settings = bootstrap or found.bootstrap_servers, found.client
    if not bootstrap:
        raise CommandFailed("top needs a cluster: --bootstrap HOST:PORT, or AIOKAFKAWIRE_BOOTSTRAP", MISSING)
    return bootstrap, settings
