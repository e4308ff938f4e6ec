"""Which release of Apache Kafka the tests boot, and the in-process broker emulates: ``--kafka``."""

from __future__ import annotations

import pytest
from support.apache_kafka import NEWEST

__all__ = ("kafka_release",)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("aiokafkawire's tests")
    text = "The release that contract tests boot, such as 4.0.2; the in-process broker emulates it, too."
    group.addoption("--kafka", metavar="VERSION", default=NEWEST, help=text)


@pytest.fixture(scope="session")
def kafka_release(request: pytest.FixtureRequest) -> str | None:
    """The release without its patch level, for ``Broker(max_versions=...)``; None for the broker's own."""
    version = request.config.option.kafka
    return None if version == NEWEST else version.rpartition(".")[0]
