"""The interfaces of serializers and deserializers, which convert keys and values to bytes and back."""

import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from ._lazy_classes import frozen
from .argument_checks import shown
from .errors import ConfigError
from .types import Header

__all__ = (
    "AnyDeserializer",
    "AnySerializer",
    "Deserializer",
    "SerializationContext",
    "Serializer",
    "check_converters",
    "discard_awaitable",
    "knows_record",
    "run_steps",
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


@frozen
class SerializationContext:
    """The record whose key or value is converted."""

    topic: str
    headers: list[Header]
    """The record's headers; a serializer may add some, and a deserializer changes nothing by that."""
    is_key: bool
    """Whether it is the key that is converted; otherwise it is the value."""


class Serializer(Protocol[T_contra]):
    """An object that converts keys or values to bytes."""

    def serialize(self, value: T_contra, context: SerializationContext, /) -> bytes | Awaitable[bytes]:
        """Return the bytes of a key or value that is not None, or an awaitable of them."""


class Deserializer(Protocol[T_co]):
    """An object that converts bytes to keys or values."""

    def deserialize(self, data: bytes, context: SerializationContext, /) -> T_co | Awaitable[T_co]:
        """Return the key or value of bytes that are not null, or an awaitable of it."""


AnySerializer: TypeAlias = Callable[[T], bytes] | Serializer[T]
"""What producers take: a function, or an object that knows the record."""
AnyDeserializer: TypeAlias = Callable[[bytes], T] | Deserializer[T]
"""What consumers take: a function, or an object that knows the record."""


def knows_record(converter: object, method: Literal["serialize", "deserialize"]) -> bool:
    """Return whether a converter is an object with this method, and no function."""
    return not isinstance(converter, type) and callable(getattr(converter, method, None))


def check_converters(method: Literal["serialize", "deserialize"], **given: object) -> None:
    """Check serializers or deserializers that a user gave, by the names of their arguments.

    Raises:
        ConfigError: one is neither a function nor an object with the method; or it is a class that has the method, or
            a coroutine function.
    """
    form = f"{method}({'value' if method == 'serialize' else 'data'}, context)"
    for name, converter in given.items():
        if converter is None or knows_record(converter, method):
            continue
        if not callable(converter):
            raise ConfigError(f"{name} must be a function, or an object with a method {form}, got {shown(converter)}")
        if isinstance(converter, type) and callable(getattr(converter, method, None)):
            raise ConfigError(f"{name} must be an object, such as {converter.__name__}(), got {shown(converter)}")
        if inspect.iscoroutinefunction(converter):
            raise ConfigError(
                f"{name} must not be a coroutine function: pass an object with a method 'async def {form}'"
            )


def discard_awaitable(found: object) -> None:
    """Close a coroutine that is not awaited, so that Python does not warn."""
    if inspect.iscoroutine(found):
        found.close()


async def run_steps(steps: Generator[Awaitable[Any], Any, T], waiting: Awaitable[Any] | None = None) -> T:
    """Run a generator that yields awaitables and gets their results or errors; return what it returns.

    ``waiting`` is what it has yielded already, if it has begun.
    """
    try:
        if waiting is None:
            waiting = next(steps)
        while True:
            try:
                found = await waiting
            except Exception as error:
                waiting = steps.throw(error)
            else:
                waiting = steps.send(found)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
