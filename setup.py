"""Builds the wheel without compiled modules, `py3-none-any`, where AIOKAFKAWIRE_BUILD=pure is set.

All else about the package is in pyproject.toml, which has no setting that depends on the environment.
"""

import os

from setuptools import Distribution, setup

PURE = os.environ.get("AIOKAFKAWIRE_BUILD") == "pure"


class PureDistribution(Distribution):
    """A distribution that leaves out the extensions which pyproject.toml declares."""

    def parse_config_files(self, *arguments: object, **options: object) -> None:
        """Read pyproject.toml, and drop its extensions."""
        super().parse_config_files(*arguments, **options)
        self.ext_modules = None


setup(distclass=PureDistribution if PURE else Distribution)
