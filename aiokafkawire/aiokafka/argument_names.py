"""Errors that help with misspelt arguments of the classes of this package."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Concatenate, ParamSpec, TypeVar

__all__ = ("with_known_arguments",)

P = ParamSpec("P")
T = TypeVar("T")


def with_known_arguments(make: Callable[Concatenate[T, P], None]) -> Callable[Concatenate[T, P], None]:
    """Return an ``__init__`` whose TypeError about an unknown argument names a similar one, or all.

    Args:
        make: the ``__init__`` that is called, with one frame more between it and the caller.
    """
    _, *parameters = signature(make).parameters.values()
    names = [each.name for each in parameters if each.kind is not Parameter.VAR_POSITIONAL]

    @wraps(make)
    def checked(self: T, /, *args: P.args, **kwargs: P.kwargs) -> None:
        for name in kwargs:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(names))}"
                text = f"{make.__qualname__}() got an unexpected keyword argument {name!r}: {hint}"
                raise TypeError(text)
        make(self, *args, **kwargs)

    return checked
