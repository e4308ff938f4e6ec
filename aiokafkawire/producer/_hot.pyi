from ._pure import Appender, BatchEvent, BufferSpace, OpenBatch, OpenTopic, StickyPartition, item_ends

__all__ = ("Appender", "BatchEvent", "BufferSpace", "OpenBatch", "OpenTopic", "StickyPartition", "item_ends")
