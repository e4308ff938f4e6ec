"""The sdist, the pure wheel, and the list of what a release consists of, in equal bytes for equal commits."""

import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

__all__ = ("ROOT", "build_reproducibly", "commit_time", "committed_tree", "normalize_sdist", "without_extensions")

ROOT = Path(__file__).parents[2]

_EXTENSION = re.compile(r"^\[\[tool\.setuptools\.ext-modules\]\].*?(?=^\[)", re.MULTILINE | re.DOTALL)


def commit_time() -> int:
    """Return the time of the commit that is checked out, in s since the epoch; SOURCE_DATE_EPOCH replaces it."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def committed_tree(target: Path) -> None:
    """Write the files of the commit that is checked out to ``target``, without the tests.

    setuptools would take some of the tests without the modules beside them, and files that are not committed.
    """
    packed = subprocess.run(
        ["git", "archive", "HEAD", ".", ":(exclude)tests"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(target, filter="data")


def without_extensions(settings: str) -> str:
    """Return the text of pyproject.toml without the compiled modules, so that the wheel is ``py3-none-any``."""
    return _EXTENSION.sub("", settings)


def normalize_sdist(path: Path, time: int) -> None:
    """Write an sdist again, with one time, one owner and two modes, since setuptools takes those of the machine."""
    with tarfile.open(path) as archive:
        members = [(member, archive.extractfile(member)) for member in archive.getmembers()]
        contents = [(member, data.read() if data is not None else b"") for member, data in members]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, data in sorted(contents, key=lambda one: one[0].name):
            clean = tarfile.TarInfo(member.name)
            clean.type = member.type
            clean.size = len(data)
            clean.mtime = time
            clean.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            archive.addfile(clean, io.BytesIO(data))
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=time) as compressed:
        compressed.write(packed.getvalue())


def build_reproducibly(target: Path) -> list[Path]:
    """Build the sdist and, from it, the pure wheel, twice in different folders; return their paths in ``target``.

    Raises:
        SystemExit: the bytes of two builds differ.
    """
    builds = [_build() for _ in range(2)]
    if builds[0] != builds[1]:
        raise SystemExit(f"two builds differ: {[name for name in builds[0] if builds[0][name] != builds[1].get(name)]}")
    target.mkdir(exist_ok=True)
    for name, data in builds[0].items():
        (target / name).write_bytes(data)
    return [target / name for name in builds[0]]


def _build() -> dict[str, bytes]:
    time = commit_time()
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(time)}
    with tempfile.TemporaryDirectory() as folder:
        tree, made = Path(folder, "tree"), Path(folder, "made")
        committed_tree(tree)
        build = [sys.executable, "-m", "build", "--outdir", str(made)]
        subprocess.run([*build, "--sdist", str(tree)], check=True, env=environment, stdout=subprocess.DEVNULL)
        [sdist] = made.glob("*.tar.gz")
        normalize_sdist(sdist, time)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        source = Path(folder, sdist.name.removesuffix(".tar.gz"))
        settings = source / "pyproject.toml"
        settings.write_text(without_extensions(settings.read_text()))
        subprocess.run([*build, "--wheel", str(source)], check=True, env=environment, stdout=subprocess.DEVNULL)
        return {path.name: path.read_bytes() for path in sorted(made.iterdir())}
