"""Writes the roles of docstrings, such as ``:class:`Client``` and ``:meth:`.Client.admin```, as Markdown."""

import re
from typing import Any, Final

import griffe

_ROLE: Final = re.compile(r":(?:class|meth|func|mod|attr|data|exc|obj):`(?P<hidden>~?)(?P<path>[^`<]+)`")


class Roles(griffe.Extension):
    """Replaces each role by its name as code, before the sections of the docstring are read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace the roles of one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(_as_code, obj.docstring.value)


def _as_code(match: re.Match[str]) -> str:
    path = match["path"].lstrip(".")
    name = path.rpartition(".")[2] if match["hidden"] else path
    return f"`{name}`"
