"""Reads the files of a code base, lists what uses other clients, and finds the imports that are certain to change."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self

import attrs

from ..counted import counted
from ..shell.output import note
from ..shell.safe_text import safe_text
from .advice import Severity
from .analysis import find_dependencies, find_uses, may_use
from .finding import PAGE, Finding
from .parsing import UnreadableSource
from .rewriting import with_drop_in
from .source_files import SourceFile, own_packages, read_source

__all__ = ("Changes", "CodeBase", "FileFindings", "PlacesLeft", "changed_imports", "diff_of", "finding_line")

Changes = dict[Path, tuple[bytes, bytes]]
"""The files whose imports change: each as it is, and as it will be."""

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
    sections: set[str] = attrs.field(factory=set)
    """The sections of the documentation's page about what was found."""

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
                self.sections.update(each.section for each in found)
                yield FileFindings(file.path, found)

    def summary(self) -> str:
        """Return what was read and found, as a line."""
        text = f"{counted(self.read, 'file')} read, {self.using} of them with other clients"
        if self.using:
            text += (
                f": {counted(self.counts[Severity.LOOK], 'place')} to look at, "
                f"{self.counts[Severity.DROP_IN]} that the drop-in changes, "
                f"{self.counts[Severity.NO_COUNTERPART]} without a counterpart"
            )
        return text + self.unread()

    def unread(self) -> str:
        """Return how many files could not be read, to follow another text; empty if all were read."""
        return f"; {counted(self.skipped, 'file')} could not be read" if self.skipped else ""

    def reference(self) -> str:
        """Return where to read more about what was found, as a line; empty if nothing was found."""
        if not self.sections:
            return ""
        *others, last = (f"'{each}'" for each in sorted(self.sections))
        named = f"sections {', '.join(others)} and {last}" if others else f"section {last}"
        text = f"see '{PAGE}' of the documentation, {named}"
        if self.counts[Severity.DROP_IN]:
            text += "; --json prints what stands for drop-in names in the client's own API, as own_api"
        return text

    def _skip(self, path: Path, why: str) -> None:
        self.skipped += 1
        note(f"{safe_text(str(path), _PATH_LENGTH)}: skipped, since {why}")


def finding_line(path: Path, finding: Finding, *, at_length: bool) -> str:
    """Return a finding as a line for people, which begins as compilers' messages do.

    Args:
        path: the file.
        finding: the finding.
        at_length: whether to say what differs as well.
    """
    place = f"{safe_text(str(path), _PATH_LENGTH)}:{finding.line}:{finding.column}"
    line = f"{place}: {finding.severity.value}: {finding.name}: {finding.advice}"
    return f"{line}; {finding.differs}" if at_length and finding.differs else line


@attrs.define
class PlacesLeft:
    """The places that a change of imports leaves to look at."""

    listed: int
    """The number of those that the list of findings still has."""
    hidden: list[tuple[Path, Finding]]
    """Those that the list has no longer, such as private names of what is now the drop-in's."""

    @classmethod
    def after(cls, found: Iterable[FileFindings], changes: Changes, files: Iterable[SourceFile]) -> Self:
        """Return the places that are left of those found before the changes.

        Args:
            found: the findings in the files before the changes.
            changes: the changes.
            files: the files of the code base.
        """
        own = own_packages(files)
        left = cls(0, [])
        for file in found:
            if file.path not in changes:
                left.listed += len(file.findings)
                continue
            still = Counter((each.line, each.name) for each in find_uses(changes[file.path][1], own))
            left.listed += still.total()
            left.hidden += [
                (file.path, each)
                for each in file.findings
                if each.severity is not Severity.DROP_IN and (each.line, each.name) not in still
            ]
        return left

    def summary(self) -> str:
        """Return how many places are left, and how to see them."""
        hidden = len(self.hidden)
        if not hidden and not self.listed:
            return "no place is left to look at"
        how = "run the command again without --write"
        if hidden:
            how = f"the {hidden:,} above"
            how += f", and {self.listed:,} that the command lists without --write" if self.listed else ""
        return f"{counted(hidden + self.listed, 'place')} left to look at: {how}"


def changed_imports(files: Iterable[SourceFile]) -> Changes:
    """Return the files whose imports the drop-in takes over."""
    changed: Changes = {}
    for file in files:
        if not file.is_python:
            continue
        try:
            source = read_source(file.path)
            result = with_drop_in(source) if b"aiokafka" in source else source
        except (UnreadableSource, *_TOO_DEEP, OSError):
            continue  # CodeBase.findings says so
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
    if file.unlisted:
        raise OSError(0, file.unlisted)
    source = read_source(file.path)
    if not file.is_python:
        return find_dependencies(source.decode("utf-8", "replace"))
    return find_uses(source, own) if may_use(source) else []
