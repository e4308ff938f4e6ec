from ._pure import Frame

__all__ = ("Frame", "bytes_kept")

def bytes_kept() -> int: ...
