"""Gives classes of attrs their constructors, which attrs makes at runtime, so that the reference shows signatures."""

from collections.abc import Iterator
from typing import Any, Final

import griffe

_DECORATORS: Final = ("frozen", "define")
_UNKNOWN: Final = "..."


class AttrsClasses(griffe.Extension):
    """Adds an ``__init__`` to each class of attrs that has none, with the fields of its bases first."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Add the constructors of all classes of a package."""
        for found in list(_classes(pkg)):
            if _decorator(found) is not None and "__init__" not in found.members:
                found.set_member("__init__", _constructor(found))


def _constructor(found: griffe.Class) -> griffe.Function:
    fields: dict[str, griffe.Parameter] = {}
    for one in (*reversed(_bases(found)), found):
        if (decorator := _decorator(one)) is not None:
            fields |= {field.name: field for field in _fields(one, decorator)}
    kinds = griffe.ParameterKind.positional_or_keyword, griffe.ParameterKind.keyword_only
    ordered = [field for kind in kinds for field in fields.values() if field.kind is kind]
    own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    return griffe.Function("__init__", parent=found, parameters=griffe.Parameters(own, *ordered), returns="None")


def _fields(found: griffe.Class, decorator: griffe.Expr | str) -> Iterator[griffe.Parameter]:
    """Yield the parameters that attrs makes of a class's own fields: those with an annotation, but no ClassVar."""
    all_by_name = _argument(decorator, "kw_only") == "True"
    for field in found.members.values():
        if not isinstance(field, griffe.Attribute) or field.annotation is None:
            continue
        is_class_variable = "class-attribute" in field.labels and "instance-attribute" not in field.labels
        call = field.value if isinstance(field.value, griffe.ExprCall) else None
        if is_class_variable or "property" in field.labels or _argument(call, "init") == "False":
            continue
        by_name = all_by_name or _argument(call, "kw_only") == "True"
        yield griffe.Parameter(
            field.name.lstrip("_"),
            annotation=field.annotation,
            kind=griffe.ParameterKind.keyword_only if by_name else griffe.ParameterKind.positional_or_keyword,
            default=_default(field.value),
        )


def _default(value: griffe.Expr | str | None) -> griffe.Expr | str | None:
    """Return the default of a field, "..." if only its class knows it, or None if there is none."""
    if not isinstance(value, griffe.ExprCall):
        return value
    is_field = str(value.function).rpartition(".")[2] == "field"
    default, factory = _argument(value, "default"), _argument(value, "factory")
    if default is not None:
        return default
    return f"{factory}()" if factory is not None else None if is_field else _UNKNOWN


def _argument(call: griffe.Expr | str | None, name: str) -> str | None:
    """Return the text of a call's argument by name; None without it."""
    arguments = call.arguments if isinstance(call, griffe.ExprCall) else ()
    return next((str(one.value) for one in arguments if isinstance(one, griffe.ExprKeyword) and one.name == name), None)


def _decorator(found: griffe.Class) -> griffe.Expr | str | None:
    """Return the decorator that makes a class one of attrs; None if it has none."""
    for decorator in found.decorators:
        value = decorator.value
        called = value.function if isinstance(value, griffe.ExprCall) else value
        if str(called).rpartition(".")[2] in _DECORATORS:
            return value
    return None


def _bases(found: griffe.Class) -> list[griffe.Class]:
    try:
        return found.mro()
    except ValueError:  # a base of another package
        return []


def _classes(found: griffe.Object) -> Iterator[griffe.Class]:
    """Yield all classes that are defined in an object."""
    for member in found.members.values():
        if isinstance(member, griffe.Class):
            yield member
        if isinstance(member, griffe.Module | griffe.Class):
            yield from _classes(member)
