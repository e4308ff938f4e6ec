"""Reads the texts of arguments: numbers of seconds, counts, ports. For argparse and for click."""

import argparse
from typing import Final

__all__ = ("MAX_SECONDS", "MIN_SECONDS", "count", "nodes", "parse_seconds", "port", "seconds", "topic")

MIN_SECONDS: Final = 0.001
MAX_SECONDS: Final = 86_400.0


def parse_seconds(text: str, minimum: float = MIN_SECONDS, maximum: float = MAX_SECONDS) -> float:
    """Return the number of seconds in a text.

    Raises:
        ValueError: the text is no number, or one outside of these bounds; the message says which are allowed.
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not minimum <= number <= maximum:  # nan is not, either
        raise ValueError(f"{text!r} is not a number of seconds from {minimum:g} to {maximum:g}")
    return number


# --- types for argparse, which shows the message of an ArgumentTypeError ----------------------------------------------


def seconds(text: str) -> float:
    """Return a number of seconds from 0.001 to 86400."""
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(text: str) -> int:
    """Return a positive integer of 32 bits."""
    return _integer(text, 1, 2**31 - 1, "a positive integer")


def nodes(text: str) -> int:
    """Return a number of brokers, from 1 to 100."""
    return _integer(text, 1, 100, "a number from 1 to 100")


def port(text: str) -> int:
    """Return a port; 0 stands for any free one."""
    return _integer(text, 0, 65_535, "a port from 0 to 65535")


def topic(text: str) -> tuple[str, int]:
    """Return the name and the number of partitions in ``NAME[:PARTITIONS]``."""
    name, _, partitions = text.partition(":")
    if "=" in name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:PARTITIONS")
    return name, count(partitions or "1")


def _integer(text: str, minimum: int, maximum: int, expected: str) -> int:
    if not text.isdecimal() or not minimum <= int(text) <= maximum:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return int(text)
