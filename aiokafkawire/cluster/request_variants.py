"""Requests that have different fields for newer and for older brokers."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from ..errors import UnsupportedVersion
from ..protocol.schema import Request, Response, Versions

__all__ = ("RequestVariant", "in_newest_form")

R = TypeVar("R", bound=Response)


class RequestVariant(NamedTuple, Generic[R]):
    """A request, and the versions that have all of its fields."""

    request: Request[R]
    wanted: Versions


async def in_newest_form(forms: Iterable[RequestVariant[R]], ask: Callable[[Request[R], Versions], Awaitable[R]]) -> R:
    """Send the variants by ``ask``, from the newest to the oldest, until the broker supports one; return the response.

    Raises:
        UnsupportedVersion: the broker supports no variant.
    """
    refused: UnsupportedVersion | None = None
    for request, wanted in forms:
        try:
            return await ask(request, wanted)
        except UnsupportedVersion as older:
            refused = older
    assert refused is not None  # there is at least one variant
    raise refused
