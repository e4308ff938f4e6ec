"""A frame while it arrives, in plain Python: the readable twin of the compiled one."""

from typing import Final, final

from ..protocol.primitives import Buffer

__all__ = ("Frame",)

_PIECE: Final = 64 * 1024


@final
class Frame:
    """Gathers ``size`` bytes, the first of which are ``head``, and holds no more than has come, but for a piece.

    It asks where bytes should go (:meth:`room`) and hears how many came (:meth:`filled`), so that a socket may write
    them here itself.
    """

    __slots__ = ("_left", "_piece", "_pieces", "_size")

    def __init__(self, size: int, head: Buffer) -> None:
        self._size, self._left = size, size - len(head)
        self._pieces: list[Buffer] = [bytes(head)]
        self._piece = bytearray()

    def room(self) -> memoryview:
        """Where the next bytes go, at least one and none behind the frame's end."""
        self._piece = bytearray(min(self._left, _PIECE))
        return memoryview(self._piece)

    def filled(self, count: int) -> bytes | None:
        """So many bytes came into the room; the frame, once it is whole."""
        self._pieces.append(memoryview(self._piece)[:count].tobytes())
        self._left -= count
        return None if self._left else b"".join(self._pieces)
