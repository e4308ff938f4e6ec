"""Names that a package exports and whose modules it imports on first use, so that importing one part loads no other."""

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ("lazy_exports",)


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return a ``__getattr__`` (PEP 562) for a package, given the module of each name, such as ``.broker``."""

    def get_attribute(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return get_attribute
