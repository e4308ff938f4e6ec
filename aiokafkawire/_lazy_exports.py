"""Makes a package import its modules when their exported names are first used, to keep imports fast."""

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ("lazy_exports",)


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return a ``__getattr__`` (PEP 562) for a package; ``modules`` maps a name to its module, such as ``.broker``."""

    def get_attribute(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return get_attribute
