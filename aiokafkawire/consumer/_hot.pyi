from ._pure import IteratorState, RecordIterator

__all__ = ("IteratorState", "RecordIterator")
