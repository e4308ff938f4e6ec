"""The client for code without an event loop: scripts, notebooks, Spark's executors.

with blocking.Client("localhost:9092") as kafka, kafka.producer() as producer:
    producer.send("flights", b"UA 1545")

A client has one thread, with an event loop in it, on which everything asynchronous runs; calls wait for it.

1. Every call may be interrupted by Ctrl-C: what it waits for is cancelled, and the client stays in use.
2. Any thread may call; each consumer has one caller at a time.
3. The thread does not come along into a forked process: calls there raise UsageError, and leaving does nothing.
4. After leaving, the thread is gone. It keeps no process from ending.
"""

from .client import Admin, Client
from .consumer import Consumer
from .producer import Delivery, Producer, Transaction

__all__ = ("Admin", "Client", "Consumer", "Delivery", "Producer", "Transaction")
