"""Adds a built site to the folder of all versions of the site, which a server of static files can publish.

``python docs/site/versions.py SITE FOLDER VERSION`` copies it to FOLDER/VERSION, replaces what was there, writes
FOLDER/versions.json, which the selector of each version reads, and lets FOLDER/index.html lead to the newest release.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Final

_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")
_REDIRECT: Final = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>aiokafkawire</title><meta http-equiv="refresh" content="0; url={0}/"></head>
<body><a href="{0}/">aiokafkawire {0}</a></body>
</html>
"""


def add(site: Path, folder: Path, version: str) -> None:
    """Add a version of the site to the folder of all versions."""
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(site, folder / version)
    versions = in_order([path.name for path in folder.iterdir() if path.is_dir() and _VERSION.fullmatch(path.name)])
    newest = newest_release(versions)
    entries = [{"version": one, "title": one, "aliases": ["latest"] if one == newest else []} for one in versions]
    (folder / "versions.json").write_text(json.dumps(entries, indent=1))
    (folder / "index.html").write_text(_REDIRECT.format(newest))


def in_order(versions: list[str]) -> list[str]:
    """Return versions such as 1.10.0 and 1.2.0rc1, the newest first; a release is newer than its candidates."""
    return sorted(versions, key=_key, reverse=True)


def newest_release(versions: list[str]) -> str:
    """Return the newest of versions in order that is no candidate; the newest candidate if there is no release."""
    return next((one for one in versions if _key(one)[3] == "release"), versions[0])


def _key(version: str) -> tuple[int, int, int, str, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise SystemExit(f"{version} is no version such as 1.2.3 or 1.2.3rc1")
    return int(found[1]), int(found[2]), int(found[3]), found[4] or "release", int(found[5] or 0)


if __name__ == "__main__":
    add(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
