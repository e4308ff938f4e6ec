"""The package's version, which the package's metadata takes from here: to ask the metadata would take longer."""

from typing import Final

__all__ = ("__version__",)

__version__: Final = "0.1.0"
