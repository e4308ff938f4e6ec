"""The appender's classes: the compiled ones if ``records.batch`` uses compiled classes, else those in plain Python."""

from typing import TYPE_CHECKING

from ..records.batch import load_beside

if TYPE_CHECKING:
    from ._pure import Appender, BatchEvent, BufferSpace, OpenBatch, OpenTopic, StickyPartition, item_ends

__all__ = ("Appender", "BatchEvent", "BufferSpace", "OpenBatch", "OpenTopic", "StickyPartition", "item_ends")

if not TYPE_CHECKING:
    _twin = load_beside(__package__)
    Appender = _twin.Appender
    BatchEvent = _twin.BatchEvent
    BufferSpace = _twin.BufferSpace
    OpenBatch = _twin.OpenBatch
    OpenTopic = _twin.OpenTopic
    StickyPartition = _twin.StickyPartition
    item_ends = _twin.item_ends
