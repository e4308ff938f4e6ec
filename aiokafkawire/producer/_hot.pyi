from ._pure import Appender, Budget, OpenBatch, OpenTopic, Turn, Waiters

__all__ = ("Appender", "Budget", "OpenBatch", "OpenTopic", "Turn", "Waiters")
