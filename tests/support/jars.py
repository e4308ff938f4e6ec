"""The jars of the servers that tests boot: by Maven, once on this machine for each version.

They lie in ``AIOKAFKAWIRE_CACHE`` (``~/.cache/aiokafkawire`` unless set).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from .guarded_process import BootFailed, run_to_end
from .patience import PATIENCE

if sys.platform != "win32":
    import fcntl

__all__ = ("NEEDS", "by_maven", "missing")

NEEDS = "Apache Kafka tests need Java 17 or later and Maven: "
"""How every sentence of `missing` begins."""

_TIMEOUT = 600.0


def missing() -> str | None:
    """What this machine lacks for running Apache Kafka, as a sentence; None when nothing."""
    if sys.platform == "win32":
        return f"{NEEDS}they do not run on Windows"
    lacks = [reason for reason in (_java_missing(), _maven_missing()) if reason]
    return NEEDS + ", ".join(lacks) if lacks else None


def by_maven(what: str, version: str, wanted: Iterable[str], unwanted: Iterable[str] = ()) -> Path:
    """The folder with the jars of ``what``, filled at the first call for a version on this machine.

    :param wanted: coordinates as ``group:artifact:version``; what they need comes along.
    :param unwanted: groups of which nothing does.
    :raises BootFailed: Maven failed, or another process has held the lock for too long.
    """
    cache = Path(os.environ.get("AIOKAFKAWIRE_CACHE") or Path.home() / ".cache" / "aiokafkawire")
    folder = cache.absolute() / what / version
    jars, complete = folder / "jars", folder / "ok"
    if complete.exists():
        return jars
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "lock"):
        if not complete.exists():
            shutil.rmtree(jars, ignore_errors=True)  # what an interrupted run left
            pom = folder / "pom.xml"
            pom.write_text(_pom(what, wanted, unwanted))
            maven = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "-Dstyle.color=never"]
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
            command = [*maven, "--file", str(pom), *goal]
            run_to_end(command, folder / "maven.log", _TIMEOUT, f"resolving {what} {version} by Maven")
            complete.touch()
    return jars


def _java_missing() -> str | None:
    if shutil.which("java") is None:
        return "no `java` on PATH"
    try:
        shown = subprocess.run(["java", "-version"], check=False, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"`java -version` failed ({error})"
    found = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    if found is None:
        return "`java -version` names no version"
    return None if int(found[1]) >= 17 else f"`java` on PATH is version {found[1]}"


def _maven_missing() -> str | None:
    return None if shutil.which("mvn") else "no `mvn` on PATH"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file's lock against other processes; the system releases it if we die."""
    deadline = time.monotonic() + _TIMEOUT
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BootFailed(f"another process has held {path} for {_TIMEOUT:.0f} s") from None
                time.sleep(0.2)
        yield


def _pom(what: str, wanted: Iterable[str], unwanted: Iterable[str]) -> str:
    exclusions = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>" for group in unwanted
    )
    shape = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    shape += f"<exclusions>{exclusions}</exclusions></dependency>"
    dependencies = "\n    ".join(shape.format(*coordinates.split(":")) for coordinates in wanted)
    return f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>aiokafkawire.tests</groupId>
  <artifactId>{what}</artifactId>
  <version>1</version>
  <dependencies>
    {dependencies}
  </dependencies>
</project>
"""
