from ._pure import Frame

__all__ = ("Frame",)
