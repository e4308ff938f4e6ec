"""Makes a package import its modules when their exported names are first used, to keep imports fast."""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module

__all__ = ("lazy_exports",)


def lazy_exports(package: str, modules: Mapping[str, str], submodules: Collection[str] = ()) -> Callable[[str], object]:
    """Return a ``__getattr__`` (PEP 562) for a package, which loads each name once.

    Args:
        package: the package's name.
        modules: maps an exported name to its module, such as ``.broker``.
        submodules: the modules that are attributes of the package without an import of their own.
    """

    def get_attribute(name: str) -> object:
        if name in submodules:
            return import_module(f".{name}", package)
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get_attribute
