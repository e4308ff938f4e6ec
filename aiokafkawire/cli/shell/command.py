"""The click classes of the shell: shared options, and help with examples."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

import click

from .shared_options import SHARED, shared_from, shared_parameters

__all__ = ("CONTEXT_SETTINGS", "ShellCommand", "ShellGroup")

CONTEXT_SETTINGS: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _WithSharedOptions(click.Command):
    """A command or a group with the shared options, and with examples in its help."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), connects: bool = True, **options: Any) -> None:
        options.setdefault("context_settings", dict(CONTEXT_SETTINGS))
        super().__init__(*args, **options)
        self.examples: tuple[str, ...] = tuple(examples)
        if connects:
            self.params: list[click.Parameter] = [*self.params, *shared_parameters()]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then those that all verbs share."""
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None and isinstance(parameter, click.Option):
                (shared if parameter.name in SHARED else own).append(row)
        with formatter.section("Options"):
            formatter.write_dl(own)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        if shared:
            with formatter.section("Options of every command"):
                formatter.write_dl(shared)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, without wrapping, and then the epilog."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"  {line}\n")
        super().format_epilog(ctx, formatter)


class ShellCommand(_WithSharedOptions):
    """A command of the shell. Its function gets the shared options first, then its own parameters by name.

    Invoking the command does not call the function: it returns a function without arguments that does, so that parsing
    ends before the command runs.

    Args:
        examples: lines for the help.
        connects: whether the command has the shared options.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Return a function that runs the command, and returns its exit status."""
        assert self.callback is not None
        own = {name: value for name, value in ctx.params.items() if name not in SHARED}
        return partial(self.callback, shared_from(ctx), **own)


class ShellGroup(_WithSharedOptions, click.Group):
    """A verb with commands of its own, such as ``topics``; its methods make commands of the shell."""

    command_class: type[click.Command] | None = ShellCommand
    group_class: type[click.Group] | type[type] | None = type

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.callback: Callable[..., Any] | None = None  # only its docstring is of use, as the help

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown one, suggest a similar one."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(args[0], names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
            raise click.UsageError(f"there is no command {args[0]!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)
