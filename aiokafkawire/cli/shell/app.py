"""The command ``aiokafkawire`` on click: the verbs, imported when they are used, and completion."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, cast

import click
from click.shell_completion import CompletionItem, shell_complete

from ..plain_verbs import option_names, parse_plain
from .command import CONTEXT_SETTINGS, ShellGroup
from .shared_options import command_line, shared_from
from .usage_text import usage_text
from .verb_list import PLAIN_VERBS, SHELL_VERBS, VERBS

__all__ = ("COMPLETE", "PROGRAM", "complete", "help_text", "parse", "root_command")

PROGRAM: Final = "aiokafkawire"
COMPLETE: Final = "_AIOKAFKAWIRE_COMPLETE"
"""The environment variable by which a completion script asks for completions."""

_LONG: Final = ("--bootstrap", "--config", "-X", "--json", "--timeout")
"""The shared options as ``command_line`` writes them."""

_EXAMPLES: Final = (
    "export AIOKAFKAWIRE_BOOTSTRAP=localhost:9092",
    "aiokafkawire topics create orders --partitions 6",
    "seq 100 | aiokafkawire produce orders         send lines",
    "aiokafkawire consume orders                   print all records, and stop",
    "aiokafkawire consume orders --last 10 --follow",
    "aiokafkawire top                              watch brokers, topics by rate, and the lag of groups",
    "aiokafkawire demo                             stream 336,776 flights through an in-process broker and back",
    "aiokafkawire demo --bootstrap kafka:9092      the same through your own cluster",
    "aiokafkawire broker                           run a broker at 127.0.0.1:9092 for development",
    "aiokafkawire wire --file capture.pcap         decode bytes of the protocol, field by field",
    "aiokafkawire tap --to kafka:9092              show the traffic of any client, and inject faults",
    "aiokafkawire consume --help                   show the help of one command",
)


class _Root(ShellGroup):
    """The group of all verbs; a verb's module is imported when the verb is used."""

    def __init__(self) -> None:
        super().__init__(
            PROGRAM,
            help="A Kafka client for the shell: records, topics, and tools for development.",
            examples=_EXAMPLES,
        )
        # The option is only listed here: main() handles it, with and without click.
        version = click.Option(["--version"], is_flag=True, expose_value=False, help="Show versions, and exit.")
        self.params.insert(0, version)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a verb, and import its module."""
        if cmd_name in PLAIN_VERBS:
            return _PlainVerb(cmd_name)
        if cmd_name not in SHELL_VERBS:
            return None
        module = import_module(f"aiokafkawire.cli.verbs.{cmd_name.replace('-', '_')}")
        return cast("click.Command", module.command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs with their lines of help, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs without importing them, and options."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=about) for name, about in VERBS.items() if name.startswith(incomplete)]


class _PlainVerb(click.Command):
    """A verb whose arguments argparse parses; click only lists and completes it."""

    def __init__(self, name: str) -> None:
        settings = {"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False}
        super().__init__(name, help=PLAIN_VERBS[name], add_help_option=False, context_settings=settings)
        self._verb = name

    def invoke(self, ctx: click.Context) -> Callable[[], int]:
        """Return a function that runs the verb, and returns its exit status."""
        shared = command_line(shared_from(ctx))
        unknown = [option for option in _LONG if option in shared and option not in option_names(self._verb)]
        if unknown:
            raise click.UsageError(f"{self._verb} has no option {unknown[0]}", ctx.parent)
        return parse_plain([self._verb, *shared, *ctx.args], ctx.obj)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the options that argparse knows."""
        return [CompletionItem(name) for name in option_names(self._verb) if name.startswith(incomplete or "-")]


def root_command() -> click.Group:
    """Return the command with all verbs."""
    return _Root()


def parse(arguments: Sequence[str], closed: frozenset[str]) -> Callable[[], int]:
    """Parse a command line; return a function that runs the command and returns its exit status.

    Args:
        arguments: the command line without the program.
        closed: the names of standard streams that were closed when the command began.

    Raises:
        SystemExit: help was printed (0), or the usage is wrong (2) and a line about it is on standard error.
    """
    root = root_command()
    try:
        with root.make_context(PROGRAM, list(arguments), obj=closed) as context:
            run: Callable[[], int] = root.invoke(context)
    except click.exceptions.Exit as ended:
        raise SystemExit(ended.exit_code) from None
    except click.ClickException as wrong:
        print(usage_text(wrong), file=sys.stderr)
        raise SystemExit(wrong.exit_code) from None
    return run


def help_text() -> str:
    """Return the help of the whole command."""
    settings: dict[str, Any] = dict(CONTEXT_SETTINGS)
    root = root_command()
    return root.get_help(click.Context(root, info_name=PROGRAM, **settings))


def complete(instruction: str) -> int:
    """Answer a completion script, whose request is the instruction, and return the exit status."""
    return shell_complete(root_command(), {}, PROGRAM, COMPLETE, instruction)
