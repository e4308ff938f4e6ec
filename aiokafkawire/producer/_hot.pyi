from ._pure import Appender, BatchEvent, BufferSpace, OpenBatch, OpenTopic, StickyPartition

__all__ = ("Appender", "BatchEvent", "BufferSpace", "OpenBatch", "OpenTopic", "StickyPartition")
