"""Writes what is wrong with a command line, in plain words instead of click's, with an example."""

import re
from difflib import get_close_matches
from typing import Final

import click

__all__ = ("usage_text",)

_SIMILAR: Final = 0.75
"""How similar an option must be to be suggested, from 0 to 1; click guesses more freely: --delete for --set."""
_VALUE: Final = re.compile(r"'?(.*?)'? is not (?:a valid|in the range|one of)", re.S)
_UNEXPECTED: Final = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.S)


def usage_text(error: click.ClickException) -> str:
    """Return the lines about an error: what is wrong, an example if the command has one, and where help is."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # click 8.2 and later
        return error.format_message()
    lines = [f"aiokafkawire: {_what(error)}"]
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        example = _example(context)
        lines += [f"for example: {example}"] if example else []
        lines.append(f"help: {context.command_path} --help")
    return "\n".join(lines)


def _what(error: click.ClickException) -> str:
    match error:
        case click.MissingParameter(param=click.Parameter() as param):
            return f"{_name(param)} is missing{_choices(param.type)}"
        case click.NoSuchOption():
            near = get_close_matches(error.option_name, error.possibilities or (), cutoff=_SIMILAR)
            return f"there is no option {error.option_name}" + (f"; did you mean {' or '.join(near)}?" if near else "")
        case click.BadOptionUsage():
            takes_one = "requires an argument" in error.message
            return f"{error.option_name} needs a value" if takes_one else f"{error.option_name} takes no value"
        case click.BadParameter(param=click.Parameter() as param):
            return f"{_name(param)} {_wrong_value(error, param.type)}"
    unexpected = _UNEXPECTED.match(error.format_message())
    if unexpected is not None:
        return f"unexpected {'arguments' if ' ' in unexpected[1] else 'argument'}: {unexpected[1]}"
    return _lower(error.format_message())


def _name(param: click.Parameter) -> str:
    """Return the name of an argument, or the longest one of an option."""
    if isinstance(param, click.Argument):
        shown = param.metavar or ""
        return (param.name or "").upper() if "|" in shown or not shown else shown.strip("[].")
    return max(param.opts, key=len)


def _choices(kind: object) -> str:
    return f": one of {', '.join(map(str, kind.choices))}" if isinstance(kind, click.Choice) else ""


def _wrong_value(error: click.BadParameter, kind: object) -> str:
    found = _VALUE.match(error.message)
    got = f", got {found[1]!r}" if found is not None else ""
    if found is not None and isinstance(kind, click.Choice):
        return f"is one of {', '.join(map(str, kind.choices))}{got}"
    if found is not None and isinstance(kind, click.IntRange):
        bounds = (f" from {kind.min}" if kind.min is not None else "") + (f" to {kind.max}" if kind.max else "")
        return f"must be a whole number{bounds}{got}"
    if found is not None and isinstance(kind, type(click.INT)):
        return f"must be a whole number{got}"
    return f"is wrong: {_lower(error.message)}"


def _example(context: click.Context) -> str:
    """Return the first example of the command, without the words about it; an empty text if there is none."""
    examples: tuple[str, ...] = getattr(context.command, "examples", ())
    with_command = (example for example in examples if context.command_path in example)
    return re.split(r" {2,}", next(with_command, "").strip())[0]


def _lower(message: str) -> str:
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:]
