"""Command lines: argument types of several benchmarks."""

import argparse
from collections.abc import Callable, Collection

from benchmarks.contenders import CLIENTS
from benchmarks.machine import has_module

LOOPS = ("asyncio", "uvloop", "trio")


def positive(text: str) -> int:
    """Return a positive integer."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is needed, got {text}")
    return number


def positives(text: str) -> tuple[int, ...]:
    """Return positive integers, with commas between."""
    return tuple(positive(word) for word in text.split(","))


def names_of(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of a comma-separated selection of these names."""

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def require_installed(parser: argparse.ArgumentParser, clients: Collection[str]) -> None:
    """Exit with an error that names the clients that are not installed, or what Java's needs."""
    absent = [client for client in clients if client in CLIENTS and not has_module(CLIENTS[client])]
    if absent:
        parser.error(f"not installed: {', '.join(absent)}")
    if "java" in clients:
        from benchmarks.java import missing_java

        lacks = missing_java()
        if lacks is not None:
            parser.error(lacks)
