"""The public API is the checked-in list: a change of it shows in review."""

import importlib
import sys
from importlib.util import find_spec

import pytest
from support.public_api import LIST, PACKAGES, public_api


def test_the_public_api_is_the_list() -> None:
    assert public_api() == LIST.read_text(), "review the change, and run python tests/support/public_api.py"


def test_the_list_shows_signatures_and_inherited_members() -> None:
    lines = LIST.read_text().splitlines()
    assert "class Client()" in lines or any(line.startswith("class Client(") for line in lines)
    assert any("async commit(self" in line for line in lines)
    assert "    linger_ms: int" in lines


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_can_be_imported(package: str) -> None:
    if package.endswith(".spark") and find_spec("pyspark") is None:
        pytest.skip("needs pyspark")
    if ".faststream" in package:
        pytest.skip("puts aiokafka's API in place for the whole process; tests/faststream_broker imports it in another")
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        module.nonsense  # noqa: B018


def test_importing_a_package_loads_none_of_its_modules() -> None:
    import subprocess

    code = "import aiokafkawire.testing, sys; print('aiokafkawire.testing.broker' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
