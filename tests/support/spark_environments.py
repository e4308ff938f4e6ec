"""Python environments for Spark's drivers and executors: with this package, and without it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

from support.spark import ROOT, tree

__all__ = ("Environments", "environment")


class Environments:
    """Virtual environments in a folder, each with the packages of the running Python except this one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._packages = folder / "packages"
        self._packages.mkdir(parents=True)
        for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
            if "aiokafkawire" not in entry.name and entry.suffix != ".pth":
                (self._packages / entry.name).symlink_to(entry)
        self.bare = self._new("bare")
        """A Python without this package."""
        self.full = self._new("full", *tree().split(os.pathsep))
        """A Python with it."""

    def noting(self, name: str, python: Path) -> Path:
        """Make a program that runs a Python, and writes its name and arguments to :meth:`starts`."""
        program = self._folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {self._folder}/starts\nexec {python} "$@"\n')
        program.chmod(0o755)
        return program

    def starts(self) -> list[str]:
        """The starts of all noting programs."""
        return (self._folder / "starts").read_text().splitlines()

    def archive(self) -> Path:
        """The environment with this package, packed as ``spark.archives`` takes it."""
        packed = self._folder / "environment.tar.gz"
        with tarfile.open(packed, "w:gz") as archive:
            archive.add(self._root(self.full), ".")
        return packed

    def zipped(self) -> Path:
        """The package's Python files, as ``spark.submit.pyFiles`` takes them."""
        packed = self._folder / "aiokafkawire.zip"
        with zipfile.ZipFile(packed, "w") as archive:
            for file in (ROOT / "aiokafkawire").rglob("*"):
                if file.is_file() and file.suffix not in (".so", ".pyc", ".c"):
                    archive.write(file, file.relative_to(ROOT))
        return packed

    def _new(self, name: str, *more: str) -> Path:
        root = self._folder / name
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
        packages = next((root / "lib").iterdir()) / "site-packages"
        (packages / "shared.pth").write_text("\n".join([str(self._packages), *more]) + "\n")
        return root / "bin" / "python"

    def _root(self, python: Path) -> Path:
        return python.parent.parent


def environment(**variables: str) -> dict[str, str]:
    """The environment of this process without paths of Python and Spark, and with these variables."""
    dropped = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME")
    return {name: value for name, value in os.environ.items() if name not in dropped} | variables
