"""Exports the class Frame: the compiled class if :mod:`.records.batch` is compiled too, otherwise the pure class."""

from typing import TYPE_CHECKING

from ..records.batch import load_beside

if TYPE_CHECKING:
    from ._pure import Frame

__all__ = ("Frame",)

if not TYPE_CHECKING:
    Frame = load_beside(__package__).Frame
