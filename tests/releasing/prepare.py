"""Checks that a release may be made, builds what does not depend on a platform, and sets the tag.

``nox -s release -- --dry-run`` builds, and lists what is missing; ``-- --check`` fails if anything is. A bare ``nox -s
release`` sets the tag as well, and pushes it, on which the workflow publishes. The version has one place,
aiokafkawire/version.py.
"""

import argparse
import datetime as dt
import email
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from .distributions import ROOT, build_reproducibly, commit_time

__all__ = ("changelog_problem", "main", "version")

_VERSION = re.compile(r'^__version__: Final = "(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"$', re.MULTILINE)


def version(source: str) -> str:
    """Return the version that version.py states.

    Raises:
        SystemExit: it states none that a release may have.
    """
    found = _VERSION.search(source)
    if found is None:
        raise SystemExit("aiokafkawire/version.py states no version such as 1.2.3 or 1.2.3rc1")
    return found[1]


def changelog_problem(changelog: str, released: str) -> str | None:
    """Return what keeps CHANGELOG.md from describing a version; None if nothing does.

    The newest section has to be ``## VERSION (YYYY-MM-DD)``, and has to say something.
    """
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    heading, _, text = sections[0].partition("\n") if sections else ("", "", "")
    found = re.fullmatch(r"(\S+) \((.+)\)", heading)
    if found is None or found[1] != released:
        return f"CHANGELOG.md begins with {heading!r}, not with {released}"
    try:
        dt.date.fromisoformat(found[2])
    except ValueError:
        return f"CHANGELOG.md has no date for {released}: ({found[2]}) must be (YYYY-MM-DD)"
    return None if text.strip() else f"CHANGELOG.md says nothing of {released}"


def _problems(released: str, tag: str) -> list[str]:
    """Return what has to be done before this commit can be released."""
    found = [changelog_problem((ROOT / "CHANGELOG.md").read_text(), released)]
    if _git("status", "--porcelain"):
        found.append("there are changes that are not committed; only the commit is built")
    if tag in _git("tag", "--list", tag).split() and _git("rev-list", "-n1", tag) != _git("rev-parse", "HEAD"):
        found.append(f"the tag {tag} is on another commit: raise the version")
    return [problem for problem in found if problem is not None]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _check_metadata(wheel: Path, released: str) -> None:
    """Check that a wheel has the version of version.py."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        stated = email.message_from_bytes(archive.read(name))["Version"]
    if stated != released:
        raise SystemExit(f"{wheel.name} states version {stated}, and version.py {released}")


def write_sbom(wheel: Path, target: Path) -> Path:
    """Write a CycloneDX list of a wheel and all that pip installs with it, and return its path."""
    path = target / f"{wheel.name.split('-py3')[0]}.cdx.json"
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
        inside = str(environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        subprocess.run([sys.executable, "-m", "pip", "--python", inside, "install", "-q", str(wheel)], check=True)
        command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml")]
        options = ["--output-reproducible", "--spec-version", "1.6", "--mc-type", "library", "-o", str(path)]
        subprocess.run([*command, *options, inside], check=True)
    return path


def main() -> None:
    """Check, build, and set the tag unless it is a dry run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dry-run", action="store_true", help="build and list what is missing, but set no tag")
    parser.add_argument("--check", action="store_true", help="build and fail if anything is missing, but set no tag")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder of the distributions")
    options = parser.parse_args()
    released = version((ROOT / "aiokafkawire" / "version.py").read_text())
    tag = f"v{released}"
    problems = _problems(released, tag)
    if problems and not options.dry_run:
        raise SystemExit("cannot release: " + "; ".join(problems))
    sdist, wheel = sorted(build_reproducibly(options.dist), key=lambda path: path.suffix)
    _check_metadata(wheel, released)
    for path in (sdist, wheel, write_sbom(wheel, options.dist)):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        sys.stdout.write(f"{path.stat().st_size / 1e6:6.2f} MB  sha256 {digest}  {path.name}\n")
    sys.stdout.write(f"the sdist and the pure wheel are equal in two builds, SOURCE_DATE_EPOCH={commit_time()}\n")
    if options.dry_run:
        sys.stdout.write("".join(f"TO DO: {problem}\n" for problem in problems))
        sys.stdout.write(f"dry run: `nox -s release` sets and pushes the tag {tag}, and the workflow publishes it\n")
    if options.dry_run or options.check:
        return
    if not _git("tag", "--list", tag):
        _git("tag", "--annotate", tag, "--message", f"aiokafkawire {released}")
    _git("push", "origin", tag)
    sys.stdout.write(f"pushed {tag}: the workflow publishes it when a maintainer has approved\n")


if __name__ == "__main__":
    main()
