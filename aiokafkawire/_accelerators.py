"""Chooses between the compiled modules and their twins in plain Python, which need no compiler."""

import importlib
import logging
import os
from collections.abc import Mapping
from types import ModuleType

__all__ = ("load_twin",)

_log = logging.getLogger("aiokafkawire.runtime")
_warned: list[str] = []


def load_twin(package: str, modules: Mapping[str, str], choice: str) -> tuple[str, ModuleType]:
    """Load the twin that the environment variable ``choice`` names; if it is not set, the first that can be loaded.

    Return the twin's name and module.

    Args:
        package: the package that contains the twins.
        modules: the module of each twin by the twin's name (``cython``, ``pure``), in the order to try.

    Raises:
        ImportError: the variable names an unknown twin, or no twin can be loaded.
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
                _warn_uncompiled(choice)
            return name, loaded
        except ImportError as error:
            missing = error
    raise ImportError(f"{choice}={asked or 'unset'}: no such implementation can be loaded: {missing}") from missing


def _warn_uncompiled(choice: str) -> None:
    if not _warned:
        _log.warning(
            "aiokafkawire runs in plain Python, many times slower: its compiled modules were not built, because there "
            "was no C compiler when it was installed, or no wheel for this platform. Install again with a C compiler "
            "and pip's --no-binary aiokafkawire, or set AIOKAFKAWIRE_MESSAGES=pure AIOKAFKAWIRE_RECORDS=pure to "
            "accept it"
        )
    _warned.append(choice)
