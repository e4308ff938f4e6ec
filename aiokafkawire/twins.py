"""Modules that exist twice: compiled, for speed, and in plain Python, for every machine and for reading."""

import importlib
import os
from collections.abc import Mapping
from types import ModuleType

__all__ = ("load_twin",)


def load_twin(package: str, modules: Mapping[str, str], choice: str) -> tuple[str, ModuleType]:
    """Load the twin that the environment asks for, or else the first that loads: its name, and the module.

    Args:
        package: where the twins are.
        modules: the module's name for each twin's (``cython``, ``pure``), in the order they are tried.
        choice: the environment variable that may name a twin.

    Raises:
        ImportError: the variable names no twin, or one that cannot be loaded.
    """
    asked = os.environ.get(choice)
    if asked and asked not in modules:
        raise ImportError(f"{choice}={asked}: must be one of {', '.join(modules)}")
    missing: ImportError | None = None
    for name in (asked,) if asked else modules:
        try:
            return name, importlib.import_module(f"{package}.{modules[name]}")
        except ImportError as error:
            missing = error
    raise ImportError(f"{choice}={asked} asks for a twin that cannot be loaded: {missing}") from missing
