from ._pure import Appender, Budget, OpenBatch, OpenTopic, Turn

__all__ = ("Appender", "Budget", "OpenBatch", "OpenTopic", "Turn")
