"""The options of ``aiokafkawire top``."""

import re

import attrs

from ..exit_status import MISSING, CommandFailed

__all__ = ("Pattern", "TopOptions", "pattern")


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
    except (re.error, OverflowError) as error:
        raise CommandFailed(f"{option} is not a regular expression: {text!r}: {error}", MISSING) from None


@attrs.frozen(kw_only=True)
class TopOptions:
    """The arguments of ``top`` beside the shared options.

    ``interval`` is the time between two samples, and ``timeout`` the limit for each response, both in seconds. With
    ``once`` the command prints one view and ends. With ``json`` it prints JSON, an object in each line.
    """

    topics: Pattern = attrs.field(factory=Pattern)
    groups: Pattern = attrs.field(factory=Pattern)
    interval: float = 2.0
    timeout: float = 5.0
    once: bool = False
    json: bool = False
