"""attrs classes that attrs completes when they are first used, since that is most of the time that importing takes.

``define`` and ``frozen`` are those of attrs, with the same options, for classes that few programs use all of: messages,
events, settings. Their methods must not use ``super()``.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_origin

import attrs

__all__ = ("define", "frozen")

_MADE_BY_ATTRS: Final = (
    "__attrs_attrs__",
    "__attrs_props__",
    "__getstate__",
    "__init__",
    "__match_args__",
    "__replace__",
    "__repr__",
    "__setstate__",
)
_IF_COMPARED: Final = ("__eq__", "__ne__")
_IF_FROZEN: Final = ("__delattr__", "__setattr__")


class _LazyAttribute:
    """An attribute of a class that, when it is first looked up, completes the class and so is replaced."""

    __slots__ = ("_complete", "_name")

    def __init__(self, name: str, complete: Callable[[], None]) -> None:
        self._name, self._complete = name, complete

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        self._complete()
        return getattr(owner if instance is None else instance, self._name)


def _make(options: dict[str, bool], cls: type[Any]) -> type[Any]:
    """Return the class with slots, and with lazy attributes in place of what attrs makes of the same body later."""
    fields = [name for name, kind in get_annotations(cls).items() if not _is_class_variable(kind)]
    slots = [*fields, "__weakref__"] if options.get("weakref_slot", True) else fields
    left_out = {*fields, "__dict__", "__weakref__"}
    body: dict[str, Any] = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    lazy = list(_MADE_BY_ATTRS)
    if options.get("eq", True):
        lazy += (*_IF_COMPARED, "__hash__") if options.get("frozen") else _IF_COMPARED
    if options.get("frozen"):
        lazy += _IF_FROZEN
    lazy = [name for name in lazy if name not in body]

    def complete() -> None:
        made = attrs.define(cls, **options).__dict__  # type: ignore[call-overload]
        for name in lazy:
            if name in made:
                setattr(lazy_class, name, made[name])
            else:  # this release of attrs makes none; another thread may be completing the class, too
                with suppress(AttributeError):
                    delattr(lazy_class, name)

    body |= {name: _LazyAttribute(name, complete) for name in lazy}
    meta: Any = type(cls)
    lazy_class: type[Any] = meta(cls.__name__, cls.__bases__, body | {"__slots__": tuple(slots)})
    return lazy_class


def _is_class_variable(annotation: object) -> bool:
    return annotation is ClassVar or get_origin(annotation) is ClassVar


if TYPE_CHECKING:
    from attrs import define, frozen
else:

    def define(cls=None, /, **options):
        """Make the class an attrs class, as ``attrs.define`` does."""
        return partial(_make, options) if cls is None else _make(options, cls)

    def frozen(cls=None, /, **options):
        """Make the class an immutable attrs class, as ``attrs.frozen`` does."""
        return define(cls, frozen=True, **options)
