"""The tables of docs/migrating.md, which are made from what `aiokafkawire migrate` says.

`python tests/support/migration_page.py` writes them again.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from aiokafkawire.cli.migrate.advice import Advice, Library, Severity
from aiokafkawire.cli.migrate.libraries import LIBRARIES
from aiokafkawire.config.property_names import CONFLUENT_CALLBACKS

__all__ = ("PAGE", "page", "programs")

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"

_HEAD = "|---|---|---|\n"
_NOT_SUPPORTED = re.compile(r"^is not supported(?: here)?: ")


def page(text: str) -> str:
    """Return the page with its tables as the code has them."""
    for name, table in _tables().items():
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->\n"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def programs(library: Library) -> dict[str, tuple[str, str]]:
    """Return the programs of a library's section, before and after: by what they are, producer and consumer."""
    section = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    text = next(each for each in section if each.startswith(f"From {library.distribution}\n"))
    found = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
        if blocks:
            before, after = blocks
            found[part.split()[1].rstrip(",")] = before, after
    return found


def _tables() -> dict[str, str]:
    tables = {library.distribution: _names(library) for library in LIBRARIES.values()}
    return {**tables, "callbacks": _callbacks(CONFLUENT_CALLBACKS)}


def _names(library: Library) -> str:
    rows = (f"| `{name}` | {_here(advice)} | {_cell(advice.differs)} |\n" for name, advice in library.names.items())
    return f"| {library.distribution} | here | what differs |\n{_HEAD}{''.join(rows)}"


def _callbacks(callbacks: Mapping[str, str]) -> str:
    rows = (f"| `{name}` | {_cell(_NOT_SUPPORTED.sub('', why))} |\n" for name, why in callbacks.items())
    return f"| callback | instead |\n|---|---|\n{''.join(rows)}"


def _here(advice: Advice) -> str:
    text = _cell(advice.ours)
    return f"nothing: {text}" if advice.severity is Severity.NO_COUNTERPART else text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    print("docs/migrating.md written")
