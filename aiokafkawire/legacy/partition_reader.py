"""Partitions read message by message."""

from collections.abc import Iterator
from typing import Final, Protocol, Self

import anyio
from anyio.lowlevel import checkpoint

from .messages import LegacyMessage, MessageSet
from .settings import LegacyConfig

__all__ = ("Fetcher", "PartitionReader", "Turns")

_IN_A_ROW: Final = 500


class Fetcher(Protocol):
    """Asks a broker; ``LegacyClient.fetch`` does."""

    async def __call__(self, topic: str, partition: int, offset: int) -> MessageSet: ...


class Turns:
    """Lets others run now and then: a wrapper may hold millions of messages, and to give them out waits for nothing."""

    def __init__(self) -> None:
        self._left = _IN_A_ROW

    async def pause(self) -> None:
        """Before each message; a cancellation comes here, and loses none."""
        self._left -= 1
        if self._left <= 0:
            self._left = _IN_A_ROW
            await checkpoint()


class PartitionReader:
    """Messages of a partition from an offset on, without an end: ``async for message in reader``.

    A broker of 0.7 answers at once, also with nothing; so at the end of the log the reader asks again after
    ``backoff_ms``, then after twice as long, up to ``backoff_max_ms``. Errors are those of ``LegacyClient.fetch``; the
    iteration may be entered again, and goes on at ``position``, or where :meth:`seek` says.

    Attributes:
        position: where to begin, to read on behind the message that was given last. Inside of a compressed message
            this is its begin, so what it holds is read again: at least once.
    """

    def __init__(self, fetch: Fetcher, topic: str, partition: int, offset: int, config: LegacyConfig) -> None:
        self.topic: str = topic
        self.partition: int = partition
        self.position: int = offset
        self._fetch, self._config = fetch, config
        self._messages: Iterator[LegacyMessage] = iter(())
        self._read_to = offset
        self._wait = config.backoff_ms
        self._turns = Turns()

    def seek(self, offset: int) -> None:
        """Go on at another offset."""
        self.position = self._read_to = offset
        self._messages = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LegacyMessage:
        await self._turns.pause()
        while True:
            message = self.take()
            if message is not None:
                self._wait = self._config.backoff_ms
                return message
            if not await self.fill():
                await anyio.sleep(self._wait / 1000)
                self._wait = min(2 * self._wait, self._config.backoff_max_ms)

    def take(self) -> LegacyMessage | None:
        """The next message of what is at hand; None for asking for more.

        Raises:
            CorruptBatch: it is damaged; what is at hand is given up.
        """
        try:
            message = next(self._messages, None)
        except BaseException:
            self.seek(self.position)
            raise
        # What is at hand may end with a wrapper that holds nothing.
        self.position = self._read_to if message is None else message.next_offset
        return message

    async def fill(self) -> bool:
        """Ask once for what comes behind what is at hand, which has to be taken; whether there was some."""
        found = await self._fetch(self.topic, self.partition, self._read_to)
        self._read_to = found.next_offset
        self._messages = found.messages(limit=self._config.inflate_max_bytes)
        return bool(found)
