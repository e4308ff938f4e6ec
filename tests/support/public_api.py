"""The public API as text: every name that a public package exports, with its signatures, read from the sources.

``python tests/support/public_api.py`` writes tests/data/public_api.txt; review shows what a change does to users.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "data" / "public_api.txt"
# What users import from; everything deeper is internal, but for the messages in aiokafkawire.protocol.messages.
PACKAGES = tuple(
    "aiokafkawire" + name
    for name in (
        "",
        ".aiokafka",
        ".aiokafka.abc",
        ".aiokafka.admin",
        ".aiokafka.consumer",
        ".aiokafka.errors",
        ".aiokafka.helpers",
        ".aiokafka.partitioner",
        ".aiokafka.producer",
        ".aiokafka.structs",
        ".asgi",
        ".blocking",
        ".claim_check",
        ".config",
        ".errors",
        ".faststream",
        ".faststream.fastapi",
        ".interceptors",
        ".json_serialization",
        ".legacy",
        ".metrics",
        ".observe",
        ".opentelemetry",
        ".probes",
        ".prometheus",
        ".protocol",
        ".records",
        ".schema_registry",
        ".serialization",
        ".spark",
        ".testing",
    )
)


def public_api() -> str:
    """Return the list, a line for each name, parameter list, field and constant."""
    lines = []
    for package in PACKAGES:
        lines.append(f"# {package}")
        for name in sorted(exported(package)):
            lines.extend(_described(package, name))
        lines.append("")
    return "\n".join(lines)


@cache
def _tree(module: str) -> ast.Module:
    path = ROOT.joinpath(*module.split("."))
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())


def _is_package(module: str) -> bool:
    return ROOT.joinpath(*module.split(".")).is_dir()


def exported(module: str) -> list[str]:
    """Return the names that a module exports."""
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def find(module: str, name: str) -> tuple[str, ast.stmt] | None:
    """Find the statement that defines a name, through the imports of the package's own modules."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    source = _absolute(module, node)
                    return find(source, alias.name) if source.startswith("aiokafkawire") else None
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == name:
                return module, node
        elif isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            return module, node
    return None


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + _is_package(module)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _described(module: str, name: str) -> Iterator[str]:
    found = find(module, name)
    if found is None:
        yield name
    elif isinstance(found[1], ast.ClassDef):
        yield f"class {name}({', '.join(ast.unparse(base) for base in found[1].bases)})"
        for member in sorted(set(_members(*found))):
            yield f"    {member}"
    elif isinstance(found[1], ast.FunctionDef | ast.AsyncFunctionDef):
        yield _signature(found[1])
    else:
        yield f"{name}"


def _members(module: str, cls: ast.stmt, overridden: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield a class's public members, with those of its bases that it does not override."""
    assert isinstance(cls, ast.ClassDef)
    methods = [node for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in cls.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name in overridden:
                continue
            if node.name[0] != "_" or node.name in ("__init__", "__call__", "__aiter__", "__iter__", "__getitem__"):
                yield _signature(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in _targets(node):
                if target[0] != "_":
                    yield f"{target}: {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else target
    for base in cls.bases:
        name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        found = find(module, name)
        if found is not None and isinstance(found[1], ast.ClassDef):
            yield from _members(*found, overridden.union(method.name for method in methods))


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    kinds = [ast.unparse(one) for one in node.decorator_list if "property" in ast.unparse(one)]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    if kinds:
        return f"{node.name}{returns}"
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{node.name}({ast.unparse(node.args)}){returns}"


if __name__ == "__main__":
    LIST.write_text(public_api())
    sys.stdout.write(f"wrote {LIST.relative_to(ROOT)}\n")
