from collections.abc import Callable, Coroutine
from typing import Any

from ._pure import IteratorState

__all__ = ("IteratorState", "RecordIterator")

class RecordIterator:
    def __new__(
        cls, marks: IteratorState, slow: Callable[[RecordIterator], Coroutine[Any, Any, Any]], reads_clock: bool
    ) -> RecordIterator: ...
    def __aiter__(self) -> RecordIterator: ...
    def __anext__(self) -> Any: ...
    def adopt(self, reader: object, place: object) -> None: ...
