"""How the tests are shared out over workers."""

import pytest

pytest.importorskip("xdist")

from support.sharing_out import SHARED_BY_MODULES, share_out


def test_a_function_s_parameters_stay_together() -> None:
    assert share_out("tests/test_types.py::test_a[asyncio-[x]]") == "tests/test_types.py::test_a"
    assert share_out("tests/test_types.py::TestA::test_a") == "tests/test_types.py::TestA::test_a"


def test_what_a_module_makes_once_keeps_its_tests_together() -> None:
    assert share_out("tests/foreign/test_confluent.py::test_a[1]") == "tests/foreign/test_confluent.py"


def test_servers_of_apache_kafka_have_a_worker_each() -> None:
    old = "tests/testing/test_contract_old_versions.py"
    shared = share_out("tests/contract/test_consuming.py::test_a[asyncio-apache-kafka]")
    assert share_out("tests/kafka/test_apache_kafka_boots.py::test_a") == shared
    assert share_out(f"{old}::test_a[asyncio-apache-1]") not in (shared, share_out(f"{old}::test_a[trio-memory-1]"))


def test_every_test_on_apache_kafka_is_known_by_its_name(request: pytest.FixtureRequest) -> None:
    """Of those that run along with this one: in a run of all tests, of all."""
    found = {item.nodeid for item in request.session.items if item.get_closest_marker("kafka")}
    assert [one for one in found if not share_out(one).startswith(("apache kafka", *SHARED_BY_MODULES))] == []
