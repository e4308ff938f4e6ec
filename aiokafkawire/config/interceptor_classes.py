"""Makes the interceptors that the property ``interceptor.classes`` names."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from ..argument_checks import shown
from ..errors import ConfigError

__all__ = ("interceptors_of",)

_PRODUCER: Final = ("on_send", "on_acknowledgement")
_CONSUMER: Final = ("on_consume", "on_commit")


def interceptors_of(given: object) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the interceptors for producers, and those for consumers; one object may be both.

    Args:
        given: names of classes, as ``"package.module:Class"``, in a list or separated by commas. Each class is called
            without arguments.

    Raises:
        ConfigError: a name is a Java class's, or names no class of interceptors, or its module cannot be imported.
    """
    names: Iterable[object]
    if isinstance(given, str):
        names = filter(None, (part.strip() for part in given.split(",")))
    elif isinstance(given, list | tuple):
        names = given
    else:
        raise ConfigError(f"interceptor.classes must be names of classes, got {shown(given)}")
    made = [_made(name) for name in names]
    return tuple(one for one in made if _has(one, _PRODUCER)), tuple(one for one in made if _has(one, _CONSUMER))


def _made(name: object) -> Any:
    if not isinstance(name, str):
        raise ConfigError(f"interceptor.classes must be names of classes, got {shown(name)}")
    module, colon, wanted = name.partition(":")
    if not colon:
        raise ConfigError(
            f"interceptor.classes names {name!r}, as a Java client does: name a Python class as 'package.module:Class'"
        )
    try:
        found: Any = import_module(module)
        for part in wanted.split("."):
            found = getattr(found, part)
        made = found()
    except Exception as error:
        raise ConfigError(f"interceptor.classes: {name!r} cannot be made: {type(error).__name__}: {error}") from error
    if not _has(made, _PRODUCER) and not _has(made, _CONSUMER):
        raise ConfigError(f"interceptor.classes: {name!r} has none of the methods {', '.join(_PRODUCER + _CONSUMER)}")
    return made


def _has(made: object, methods: tuple[str, ...]) -> bool:
    return any(callable(getattr(made, name, None)) for name in methods)
