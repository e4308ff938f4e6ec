"""A frame while it is received, in plain Python: the readable twin of the compiled class."""

from typing import Final, final

from ..protocol.primitives import Buffer

__all__ = ("Frame",)

_PIECE: Final = 64 * 1024


@final
class Frame:
    """An incomplete frame of ``size`` bytes, of which the bytes in ``head`` are received already.

    The caller receives bytes into :meth:`buffer`, and reports their number to :meth:`filled`. Besides the received
    bytes, the frame allocates one buffer of 64 KiB at most.
    """

    __slots__ = ("_left", "_piece", "_pieces", "_size")

    def __init__(self, size: int, head: Buffer) -> None:
        self._size, self._left = size, size - len(head)
        self._pieces: list[Buffer] = [bytes(head)]
        self._piece = bytearray()

    def buffer(self) -> memoryview:
        """Return a buffer for the next bytes: at least one byte long, and never longer than the rest of the frame."""
        self._piece = bytearray(min(self._left, _PIECE))
        return memoryview(self._piece)

    def filled(self, count: int) -> bytes | None:
        """Add the first ``count`` bytes of the receive buffer to the frame; return a complete frame, or None."""
        self._pieces.append(memoryview(self._piece)[:count].tobytes())
        self._left -= count
        return None if self._left else b"".join(self._pieces)
