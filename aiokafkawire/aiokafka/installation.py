"""Puts this package in the place of aiokafka, for programs and frameworks that import ``aiokafka`` by its name."""

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from pathlib import Path
from pkgutil import walk_packages
from typing import Final

from ..errors import UsageError

__all__ = ("install",)

_PACKAGE: Final = __name__.rpartition(".")[0]
_NAME: Final = "aiokafka"
_RELEASE: Final = "0.14.0"


def install() -> None:
    """Let ``import aiokafka``, and imports of its modules, find this package; call it before the first such import.

    ``importlib.metadata.version("aiokafka")`` returns "0.14.0" from then on, whether aiokafka is installed or not.
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
    sys.meta_path.insert(0, _Finder())


class _Release(Distribution):
    """The release of aiokafka whose API this package has, for frameworks that choose by its version."""

    def read_text(self, filename: str) -> str | None:
        """Return the metadata, and None for every other file."""
        return f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {_RELEASE}\n" if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """Return where a file of this package is."""
        return Path(__file__).parent / path


class _Finder(DistributionFinder):
    """Finds the version of aiokafka; modules it leaves to others."""

    def find_spec(self, *arguments: object) -> None:
        """Return None: ``sys.modules`` has the modules."""

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """Return the release if aiokafka is asked for by its name."""
        return [_Release()] if context is not None and context.name == _NAME else []
