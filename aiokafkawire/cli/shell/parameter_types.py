"""The types of arguments that click does not have."""

from typing import TYPE_CHECKING, Any

import click

from ..argument_types import MAX_SECONDS, MIN_SECONDS, parse_seconds

__all__ = ("Seconds",)

if TYPE_CHECKING:
    _FloatType = click.ParamType[float]  # generic in newer releases of click
else:
    _FloatType = click.ParamType


class Seconds(_FloatType):
    """A number of seconds. Unlike click's FloatRange it refuses ``nan``.

    Args:
        minimum: the smallest number.
        maximum: the greatest number.
    """

    name: str = "seconds"

    def __init__(self, minimum: float = MIN_SECONDS, maximum: float = MAX_SECONDS) -> None:
        self._minimum, self._maximum = minimum, maximum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of seconds."""
        try:
            return parse_seconds(str(value), self._minimum, self._maximum)
        except ValueError as error:
            self.fail(str(error), param, ctx)
