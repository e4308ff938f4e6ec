"""attrs classes that attrs completes when they are first used, since that is most of the time that importing takes.

``define`` and ``frozen`` are those of attrs, with the same options, for classes that few programs use all of: messages,
events, settings. Their methods must not use ``super()``. A class may inherit from another one, which then gives its
fields, and is not completed for that.
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
_FIELDS: Final = "__attrs_attrs__"
_NO_METHODS: Final = {"eq": False, "init": False, "match_args": False, "repr": False}
_IF_COMPARED: Final = ("__eq__", "__ne__")


@attrs.frozen
class _Frozen:
    """Has what all frozen classes share: attrs looks at it in each class that another one inherits from."""


_IF_FROZEN: Final = {name: vars(_Frozen)[name] for name in ("__delattr__", "__setattr__")}


class _LazyAttribute:
    """An attribute of a class that, when it is first looked up, completes the class and so is replaced."""

    __slots__ = ("_complete", "_name")

    def __init__(self, name: str, complete: Callable[[], type[Any]]) -> None:
        self._name, self._complete = name, complete

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        made = vars(self._complete()).get(self._name)
        if made is None:  # this release of attrs makes none
            return getattr(owner if instance is None else instance, self._name)
        # Not getattr(): inspect.signature of CPython 3.14 binds __init__ to the class itself.
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


class _LazyFields(_LazyAttribute):
    """The fields of a class, which ``read`` sets alone for a class that inherits them: that one has its own methods."""

    __slots__ = ("read",)

    def __init__(self, name: str, complete: Callable[[], type[Any]], read: Callable[[], None]) -> None:
        super().__init__(name, complete)
        self.read = read


def _make(options: dict[str, bool], cls: type[Any]) -> type[Any]:
    """Return the class with slots, and with lazy attributes in place of what attrs makes of the same body later."""
    fields = [name for name, kind in get_annotations(cls).items() if not _is_class_variable(kind)]
    weak = options.get("weakref_slot", True) and not any("__weakref__" in vars(base) for base in cls.__mro__[1:])
    slots = [*fields, "__weakref__"] if weak else fields
    left_out = {*fields, "__dict__", "__weakref__"}
    body: dict[str, Any] = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    lazy = list(_MADE_BY_ATTRS)
    if options.get("eq", True):
        lazy += (*_IF_COMPARED, "__hash__") if options.get("frozen") else _IF_COMPARED
    if options.get("frozen"):
        body |= _IF_FROZEN
    lazy = [name for name in lazy if name not in body]

    def complete() -> type[Any]:
        for base in reversed(cls.__mro__[1:]):
            fields_of_base = vars(base).get(_FIELDS)
            if isinstance(fields_of_base, _LazyFields):
                fields_of_base.read()
        made = attrs.define(cls, **options).__dict__  # type: ignore[call-overload]
        for name in lazy:
            if name in made:
                setattr(lazy_class, name, made[name])
            else:  # this release of attrs makes none; another thread may be completing the class, too
                with suppress(AttributeError):
                    delattr(lazy_class, name)
        return lazy_class

    def read_fields() -> None:
        setattr(lazy_class, _FIELDS, getattr(attrs.define(cls, **options | _NO_METHODS), _FIELDS))  # type: ignore[call-overload]

    body |= {name: _LazyAttribute(name, complete) for name in lazy}
    body[_FIELDS] = _LazyFields(_FIELDS, complete, read_fields)
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
