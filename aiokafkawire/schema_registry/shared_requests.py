"""Makes one request of several that are the same and made at the same time."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

import anyio

from ..errors import KafkaError, as_kafka_error, copy_for_reraise
from ..runtime import place_finder

__all__ = ("SharedRequests",)

T = TypeVar("T")


class _Request:
    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.has_result = False
        self.result: Any = None
        self.error: KafkaError | None = None


class SharedRequests:
    """The requests under way, by what they ask for and by event loop.

    The first caller makes the request, and the others wait for its result or error. If the first is cancelled, one of
    the others makes the request.
    """

    def __init__(self) -> None:
        self._requests: dict[tuple[object, Hashable], _Request] = {}

    async def run(self, key: Hashable, function: Callable[[], Awaitable[T]]) -> T:
        """Await ``function()``, or what another task awaits under the same key, and return its result."""
        place = (place_finder()(), key)
        while (other := self._requests.get(place)) is not None:
            await other.ended.wait()
            if other.error is not None:
                raise copy_for_reraise(other.error)
            if other.has_result:
                result: T = other.result
                return result
        request = self._requests[place] = _Request()
        try:
            request.result = result = await function()
            request.has_result = True
        except Exception as error:
            request.error = as_kafka_error(error, "a request to the schema registry")
            raise request.error from request.error.__cause__
        finally:
            del self._requests[place]
            request.ended.set()
        return result
