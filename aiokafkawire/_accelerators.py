"""Modules that exist twice: compiled, for speed, and in plain Python, for every machine and for reading."""

import importlib
import logging
import os
from collections.abc import Mapping
from types import ModuleType

__all__ = ("load_twin",)

_log = logging.getLogger("aiokafkawire.runtime")
_said: list[str] = []


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
    first = next(iter(modules))
    for name in (asked,) if asked else modules:
        try:
            loaded = importlib.import_module(f"{package}.{modules[name]}")
            if not asked and name != first:
                _say(choice)
            return name, loaded
        except ImportError as error:
            missing = error
    raise ImportError(f"{choice}={asked} asks for a twin that cannot be loaded: {missing}") from missing


def _say(choice: str) -> None:
    if not _said:
        _log.warning(
            "aiokafkawire runs in plain Python, many times slower: its compiled parts were not built, for lack of a C "
            "compiler while it was installed. If that is meant, say so: %s",
            "AIOKAFKAWIRE_MESSAGES=pure AIOKAFKAWIRE_RECORDS=pure",
        )
    _said.append(choice)
