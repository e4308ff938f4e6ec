"""Questions that newer and older brokers are asked in different forms."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from ..errors import UnsupportedVersion
from ..protocol.schema import Request, Response, Versions

__all__ = ("RequestVariant", "in_newest_form")

R = TypeVar("R", bound=Response)


class RequestVariant(NamedTuple, Generic[R]):
    """A request, and the versions that can carry it."""

    request: Request[R]
    wanted: Versions


async def in_newest_form(forms: Iterable[RequestVariant[R]], ask: Callable[[Request[R], Versions], Awaitable[R]]) -> R:
    """Ask in the first of the forms, the newest, that is known where it is asked.

    Raises:
        UnsupportedVersion: none of them is.
    """
    refused: UnsupportedVersion | None = None
    for request, wanted in forms:
        try:
            return await ask(request, wanted)
        except UnsupportedVersion as older:
            refused = older
    assert refused is not None  # there is a form
    raise refused
