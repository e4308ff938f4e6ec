"""The programs of docs/schema-registry.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from aiokafkawire.schema_registry import SchemaRegistryConfig

PAGE = Path(__file__).parents[2] / "docs" / "schema-registry.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_every_program_imports_what_there_is() -> None:
    for block in BLOCKS:
        tree = compile(block, str(PAGE), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        imports: list[ast.stmt] = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), str(PAGE), "exec"), {})


@pytest.mark.slow
def test_the_program_with_the_registry_in_memory_prints_what_it_says() -> None:
    (program,) = [block for block in BLOCKS if "SchemaRegistryServer" in block]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *lines, requests = done.stdout.splitlines()
    assert lines == re.findall(r"# (1|\(.*\))\n", program)
    assert requests == str(["POST /subjects/flights-value/versions", "GET /subjects", "GET /subjects"])


def test_every_setting_is_described() -> None:
    text = PAGE.read_text()
    names = [field.name for field in attrs.fields(SchemaRegistryConfig)]
    assert [name for name in names if f"`{name}`" not in text and not name.endswith("_pem")] == []
