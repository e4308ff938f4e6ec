"""The options that all verbs of the shell share, for click, and for verbs that argparse parses."""

import argparse
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..argument_types import seconds

if TYPE_CHECKING:
    import click

__all__ = (
    "SHARED",
    "SharedOptions",
    "command_line",
    "declare_shared",
    "shared_from",
    "shared_from_arguments",
    "shared_parameters",
)

_BOOTSTRAP: Final = "HOST:PORT[,...]", "Brokers to connect to first; by default of AIOKAFKAWIRE_BOOTSTRAP."
_CONFIG: Final = "FILE", "Java's client.properties, with TLS and SASL; by default of AIOKAFKAWIRE_CONFIG."
_SETTING: Final = "KEY=VALUE", "A setting by Kafka's name, such as client.id=me; may be repeated."
_JSON: Final = "JSON for programs, one object per line."
_TIMEOUT: Final = "SECONDS", "How long to try to connect, and how long a request may take with its retries."


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


def shared_parameters() -> "list[click.Parameter]":
    """Return the shared options, for commands and groups: so they may stand before or after a verb."""
    import click

    from .parameter_types import Seconds

    return [
        click.Option(["-b", "--bootstrap"], metavar=_BOOTSTRAP[0], help=_BOOTSTRAP[1]),
        click.Option(["--config"], metavar=_CONFIG[0], type=click.Path(dir_okay=False), help=_CONFIG[1]),
        click.Option(["-X", "settings"], metavar=_SETTING[0], multiple=True, help=_SETTING[1]),
        click.Option(["--json"], is_flag=True, help=_JSON),
        click.Option(["--timeout"], metavar=_TIMEOUT[0], type=Seconds(), help=_TIMEOUT[1]),
    ]


def shared_from(context: "click.Context") -> SharedOptions:
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


# --- verbs that argparse parses --------------------------------------------------------------------------------------


def declare_shared(parser: argparse.ArgumentParser, *bootstrap: str) -> None:
    """Add the shared options to a parser of argparse.

    Args:
        parser: the parser of a verb.
        bootstrap: further names of the option ``--bootstrap``.
    """
    group = parser.add_argument_group("options of every command")
    group.add_argument("-b", "--bootstrap", *bootstrap, dest="bootstrap", metavar=_BOOTSTRAP[0], help=_BOOTSTRAP[1])
    group.add_argument("--config", metavar=_CONFIG[0], help=_CONFIG[1])
    group.add_argument("-X", dest="settings", action="append", default=[], metavar=_SETTING[0], help=_SETTING[1])
    group.add_argument("--json", action="store_true", help=_JSON)
    group.add_argument("--timeout", type=seconds, metavar=_TIMEOUT[0], help=_TIMEOUT[1])


def shared_from_arguments(args: argparse.Namespace, closed: frozenset[str]) -> SharedOptions:
    """Return the shared options that argparse has read.

    Args:
        args: the arguments of a parser with the shared options.
        closed: the names of standard streams that were closed when the command began.
    """
    return SharedOptions(
        bootstrap=args.bootstrap,
        config=args.config,
        settings=tuple(args.settings),
        json=args.json,
        timeout=args.timeout,
        closed=closed,
    )


def command_line(options: SharedOptions) -> list[str]:
    """Return the shared options as arguments of a command line."""
    arguments: list[str] = []
    if options.bootstrap is not None:
        arguments += ["--bootstrap", options.bootstrap]
    if options.config is not None:
        arguments += ["--config", options.config]
    for setting in options.settings:
        arguments += ["-X", setting]
    if options.json:
        arguments.append("--json")
    if options.timeout is not None:
        arguments += ["--timeout", str(options.timeout)]
    return arguments
