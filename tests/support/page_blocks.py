"""The blocks of Python in the pages of docs/, as functions of a module that a type checker reads."""

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Final, NamedTuple

import aiokafkawire

__all__ = ("PAGES", "Block", "blocks_of", "missing_names", "module_of")

_ROOT: Final = Path(__file__).parents[2]
PAGES: Final = tuple(sorted([*(_ROOT / "docs").glob("*.md"), _ROOT / "README.md"]))
_BLOCK: Final = re.compile(r"^( *)```python\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_KNOWN: Final = {
    "broker": "Broker",
    "client": "Client",
    "consumer": "Consumer[Any, Any]",
    "kafka": "Client",
    "producer": "Producer[Any, Any]",
    "record": "ConsumerRecord[Any, Any]",
    "sim": "Simulation",
}
"""What names are that the pages use without making them."""
_KNOWN_ON: Final = {
    "blocking.md": {"kafka": "blocking.Client", "consumer": "blocking.Consumer[Any, Any]"},
    "services.md": {"kafka": "KafkaLifespan"},
}
"""What other names are on a page, instead."""
_HEAD: Final = """\
from typing import Any
from aiokafkawire import *
from aiokafkawire import blocking
from aiokafkawire.asgi import KafkaLifespan
from aiokafkawire.testing import *
"""


class Block(NamedTuple):
    """A block of a page, and the line on which it begins."""

    line: int
    code: str


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page."""
    text = page.read_text()
    for found in _BLOCK.finditer(text):
        code = "".join(line.removeprefix(found[1]) for line in found[2].splitlines(keepends=True))
        yield Block(text.count("\n", 0, found.start()) + 2, code)


def module_of(page: Path) -> str:
    """Return a module with a function for each block; names that the block does not make are its arguments."""
    parts, known = [_HEAD], _KNOWN | _KNOWN_ON.get(page.name, {})
    for block in blocks_of(page):
        arguments = ", ".join(f"{name}: {known.get(name, 'Any')}" for name in sorted(missing_names(block.code)))
        parts.append(f"\n\nasync def line_{block.line}({arguments}) -> Any:\n{indent(block.code, '    ')}    ...\n")
    return "".join(parts)


def missing_names(code: str) -> set[str]:
    """Return the names that a block uses and does not make, without those of the package and of Python."""
    tree = compile(code, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    used, made = set[str](), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                made.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                made.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                made |= {(one.asname or one.name).partition(".")[0] for one in names}
            case ast.ExceptHandler(name=str(name)):
                made.add(name)
    return (
        used - made - set(dir(builtins)) - set(aiokafkawire.__all__) - {"blocking", "Broker", "simulate", "Simulation"}
    )
