"""What importing and making a client loads, in a process of its own: what it needs, and nothing heavier."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import PATIENCE

import aiokafkawire


def loaded_by(code: str) -> set[str]:
    """The modules that a new interpreter has after running ``code``."""
    here = f"import sys; sys.path.insert(0, {str(Path(aiokafkawire.__file__).parent.parent)!r})"
    script = f"{here}\n{code}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    # -I: what the environment adds does not count.
    run = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return set(json.loads(run.stdout))


@pytest.fixture(scope="module")
def modules() -> set[str]:
    return loaded_by("from aiokafkawire import Client")


def test_the_package_alone_loads_none_of_its_modules() -> None:
    loaded = {name for name in loaded_by("import aiokafkawire") if name.startswith("aiokafkawire.")}
    assert loaded == {"aiokafkawire._lazy_exports", "aiokafkawire.version"}


def test_the_first_client_loads_connections_and_the_messages_that_all_clients_need(modules: set[str]) -> None:
    of_messages = "aiokafkawire.protocol.messages."
    assert not {name for name in modules if name.startswith((of_messages, "aiokafkawire.cluster.cluster"))}
    made = loaded_by("from aiokafkawire import Client; Client('localhost:9092')")
    assert {name.removeprefix(of_messages) for name in made if name.startswith(of_messages)} == {"metadata"}


@pytest.mark.parametrize("part", ["admin", "consumer", "producer", "share"])
def test_what_a_client_may_do_is_loaded_when_it_does_it(modules: set[str], part: str) -> None:
    assert f"aiokafkawire.{part}" not in modules


@pytest.mark.parametrize(
    "name",
    [
        "trio",
        "uvloop",
        "lz4",
        "snappy",
        "zstandard",
        "rich",
        "pandas",
        "numpy",
        "pytest",
        "hypothesis",
        "multiprocessing",
    ],
)
def test_heavy_or_optional_packages_are_not_loaded(modules: set[str], name: str) -> None:
    assert name not in modules


@pytest.mark.parametrize("part", ["aiokafkawire.testing", "aiokafkawire.cli"])
def test_parts_for_tests_and_for_the_command_line_are_not_loaded(modules: set[str], part: str) -> None:
    assert not {name for name in modules if f"{name}.".startswith(f"{part}.")}


def test_nothing_is_compiled_on_import() -> None:
    uncompiled = "assert not any('aiokafkawire ' in name for name in linecache.cache)"
    code = f"from aiokafkawire import Client\nimport linecache\n{uncompiled}"
    assert loaded_by(code)
