"""Reads the files of a code base, lists what uses other clients, and changes the imports that are certain."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from ..shell.output import note
from ..shell.safe_text import safe_text
from .advice import Severity
from .analysis import find_dependencies, find_uses, may_use
from .finding import Finding
from .parsing import UnreadableSource
from .rewriting import with_drop_in
from .source_files import SourceFile, own_packages, read_source

__all__ = ("CodeBase", "FileFindings", "changed_imports", "diff_of", "finding_line")

_PATH_LENGTH: Final = 4096
_TOO_DEEP: Final = (RecursionError, KeyError)
"""The errors of LibCST for sources that are nested too deeply for it."""


@attrs.frozen
class FileFindings:
    """The findings in a file that uses other clients."""

    path: Path
    findings: list[Finding]


@attrs.define
class CodeBase:
    """The files of a code base, and counts of what was found in those that have been read."""

    files: list[SourceFile]
    read: int = 0
    skipped: int = 0
    using: int = 0
    counts: Counter[Severity] = attrs.field(factory=Counter)

    def findings(self, files: Iterable[SourceFile]) -> Iterator[FileFindings]:
        """Yield the findings in those of the files that have any. A file that cannot be read gets a line as a note."""
        own = own_packages(self.files)
        for file in files:
            try:
                found = _find(file, own)
            except UnreadableSource as error:
                self._skip(file.path, f"it cannot be parsed as Python: {error}")
                continue
            except _TOO_DEEP:
                self._skip(file.path, "it is nested too deeply")
                continue
            except OSError as error:
                self._skip(file.path, error.strerror or str(error))
                continue
            self.read += 1
            if found:
                self.using += 1
                self.counts.update(each.severity for each in found)
                yield FileFindings(file.path, found)

    def summary(self) -> str:
        """Return what was read and found, as a line."""
        text = f"{_counted(self.read, 'file')} read, {self.using} of them with other clients"
        if self.using:
            text += (
                f": {_counted(self.counts[Severity.LOOK], 'place')} to look at, "
                f"{self.counts[Severity.DROP_IN]} that the drop-in changes, "
                f"{self.counts[Severity.NO_COUNTERPART]} without a counterpart"
            )
        return text + (f"; {_counted(self.skipped, 'file')} skipped" if self.skipped else "")

    def _skip(self, path: Path, why: str) -> None:
        self.skipped += 1
        note(f"{safe_text(str(path), _PATH_LENGTH)}: skipped, since {why}")


def finding_line(path: Path, finding: Finding, *, at_length: bool) -> str:
    """Return a finding as a line for people, which begins as compilers' messages do.

    Args:
        path: the file.
        finding: the finding.
        at_length: whether to say what differs as well, and where the documentation is.
    """
    place = f"{safe_text(str(path), _PATH_LENGTH)}:{finding.line}:{finding.column}"
    line = f"{place}: {finding.severity.value}: {finding.name}: {finding.advice}"
    if not at_length:
        return line
    return f"{line}; {finding.differs} ({finding.link})" if finding.differs else f"{line} ({finding.link})"


def changed_imports(files: Iterable[SourceFile]) -> dict[Path, tuple[bytes, bytes]]:
    """Return the files whose imports the drop-in takes over: each as it is, and as it would be."""
    changed = {}
    for file in files:
        if not file.is_python:
            continue
        try:
            source = read_source(file.path)
            result = with_drop_in(source) if b"aiokafka" in source else source
        except (UnreadableSource, *_TOO_DEEP, OSError):
            continue  # the list of findings says so
        if result != source:
            changed[file.path] = source, result
    return changed


def diff_of(path: Path, before: bytes, after: bytes) -> bytes:
    """Return the change of a file as a unified diff."""
    name = str(path).encode("utf-8", "surrogateescape")
    lines = difflib.diff_bytes(
        difflib.unified_diff, before.splitlines(keepends=True), after.splitlines(keepends=True), name, name
    )
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def _find(file: SourceFile, own: frozenset[str]) -> list[Finding]:
    source = read_source(file.path)
    if not file.is_python:
        return find_dependencies(source.decode("utf-8", "replace"))
    return find_uses(source, own) if may_use(source) else []


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
