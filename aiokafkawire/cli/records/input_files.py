"""Reads files and standard input in pieces, without blocking the event loop at a pipe or a terminal."""

import os
import stat
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import closing
from typing import Final

import anyio

from ..exit_status import CommandFailed

__all__ = ("STDIN", "read_pieces", "total_size")

STDIN: Final = "-"

_PIECE: Final = 1024 * 1024


async def read_pieces(path: str) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a file, or of standard input for ``-``, as they arrive.

    Raises:
        CommandFailed: the file cannot be read.
    """
    if path == STDIN:
        async for piece in _pieces(sys.stdin.fileno()):
            yield piece
        return
    try:
        file = open(path, "rb", buffering=0)  # noqa: ASYNC230, SIM115  # opening a file takes no time
    except OSError as error:
        raise CommandFailed(f"cannot read {path}: {error.strerror}") from None
    with closing(file):
        try:
            async for piece in _pieces(file.fileno()):
                yield piece
        except OSError as error:
            raise CommandFailed(f"cannot read {path}: {error.strerror}") from None


async def _pieces(descriptor: int) -> AsyncGenerator[bytes, None]:
    must_wait = not stat.S_ISREG(os.fstat(descriptor).st_mode)
    while True:
        if must_wait:
            must_wait = await _wait_readable(descriptor)
        piece = os.read(descriptor, _PIECE)
        if not piece:
            return
        yield piece


async def _wait_readable(descriptor: int) -> bool:
    """Wait until a read does not block; return False if the descriptor never blocks, such as the null device's."""
    try:
        await anyio.wait_readable(descriptor)
    except OSError:  # epoll takes neither files nor the null device
        return False
    return True


def total_size(paths: Sequence[str]) -> int | None:
    """Return the size of the files in bytes; None if the size of one is unknown, as of standard input."""
    sizes = []
    for path in paths:
        if path == STDIN:
            return None
        try:
            status = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        sizes.append(status.st_size)
    return sum(sizes)
