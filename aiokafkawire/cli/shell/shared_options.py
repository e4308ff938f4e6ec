"""The options that all verbs of the shell share."""

from typing import Any, Final

import attrs
import click

__all__ = ("MAX_SECONDS", "SHARED", "SharedOptions", "shared_from", "shared_parameters")

MAX_SECONDS: Final = 86_400.0


@attrs.frozen(kw_only=True)
class SharedOptions:
    """The values of the shared options; None for an option that is not given."""

    bootstrap: str | None = None
    config: str | None = None
    settings: tuple[str, ...] = ()
    """Settings as ``key=value``."""
    json: bool = False
    timeout: float | None = None
    """In seconds."""
    closed: frozenset[str] = frozenset()
    """The names of the standard streams that were closed when the command began."""


SHARED: Final = ("bootstrap", "config", "settings", "json", "timeout")
"""The names of the shared options' parameters."""


def shared_parameters() -> list[click.Parameter]:
    """Return the shared options, for commands and groups: so they may stand before or after a verb."""
    return [
        click.Option(
            ["-b", "--bootstrap"],
            metavar="HOST:PORT[,...]",
            help="Brokers to connect to first; by default of AIOKAFKAWIRE_BOOTSTRAP.",
        ),
        click.Option(
            ["--config"],
            metavar="FILE",
            type=click.Path(dir_okay=False),
            help="Java's client.properties, with TLS and SASL; by default of AIOKAFKAWIRE_CONFIG.",
        ),
        click.Option(
            ["-X", "settings"],
            metavar="KEY=VALUE",
            multiple=True,
            help="A setting by Kafka's name, such as client.id=me; may be repeated.",
        ),
        click.Option(["--json"], is_flag=True, help="JSON for programs, one object per line."),
        click.Option(
            ["--timeout"],
            metavar="SECONDS",
            type=click.FloatRange(0.001, MAX_SECONDS),
            help="How long to try to connect, and how long a request may take with its retries.",
        ),
    ]


def shared_from(context: click.Context) -> SharedOptions:
    """Return the shared options of a command; those given after it win over those given before it."""
    values: dict[str, Any] = {}
    settings: tuple[str, ...] = ()
    level: click.Context | None = context
    while level is not None:
        for name in SHARED:
            value = level.params.get(name)
            if name == "settings":
                settings = (*(value or ()), *settings)
            elif value and name not in values:
                values[name] = value
        level = level.parent
    closed = context.obj if isinstance(context.obj, frozenset) else frozenset()
    return SharedOptions(settings=settings, closed=closed, **values)
