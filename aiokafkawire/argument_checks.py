"""Checks of the arguments that users give.

A wrong argument is one UsageError, raised before anything is sent. It names the argument, what it must be, and what
was given.
"""

from collections.abc import Iterable, Mapping
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
    "check_text",
    "flattened",
    "is_integer",
    "is_text",
    "items_of",
    "refuse_list",
    "shown",
)

INT16: Final = 2**15 - 1
INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1


def shown(given: object) -> str:
    """Return what was given, not at length, and its type where the text does not tell it."""
    text = f"{given!r:.200}"
    is_plain = given is None or type(given) in (str, bytes, int, float, bool, list, tuple, dict, set)
    return text if is_plain or type(given).__name__ in text else f"{text} ({type(given).__name__})"


def is_integer(given: object, least: int, most: int) -> bool:
    """Return whether it is an integer between two bounds, both included; True and False are none."""
    return isinstance(given, int) and not isinstance(given, bool) and least <= given <= most


def check_integer(name: str, given: object, least: int = 0, most: int = INT32) -> None:
    """Raise UsageError unless it is an integer between the bounds, both included."""
    if not is_integer(given, least, most):
        raise UsageError(f"{name} must be an integer from {least} to {most}, got {shown(given)}")


def check_seconds(name: str, given: object, *, optional: bool = True) -> None:
    """Raise UsageError unless it is a number of seconds; or None, where that is allowed."""
    if given is None and optional:
        return
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not given >= 0:  # type: ignore[operator]  # NaN is not
        none = ", or None" if optional else ""
        raise UsageError(f"{name} must be a number of seconds, 0 or more{none}, got {shown(given)}")


def check_flag(name: str, given: object) -> None:
    """Raise UsageError unless it is True or False."""
    if not isinstance(given, bool):
        raise UsageError(f"{name} must be True or False, got {shown(given)}")


def check_function(name: str, given: object) -> None:
    """Raise UsageError unless it can be called."""
    if not callable(given):
        raise UsageError(f"{name} must be a function, got {shown(given)}")


def is_text(given: str) -> bool:
    """Return whether UTF-8 can encode it, which it cannot with half a surrogate pair."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(name: str, given: object, *, empty: bool = False) -> None:
    """Raise UsageError unless it is a string that a request can carry."""
    if not isinstance(given, str) or not (given or empty):
        wanted = "a string" if empty else "a string that is not empty"
        raise UsageError(f"{name} must be {wanted}, got {shown(given)}")
    if not is_text(given):
        raise UsageError(f"{name} must be text that UTF-8 can encode, got {shown(given)} with half a surrogate pair")
    if len(given.encode()) > INT16:
        raise UsageError(f"{name} must be at most {INT16} bytes long, got {len(given.encode())} bytes")


def check_mapping(name: str, given: object, of: str) -> None:
    """Raise UsageError unless it is a mapping; ``of`` shows one."""
    if not isinstance(given, Mapping):
        raise UsageError(f"{name} must be a mapping such as {of}, got {shown(given)}")


def refuse_list(name: str, given: object, of: str) -> UsageError:
    """Return the error for what should be several of something; ``of`` shows them."""
    return UsageError(f"{name} must be a collection such as {of}, got {shown(given)}")


def items_of(name: str, given: object, of: str) -> list[Any]:
    """Return the items of a collection, or of any iterable but a string, bytes, or one item that is a named tuple.

    Raises:
        UsageError: it has no items, or is a single one.
    """
    if not isinstance(given, Mapping) and not _is_collection(given):
        raise refuse_list(name, given, of)
    assert isinstance(given, Iterable)
    return list(given)


def flattened(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments that were given one by one, or all of them as one collection.

    A pair that begins with a string is one partition, and no collection.
    """
    if len(given) != 1 or not _is_collection(given[0]):
        return given
    items = tuple(given[0])
    is_partition = isinstance(given[0], tuple) and len(items) == 2 and isinstance(items[1], int)
    return given if is_partition else items


def _is_collection(given: object) -> bool:
    is_single = isinstance(given, str | bytes | bytearray | memoryview | Mapping) or hasattr(given, "_fields")
    return isinstance(given, Iterable) and not is_single
