"""Writes the sources of the site: README's beginning, the pages of docs/, and the reference, from the docstrings.

``python docs/site/pages.py FOLDER``; `nox -s docs` then builds the site from the folder.
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
_TITLE: Final = re.compile(r"^# (?:\d+\W+)?(.*)$", re.MULTILINE)


def write(folder: Path) -> None:
    """Write the configuration of the generator and its pages into a new folder."""
    docs, pages = ROOT / "docs", folder / "docs"
    shutil.copytree(docs, pages, ignore=shutil.ignore_patterns("site"))
    for path in pages.rglob("*.md"):
        path.write_text(with_links_of_the_site(path.read_text(), docs / path.relative_to(pages)))
    (pages / "index.md").write_text(start_page((ROOT / "README.md").read_text()))
    (pages / "reference").mkdir()
    packages = [package for package in PACKAGES if exported(package)]
    for package in packages:
        (pages / "reference" / f"{package}.md").write_text(reference(package))
    shutil.copy(ROOT / "docs" / "site" / "site.css", pages)
    shutil.copy(ROOT / "docs" / "site" / "roles.py", folder)
    settings = (ROOT / "docs" / "site" / "mkdocs.yml").read_text().replace("SOURCES", str(ROOT))
    references = "".join(f"\n          - {package}: reference/{package}.md" for package in packages)
    settings = settings.replace(" REFERENCE", references).replace(" DECISIONS", decisions(docs / "decisions"))
    (folder / "mkdocs.yml").write_text(settings)


def start_page(readme: str) -> str:
    """Return the start page: the beginning of the README, with links from docs/ instead of the folder above."""
    beginning = readme[: readme.index("## Try it")].replace("](docs/", "](")
    return f"{beginning}[First records](first-records.md) takes five minutes.\n"


def reference(package: str) -> str:
    """Return the page of a package: each public name, with its docstring where it has one."""
    lines, others = [f"# {package}", ""], []
    for name in sorted(exported(package), key=str.lower):
        found = find(package, name)
        if found is None:
            others.append(f"`{name}`")
        else:
            lines += [f"::: {found[0]}.{name}", ""]
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
    """Return a page whose links to files that are not of the site lead to the repository."""

    def outside(match: re.Match[str]) -> str:
        target = (page.parent / match["path"]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.is_relative_to(ROOT):
            return match[0]
        return f"]({REPOSITORY}/{target.relative_to(ROOT)}{match['anchor'] or ''})"

    return _OUTSIDE.sub(outside, markdown)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
