"""A frame while it is received, in plain Python: the readable twin of the compiled class."""

from typing import Final, final

from ..protocol.primitives import Buffer

__all__ = ("Frame",)

_PIECE: Final = 64 * 1024


@final
class Frame:
    """A frame of ``size`` bytes that begins with ``head``. It holds one piece more than was received, at most.

    A socket writes into the :meth:`buffer` and reports the number of bytes to :meth:`filled`.
    """

    __slots__ = ("_left", "_piece", "_pieces", "_size")

    def __init__(self, size: int, head: Buffer) -> None:
        self._size, self._left = size, size - len(head)
        self._pieces: list[Buffer] = [bytes(head)]
        self._piece = bytearray()

    def buffer(self) -> memoryview:
        """Return the buffer for the next bytes, of at least one byte, which ends with the frame at the latest."""
        self._piece = bytearray(min(self._left, _PIECE))
        return memoryview(self._piece)

    def filled(self, count: int) -> bytes | None:
        """Take ``count`` bytes from the buffer; return the frame once it is complete."""
        self._pieces.append(memoryview(self._piece)[:count].tobytes())
        self._left -= count
        return None if self._left else b"".join(self._pieces)
