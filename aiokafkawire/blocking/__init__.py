"""The client for code without an event loop: scripts, notebooks, Spark's executors.

with blocking.Client("localhost:9092") as kafka, kafka.producer() as producer:
    producer.send("flights", b"UA 1545")

A client has one thread with an event loop, which runs all asynchronous code; calls wait for its results.

1. Ctrl-C may interrupt every call: the call is cancelled, and the client remains usable.
2. Any thread may call; each consumer has one caller at a time.
3. A forked process lacks the thread: calls there raise UsageError, and leaving the ``with`` does nothing.
4. Leaving the ``with`` ends the thread. The thread keeps no process from ending.
"""

from .client import Admin, Client
from .consumer import Consumer
from .producer import Delivery, Producer, Transaction

__all__ = ("Admin", "Client", "Consumer", "Delivery", "Producer", "Transaction")
