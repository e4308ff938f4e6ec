"""Compares values of configs: brokers return a value in another form than it was written, such as 0.5 for 0.50."""

from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ("is_same",)


def is_same(declared: str, current: str, kind: str | None) -> bool:
    """Return whether two values of a config of this type are the same.

    The type is "long", "list", and so on; None from brokers before 2.6, which do not name types (KIP-569). Values are
    then the same if they are so as any type.
    """
    kinds = _OF_NO_TYPE if kind is None else (kind,)
    return declared == current or any(_is_same(declared, current, _READERS.get(each)) for each in kinds)


def _is_same(declared: str, current: str, read: Callable[[str], Any] | None) -> bool:
    if read is None:
        return False
    try:
        return bool(read(declared) == read(current))
    except ValueError:  # the brokers will refuse it, and say why
        return False


def _items(text: str) -> list[str]:
    """Return the items of a list; Kafka drops those that are there twice (KIP-1161)."""
    return list(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


def _whole(text: str) -> int:
    return int(text.strip())


def _fraction(text: str) -> float:
    return float(text.strip())


def _word(text: str) -> str:
    return text.strip()


def _flag(text: str) -> str:
    return text.strip().lower()


_OF_NO_TYPE: Final = ("long", "double", "list")
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "boolean": _flag,
    "class": _word,
    "double": _fraction,
    "int": _whole,
    "list": _items,
    "long": _whole,
    "short": _whole,
    "string": _word,
}
