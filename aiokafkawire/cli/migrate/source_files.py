"""Finds and reads the files of a code base."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

import attrs

from ..exit_status import MISSING, CommandFailed
from .libraries import LIBRARIES

__all__ = ("MAX_BYTES", "SourceFile", "own_packages", "read_source", "source_files", "write_files")

MAX_BYTES: Final = 4 * 1024 * 1024
"""The size up to which files are read: larger ones are data."""

_SKIPPED_FOLDERS: Final = ("__pycache__", "node_modules", "site-packages")
_VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"
_DEPENDENCIES: Final = ("pyproject.toml", "setup.cfg", "Pipfile", "environment.yml", "environment.yaml")
_PYTHON: Final = (".py", ".pyi", ".pyw")


@attrs.frozen
class SourceFile:
    """A file to read: Python, or a list of dependencies. Or a folder that cannot be listed, with the reason."""

    path: Path
    is_python: bool
    unlisted: str = ""


def source_files(paths: Iterable[str]) -> list[SourceFile]:
    """Return the Python files and lists of dependencies under some paths, each once, in the order of their names.

    Hidden folders, virtual environments, caches and ``node_modules`` are skipped, unless they are named themselves.

    Raises:
        CommandFailed: a path does not exist (exit status 2).
    """
    found: dict[Path, SourceFile] = {}
    for name in paths:
        path = Path(name)
        if path.is_dir():
            for file in _files_under(path):
                found.setdefault(file.path, file)
        elif path.exists():
            found.setdefault(path, SourceFile(path, is_python=not _lists_dependencies(path.name)))
        else:
            raise CommandFailed(f"{name} does not exist", MISSING)
    return list(found.values())


def own_packages(files: Iterable[SourceFile]) -> frozenset[str]:
    """Return the libraries whose name is that of a package, or module, at the top of this code base."""
    own = set()
    for file in files:
        folder, stem = file.path.parent, file.path.stem
        if stem == "__init__":
            folder, stem = folder.parent, folder.name
        if file.is_python and stem in LIBRARIES and not (folder / "__init__.py").exists():
            own.add(stem)
    return frozenset(own)


def read_source(path: Path) -> bytes:
    """Return what is in a file.

    Raises:
        OSError: it cannot be read, or is larger than MAX_BYTES.
    """
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(0, f"it is larger than {MAX_BYTES // (1024 * 1024)} MB")
    return content


def write_files(changes: Mapping[Path, tuple[bytes, bytes]]) -> dict[Path, str]:
    """Write files, each given as it was read and as it shall be; return why some of them stay as they are."""
    failed: dict[Path, str] = {}
    for path, (before, after) in changes.items():
        try:
            with path.open("r+b") as file:  # a file that may not be written is not replaced either
                is_as_read = file.read() == before
            if is_as_read:
                _replace(path.resolve(), after)
            else:
                failed[path] = "it has changed meanwhile; run the command again"
        except OSError as error:
            failed[path] = error.strerror or str(error)
    return failed


def _replace(path: Path, content: bytes) -> None:
    """Replace a file as a whole: a full disk or Ctrl-C leaves the old one."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.close()
            shutil.copymode(path, file.name)
            Path(file.name).replace(path)
        except BaseException:
            file.close()
            Path(file.name).unlink(missing_ok=True)
            raise


def _files_under(root: Path) -> Iterator[SourceFile]:
    failed: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=failed.append):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not _is_skipped(here / name))
        for name in sorted(names):
            path = here / name
            if (path.suffix in _PYTHON or _lists_dependencies(name)) and os.path.isfile(path):
                yield SourceFile(path, is_python=path.suffix in _PYTHON)
    for error in failed:
        yield SourceFile(Path(error.filename), is_python=False, unlisted=error.strerror or str(error))


def _is_skipped(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _SKIPPED_FOLDERS:
        return True
    # Unlike the methods of paths, functions of os.path return False where the user has no rights.
    return os.path.exists(folder / _VIRTUAL_ENVIRONMENT)


def _lists_dependencies(name: str) -> bool:
    return name in _DEPENDENCIES or (name.endswith((".txt", ".in")) and "requirements" in name)
