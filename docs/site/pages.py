"""Writes the sources of the site: README's beginning, the pages of docs/, and the reference, from the docstrings.

``python docs/site/pages.py FOLDER VERSION``; `nox -s docs` then builds the site from the folder.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from support.public_api import PACKAGES, exported, find  # noqa: E402, the line before finds it

REPOSITORY: Final = "https://github.com/aiokafkawire/aiokafkawire/blob/main"

_OUTSIDE: Final = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#]+)(?P<anchor>#[^)]*)?\)")
_NAMED: Final = re.compile(r"\[(?P<name>[\w-]+)\.md\]\((?P<target>(?P=name)\.md(?:#[^)]*)?)\)")
_TITLE: Final = re.compile(r"^# (?:\d+\W+)?(.*)$", re.MULTILINE)


def write(folder: Path, version: str) -> None:
    """Write the configuration of the generator and its pages into a new folder."""
    docs, pages = ROOT / "docs", folder / "docs"
    shutil.copytree(docs, pages, ignore=shutil.ignore_patterns("site"))
    for path in pages.rglob("*.md"):
        path.write_text(with_links_of_the_site(path.read_text(), docs / path.relative_to(pages)))
    (pages / "index.md").write_text(start_page((ROOT / "README.md").read_text()))
    (pages / "reference").mkdir()
    packages = [package for package in PACKAGES if exported(package)]
    (folder / "names.txt").write_text("\n".join(sorted({name for each in packages for name in documented(each)})))
    for package in packages:
        (pages / "reference" / f"{package}.md").write_text(reference(package))
    shutil.copy(ROOT / "docs" / "site" / "site.css", pages)
    for extension in ("attrs_classes.py", "roles.py"):
        shutil.copy(ROOT / "docs" / "site" / extension, folder)
    settings = (ROOT / "docs" / "site" / "mkdocs.yml").read_text().replace("SOURCES", str(ROOT))
    references = "".join(
        f"\n          - {package.removeprefix('aiokafkawire.')}: reference/{package}.md" for package in packages
    )
    settings = settings.replace(" REFERENCE", references).replace(" DECISIONS", decisions(docs / "decisions"))
    settings = settings.replace("VERSION", version)
    (folder / "mkdocs.yml").write_text(settings)


def start_page(readme: str) -> str:
    """Return the start page: the beginning of the README, with links from docs/ instead of the folder above."""
    beginning = readme[: readme.index("## Try it")].replace("](docs/", "](")
    return f"{beginning}[First records](first-records.md) takes five minutes.\n"


def documented(package: str) -> list[str]:
    """Return the paths of the public names of a package that the reference describes, in the order of the page."""
    found = [(find(package, name), name) for name in sorted(exported(package), key=str.lower)]
    return [f"{place[0]}.{name}" for place, name in found if place is not None]


def reference(package: str) -> str:
    """Return the page of a package: each public name, with its docstring where it has one."""
    lines = [f"# {package}", "", *(line for path in documented(package) for line in (f"::: {path}", ""))]
    others = [f"`{name}`" for name in sorted(exported(package), key=str.lower) if find(package, name) is None]
    if others:
        lines += ["## Also exported", "", ", ".join(others), ""]
    return "\n".join(lines)


def decisions(folder: Path) -> str:
    """Return the lines of the navigation for the decisions, their list first."""
    lines = ["\n          - All decisions: decisions/README.md"]
    for path in sorted(folder.glob("0*.md")):
        title = _TITLE.search(path.read_text())
        name = path.stem if title is None else title[1].replace('"', "'")
        lines.append(f'\n          - "{name}": decisions/{path.name}')
    return "".join(lines)


def with_links_of_the_site(markdown: str, page: Path) -> str:
    """Return a page whose links to files outside of the site lead to the repository, and others name the titles."""

    def outside(match: re.Match[str]) -> str:
        target = (page.parent / match["path"]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.is_relative_to(ROOT):
            return match[0]
        return f"]({REPOSITORY}/{target.relative_to(ROOT)}{match['anchor'] or ''})"

    def titled(match: re.Match[str]) -> str:
        title = _TITLE.search((page.parent / f"{match['name']}.md").read_text())
        return match[0] if title is None else f"[{title[1]}]({match['target']})"

    return _NAMED.sub(titled, _OUTSIDE.sub(outside, markdown))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
