"""Chooses the compiled or the pure Frame, as :mod:`.records.batch` chooses its twin."""

from typing import TYPE_CHECKING

from ..records.batch import load_beside

if TYPE_CHECKING:
    from ._pure import Frame

__all__ = ("Frame",)

if not TYPE_CHECKING:
    Frame = load_beside(__package__).Frame
