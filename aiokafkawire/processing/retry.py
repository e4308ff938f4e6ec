"""How often and when a failed handler is called again."""

from collections.abc import Callable

import attrs

from ..argument_checks import INT32, is_integer, shown
from ..errors import ConfigError

__all__ = ("Retry",)


def _at_least(least: int) -> Callable[[object, "attrs.Attribute[int]", object], None]:
    def check(_: object, attribute: "attrs.Attribute[int]", value: object) -> None:
        if not is_integer(value, least, INT32):
            raise ConfigError(f"{attribute.name} must be an integer of at least {least}, got {shown(value)}")

    return check


def _check_on(_: object, attribute: object, value: object) -> None:
    kinds = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise ConfigError(f"on must be a tuple of exception classes, got {shown(value)}")


@attrs.frozen(kw_only=True)
class Retry:
    """How often :meth:`Client.process` calls a handler with the same record, and how long it waits in between.

    Raises:
        ConfigError: a value is wrong.
    """

    attempts: int = attrs.field(default=5, validator=_at_least(1))
    """How often the handler is called with a record in all; 1 for no retries."""
    backoff_ms: int = attrs.field(default=100, validator=_at_least(0))
    """How long to wait after the first failure; each further failure doubles the wait."""
    max_backoff_ms: int = attrs.field(default=10_000, validator=_at_least(0))
    """The longest wait, from which each differs by up to a fifth, by chance."""
    on: tuple[type[Exception], ...] = attrs.field(default=(Exception,), validator=_check_on)
    """The exceptions after which the handler is called again; any other one is final."""

    def delay(self, error: Exception, attempts: int, chance: float) -> float | None:
        """Return the seconds to wait before the next call; None if there is none.

        Args:
            error: what the handler has raised.
            attempts: how often it was called so far.
            chance: a random number from 0 to 1, which varies the wait by a fifth.
        """
        if attempts >= self.attempts or not isinstance(error, self.on):
            return None
        return self.pause(attempts, chance)

    def pause(self, attempts: int, chance: float) -> float:
        """Return the seconds to wait after so many attempts; ``chance`` is as for :meth:`delay`."""
        doublings = min(attempts - 1, 40)  # more would not change the wait
        milliseconds = min(self.backoff_ms * (1 << doublings), self.max_backoff_ms)
        return milliseconds / 1000 * (0.8 + 0.4 * chance)
