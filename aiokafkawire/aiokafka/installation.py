"""Puts this package in the place of aiokafka, for programs and frameworks that import ``aiokafka`` by its name."""

import sys
from importlib import import_module
from pkgutil import walk_packages
from typing import Final

from ..errors import UsageError

__all__ = ("install",)

_PACKAGE: Final = __name__.rpartition(".")[0]
_NAME: Final = "aiokafka"


def install() -> None:
    """Let ``import aiokafka``, and imports of its modules, find this package; call it before the first such import.

    Modules of aiokafka that this package does not have cannot be imported afterwards. Repeated calls have no effect.

    Raises:
        UsageError: the real aiokafka has been imported already; modules that have imported it would go on using it.
    """
    package = import_module(_PACKAGE)
    present = sys.modules.get(_NAME)
    if present is package:
        return
    if present is not None:
        raise UsageError(
            "aiokafka has been imported already, and modules that have imported it would go on using it: call "
            "aiokafkawire.aiokafka.install() before the other imports"
        )
    # All at once: a module that is found later, by its path, would be a second copy.
    for found in walk_packages(package.__path__, f"{_PACKAGE}."):
        sys.modules[_NAME + found.name.removeprefix(_PACKAGE)] = import_module(found.name)
    sys.modules[_NAME] = package
