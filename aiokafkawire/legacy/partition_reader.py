"""Reads one partition, message by message."""

from collections.abc import Iterator
from typing import Final, Protocol, Self

import anyio
from anyio.lowlevel import checkpoint

from .messages import LegacyMessage, LegacyMessageSet
from .settings import LegacyConfig

__all__ = ("LegacyFetcher", "PartitionReader", "Turns")

_IN_A_ROW: Final = 500


class LegacyFetcher(Protocol):
    """A function that fetches messages, such as ``LegacyClient.fetch``."""

    async def __call__(self, topic: str, partition: int, offset: int) -> LegacyMessageSet: ...


class Turns:
    """A counter that regularly yields to other tasks. Otherwise taking a wrapper's many messages would block them."""

    def __init__(self) -> None:
        self._left = _IN_A_ROW

    async def pause(self) -> None:
        """Yield to other tasks in every 500th call; call it before a message is taken, or a cancellation loses it."""
        self._left -= 1
        if self._left <= 0:
            self._left = _IN_A_ROW
            await checkpoint()


class PartitionReader:
    """An endless iteration over the messages of a partition: ``async for message in reader``.

    A broker of 0.7 answers a fetch at once, even without messages. Therefore the reader waits ``backoff_ms`` at the end
    of the log before it fetches again, then twice as long, up to ``backoff_max_ms``. Errors are those of
    ``LegacyClient.fetch``; a new iteration continues at ``position``.

    Attributes:
        position: the offset from which to read after the last returned message. Inside a compressed message this is the
            beginning of that message, whose content is then read again (at least once).
    """

    def __init__(self, fetch: LegacyFetcher, topic: str, partition: int, offset: int, config: LegacyConfig) -> None:
        self.topic: str = topic
        self.partition: int = partition
        self.position: int = offset
        self._fetch, self._config = fetch, config
        self._messages: Iterator[LegacyMessage] = iter(())
        self._read_to = offset
        self._wait = config.backoff_ms
        self._turns = Turns()

    def seek(self, offset: int) -> None:
        """Discard the fetched messages, and continue at ``offset``, where a message must begin."""
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
        """Return the next of the fetched messages; None if all were taken.

        Raises:
            CorruptBatch: the message is damaged. The fetched messages are discarded.
        """
        try:
            message = next(self._messages, None)
        except BaseException:
            self.seek(self.position)
            raise
        # The fetched messages may end with a wrapper without messages.
        self.position = self._read_to if message is None else message.next_offset
        return message

    async def fill(self) -> bool:
        """Fetch messages once; return whether there were any. Call it only after all fetched messages were taken."""
        found = await self._fetch(self.topic, self.partition, self._read_to)
        self._read_to = found.next_offset
        self._messages = found.messages(limit=self._config.inflate_max_bytes)
        return bool(found)
