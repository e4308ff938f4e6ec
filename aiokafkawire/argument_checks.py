"""Checks users' arguments. A UsageError's message has the argument's name, the valid values and the given value."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .errors import UsageError

__all__ = (
    "INT16",
    "INT32",
    "INT64",
    "check_flag",
    "check_function",
    "check_integer",
    "check_mapping",
    "check_seconds",
    "check_stop",
    "check_text",
    "flattened",
    "is_integer",
    "is_text",
    "items_of",
    "methods_of",
    "refuse_list",
    "shown",
)

INT16: Final = 2**15 - 1
INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1


def shown(given: object) -> str:
    """Return a value's truncated repr for an error message; append the value's type unless the repr shows the type."""
    text = f"{given!r:.200}"
    is_plain = given is None or type(given) in (str, bytes, int, float, bool, list, tuple, dict, set)
    return text if is_plain or type(given).__name__ in text else f"{text} ({type(given).__name__})"


def is_integer(given: object, minimum: int, maximum: int) -> bool:
    """Return whether the value is an integer from ``minimum`` to ``maximum``; True and False are not integers."""
    return isinstance(given, int) and not isinstance(given, bool) and minimum <= given <= maximum


def check_integer(name: str, given: object, minimum: int = 0, maximum: int = INT32) -> None:
    """Raise UsageError unless the value is an integer from ``minimum`` to ``maximum``."""
    if not is_integer(given, minimum, maximum):
        raise UsageError(f"{name} must be an integer from {minimum} to {maximum}, got {shown(given)}")


def check_seconds(name: str, given: object, *, optional: bool = True) -> None:
    """Raise UsageError unless the value is a number of seconds, 0 or more; None is valid if ``optional``."""
    if given is None and optional:
        return
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not given >= 0:  # type: ignore[operator]  # "not >=" also catches NaN
        none = ", or None" if optional else ""
        raise UsageError(f"{name} must be a number of seconds, 0 or more{none}, got {shown(given)}")


def check_flag(name: str, given: object) -> None:
    """Raise UsageError unless the value is True or False."""
    if not isinstance(given, bool):
        raise UsageError(f"{name} must be True or False, got {shown(given)}")


def check_function(name: str, given: object) -> None:
    """Raise UsageError unless the value is callable."""
    if not callable(given):
        raise UsageError(f"{name} must be a function, got {shown(given)}")


def check_stop(given: object) -> None:
    """Raise UsageError unless the value is None or an event of the event loop; another's wait would block the loop."""
    if given is not None and not (
        hasattr(given, "is_set") and inspect.iscoroutinefunction(getattr(given, "wait", None))
    ):
        raise UsageError(f"stop must be an anyio.Event or None, got {shown(given)}")


def is_text(given: str) -> bool:
    """Return whether UTF-8 can encode the string; half a surrogate pair cannot be encoded."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(name: str, given: object, *, empty: bool = False) -> None:
    """Raise UsageError unless a request can encode the value as a string; an empty string is valid if ``empty``."""
    if not isinstance(given, str) or not (given or empty):
        expected = "a string" if empty else "a string that is not empty"
        raise UsageError(f"{name} must be {expected}, got {shown(given)}")
    if not is_text(given):
        raise UsageError(f"{name} must be text that UTF-8 can encode, got {shown(given)} with half a surrogate pair")
    if len(given.encode()) > INT16:
        raise UsageError(f"{name} must be at most {INT16} bytes long, got {len(given.encode())} bytes")


def check_mapping(name: str, given: object, of: str, *, secret: bool = False) -> None:
    """Raise UsageError unless the value is a mapping; ``of`` is an example of a valid value, for the message.

    The message shows the value, or only its type if it may contain a ``secret``.
    """
    if not isinstance(given, Mapping):
        text = f"{type(given).__name__} (not shown)" if secret and given is not None else shown(given)
        raise UsageError(f"{name} must be a mapping such as {of}, got {text}")


def refuse_list(name: str, given: object, of: str) -> UsageError:
    """Return the error for a value that is not a collection; ``of`` is an example of a valid value."""
    return UsageError(f"{name} must be a collection such as {of}, got {shown(given)}")


def items_of(name: str, given: object, of: str) -> list[Any]:
    """Return an iterable's items, or a mapping's keys; ``of`` is an example of a valid value, for the message.

    Raises:
        UsageError: the value is not iterable, or is a string, bytes or a named tuple, which are single items.
    """
    if not isinstance(given, Mapping) and not _is_collection(given):
        raise refuse_list(name, given, of)
    assert isinstance(given, Iterable)
    return list(given)


def methods_of(given: object) -> Iterator[str]:
    """Return the names of an object's public methods, without a call of its properties."""
    found = given if isinstance(given, type) else type(given)
    for name in dict.fromkeys([*dir(found), *getattr(given, "__dict__", ())]):
        if not name.startswith("_") and callable(inspect.getattr_static(given, name, None)):
            yield name


def flattened(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return positional arguments; if the only one is a collection, return its items instead.

    A tuple of a topic and a partition's index is one item, not a collection.
    """
    if len(given) != 1 or not _is_collection(given[0]):
        return given
    items = tuple(given[0])
    is_partition = isinstance(given[0], tuple) and len(items) == 2 and isinstance(items[1], int)
    return given if is_partition else items


def _is_collection(given: object) -> bool:
    is_single = isinstance(given, str | bytes | bytearray | memoryview | Mapping) or hasattr(given, "_fields")
    return isinstance(given, Iterable) and not is_single
