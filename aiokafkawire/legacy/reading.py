"""One partition read message by message."""

from collections.abc import Iterator
from typing import Protocol, Self

import anyio

from .messages import LegacyMessage, MessageSet
from .settings import LegacyConfig

__all__ = ("Fetcher", "PartitionReader")


class Fetcher(Protocol):
    """Asks a broker; ``LegacyClient.fetch`` does."""

    async def __call__(self, topic: str, partition: int, offset: int) -> MessageSet: ...


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
        self.topic, self.partition, self.position = topic, partition, offset
        self._fetch, self._config = fetch, config
        self._messages: Iterator[LegacyMessage] = iter(())
        self._read_to = offset
        self._wait = config.backoff_ms

    def seek(self, offset: int) -> None:
        """Go on at another offset."""
        self.position = self._read_to = offset
        self._messages = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LegacyMessage:
        while True:
            message = self._next()
            if message is not None:
                self._wait = self._config.backoff_ms
                return message
            if not await self._fill():
                await anyio.sleep(self._wait / 1000)
                self._wait = min(2 * self._wait, self._config.backoff_max_ms)

    async def poll(self) -> list[LegacyMessage]:
        """What one more request gives, or is at hand; nothing at the end of the log, for now."""
        found = list(self._rest())
        while not found and await self._fill():
            found = list(self._rest())
        return found

    def _rest(self) -> Iterator[LegacyMessage]:
        while (message := self._next()) is not None:
            yield message

    def _next(self) -> LegacyMessage | None:
        try:
            message = next(self._messages, None)
        except BaseException:
            self.seek(self.position)
            raise
        if message is not None:
            self.position = message.next_offset
        else:  # a wrapper may have held nothing
            self.position = self._read_to
        return message

    async def _fill(self) -> bool:
        """Ask for more; whether there was some."""
        found = await self._fetch(self.topic, self.partition, self._read_to)
        self._read_to = found.next_offset
        self._messages = found.messages(limit=self._config.inflate_max_bytes)
        return bool(found.entries)
