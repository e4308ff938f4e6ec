"""Which event loops a run takes."""

from __future__ import annotations

import pytest
from support import loops

pytest_plugins = ["pytester"]

ON_EVERY_LOOP = {"asyncio", "uvloop", "trio"}
CONFTEST = """
    import pytest

    @pytest.fixture(params=["asyncio", "uvloop", "trio"])
    def anyio_backend(request):
        return request.param

    def pytest_configure(config):
        config.addinivalue_line("markers", "kafka: on Apache Kafka")
"""
TESTS = """
    import pytest

    CLUSTERS = ["tcp", pytest.param("apache", marks=pytest.mark.kafka)]

    def test_without_a_loop():
        pass

    def test_anywhere(anyio_backend):
        pass

    @pytest.mark.every_loop
    @pytest.mark.parametrize("cluster", CLUSTERS)
    def test_transport(anyio_backend, cluster):
        pass

    @pytest.mark.parametrize(("anyio_backend", "cluster"), [("uvloop", "tcp"), ("trio", "memory"), ("trio", "tcp")])
    def test_its_own_loops(anyio_backend, cluster):
        pass
"""
DEFAULT = {
    "test_without_a_loop",
    "test_anywhere[asyncio]",
    "test_transport[asyncio-tcp]",
    "test_transport[uvloop-tcp]",
    "test_transport[trio-tcp]",
    "test_transport[asyncio-apache]",
    "test_its_own_loops[uvloop-tcp]",
    "test_its_own_loops[trio-memory]",
}
OTHERS = {
    "test_anywhere[uvloop]",
    "test_anywhere[trio]",
    "test_transport[uvloop-apache]",
    "test_transport[trio-apache]",
    "test_its_own_loops[trio-tcp]",
}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyprojecttoml('[tool.pytest.ini_options]\ntestpaths = ["tests"]')
    tests = pytester.mkdir("tests")
    for name, source in (("conftest.py", CONFTEST), ("test_it.py", TESTS)):
        pytester.makepyfile(**{name.removesuffix(".py"): source}).rename(tests / name)
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> set[str]:
    """Run what the command line selects; return the tests' names."""
    result = project.inline_run("-p", "no:cacheprovider", "-p", "no:asyncio", *arguments, plugins=[loops])
    assert result.ret == pytest.ExitCode.OK
    passed, skipped, failed = result.listoutcomes()
    assert not skipped
    assert not failed
    names = [report.nodeid.rpartition("::")[2] for report in passed]
    assert len(names) == len(set(names))
    return set(names)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], DEFAULT, id="a bare run"),
        pytest.param(["--loops", "default"], DEFAULT, id="default"),
        pytest.param(["--loops", "others"], OTHERS, id="others"),
        pytest.param(["--loops", "all"], DEFAULT | OTHERS, id="all"),
        pytest.param(["tests/test_it.py"], DEFAULT | OTHERS, id="a file"),
        pytest.param(["tests/test_it.py::test_anywhere[trio]"], {"test_anywhere[trio]"}, id="a name"),
        pytest.param(["-k", "anywhere and uvloop"], {"test_anywhere[uvloop]"}, id="an expression"),
        pytest.param(["-m", "kafka"], {f"test_transport[{loop}-apache]" for loop in ON_EVERY_LOOP}, id="a marker"),
        pytest.param(["-m", "kafka", "--loops", "default"], {"test_transport[asyncio-apache]"}, id="both"),
        pytest.param(
            ["tests/test_it.py::test_anywhere", "--loops", "others"],
            {"test_anywhere[uvloop]", "test_anywhere[trio]"},
            id="a name on the other loops",
        ),
    ],
)
def test_the_command_line_says_which_loops(project: pytest.Pytester, arguments: list[str], expected: set[str]) -> None:
    assert run(project, *arguments) == expected


def test_a_default_run_takes_nothing_from_the_others(request: pytest.FixtureRequest) -> None:
    """Of those that run along with this one: in a run of all tests, of all."""
    default, others = loops.split_by_loop(request.session.items)
    assert len(default) + len(others) == len(request.session.items)
    if request.config.option.loops == "default":
        assert others == []
