"""The rules of docs/design.md that a machine can check."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest
from support.public_api import PACKAGES
from support.rows import every_row

import aiokafkawire

ROOT = Path(__file__).parent.parent
PACKAGE = Path(aiokafkawire.__file__).parent


def modules() -> list[str]:
    """The modules, without FastStream's: importing those puts aiokafka's API in place for the whole process."""
    paths = [path.relative_to(PACKAGE.parent) for path in sorted(PACKAGE.rglob("*.py"))]
    left_out = {"__main__", "faststream", "auto"}
    names = [".".join(path.with_suffix("").parts) for path in paths if not left_out & {*path.parts, path.stem}]
    return [name.removesuffix(".__init__") for name in names if name != "aiokafkawire.__init__"]


def test_rooms_import_only_what_is_under_them_and_pure_modules_nothing_that_acts() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"COLUMNS": "120"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_map_of_the_tests_names_every_suite_and_module() -> None:
    tests = ROOT / "tests"
    named = set(re.findall(r"`(\w+)(?:\*?\.py)?`", (tests / "README.md").read_text()))
    suites = {path.name for path in tests.iterdir() if path.is_dir() and not path.name.startswith(("_", "."))}
    modules = {path.stem for path in (tests / "support").glob("*.py") if path.stem != "__init__"}
    files = {path.stem for path in tests.glob("test_*.py")}
    assert suites | modules | files <= named


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*/__init__.py")), ids=lambda path: path.parent.name)
def test_the_init_of_an_internal_package_holds_a_docstring_only(path: Path) -> None:
    body = ast.parse(path.read_text()).body
    is_public = ".".join(path.parent.relative_to(PACKAGE.parent).parts) in PACKAGES
    if not is_public and "handlers" not in path.parts and path.parent.name != "pyspark_aiokafkawire":
        assert [type(node) for node in body] == [ast.Expr]
    assert ast.get_docstring(ast.parse(path.read_text()))


@every_row("name", modules())
def test_every_module_says_what_it_gives(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith("pyspark"):
            raise
        return
    if hasattr(module, "__path__"):
        return
    assert isinstance(module.__all__, tuple)
    assert len(set(module.__all__)) == len(module.__all__)
    for given in module.__all__:
        assert hasattr(module, given), given


def test_the_package_gives_what_users_need_and_nothing_by_accident() -> None:
    assert all(hasattr(aiokafkawire, name) for name in aiokafkawire.__all__)
    public = {
        name for name, value in vars(aiokafkawire).items() if name[0] != "_" and not isinstance(value, ModuleType)
    }
    assert {*public, "__version__"} == {*aiokafkawire.__all__, "TYPE_CHECKING", "lazy_exports", "Callable"}
    assert aiokafkawire.__version__ == version("aiokafkawire")
    assert {*aiokafkawire.__all__} <= {*dir(aiokafkawire)}


def public_callables() -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name in aiokafkawire.__all__:
        value = getattr(aiokafkawire, name)
        found.append((name, value))
        if inspect.isclass(value):
            members = vars(value).items()
            found += [(f"{name}.{key}", one) for key, one in members if key[0] != "_" and is_behaviour(one)]
    return found


def is_behaviour(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)


@every_row(("name", "value"), public_callables())
def test_whatever_is_public_is_documented(name: str, value: object) -> None:
    assert inspect.getdoc(value), name


def test_no_two_classes_have_one_name() -> None:
    """But for Kafka's messages, and for the classes of the blocking client and of aiokafka, whose names are given."""
    modules: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if {"messages", "blocking", "aiokafka"} & set(path.relative_to(PACKAGE).parts):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                modules.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}
