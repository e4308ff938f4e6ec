"""Writes the roles of docstrings, such as ``:class:`Client``` and ``:meth:`.Client.admin```, as Markdown.

A name that the reference has becomes a link to it, any other name only code. names.txt, which pages.py writes beside
this file, lists what the pages of the reference begin their sections with.
"""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import griffe

_ROLE: Final = re.compile(r":(?:class|meth|func|mod|attr|data|exc|obj):`(?P<hidden>~?)(?P<path>[^`<]+)`")


class Roles(griffe.Extension):
    """Replaces each role by its name, before the sections of the docstring are read."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Replace the roles of all docstrings of a package."""
        names = Path(__file__).with_name("names.txt").read_text().split()
        anchors = [anchor for name in names if _is_in(pkg, name) for anchor in _anchors(pkg, name)]
        for found in _objects(pkg):
            if found.docstring is not None:
                found.docstring.value = with_links(found.docstring.value, found.path, anchors)


def with_links(docstring: str, owner: str, anchors: list[str]) -> str:
    """Return a docstring with Markdown for its roles; ``owner`` is the path of what it describes."""

    def link(match: re.Match[str]) -> str:
        path = match["path"].lstrip(".")
        name = path.rpartition(".")[2] if match["hidden"] else path
        anchor = anchor_of(path, owner, anchors)
        return f"`{name}`" if anchor is None else f"[`{name}`][{anchor}]"

    return _ROLE.sub(link, docstring)


def anchor_of(path: str, owner: str, anchors: list[str]) -> str | None:
    """Return the anchor that a role means: of those that end with its path, the one nearest to the docstring."""
    fitting = [anchor for anchor in anchors if anchor == path or anchor.endswith(f".{path}")]
    near = [anchor for anchor in fitting if _is_top(anchor, path) or owner.startswith(_owner_of(anchor, path))]
    return max(near, key=lambda one: (_shared(one, owner), -len(one)), default=None)


def _shared(path: str, other: str) -> int:
    """Return how many packages and names two paths have in common at their beginning."""
    pairs = zip(path.split("."), other.split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_top(anchor: str, path: str) -> bool:
    """Return whether a path begins with the name of a class or a function, and not with that of a member."""
    return _owner_of(anchor, path).islower()


def _owner_of(anchor: str, path: str) -> str:
    return anchor.removesuffix(path).rstrip(".")


def _is_in(package: griffe.Module, name: str) -> bool:
    return name.startswith(f"{package.path}.")


def _anchors(package: griffe.Module, name: str) -> Iterator[str]:
    """Yield the anchor of a name, and those of its members if it is a class; what has no docstring has no section."""
    found = package[name.removeprefix(f"{package.path}.")]
    yield name
    if found.is_class:
        members = found.all_members.items()
        yield from (f"{name}.{member}" for member, it in members if member[0] != "_" and it.has_docstring)


def _objects(found: griffe.Object) -> Iterator[griffe.Object]:
    """Yield an object and all that is defined in it."""
    yield found
    for member in found.members.values():
        if not member.is_alias:
            yield from _objects(member)  # type: ignore[arg-type]
