"""Clusters and files for ``apply`` and ``export``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shell import Shell

from aiokafkawire.testing.background import BackgroundBroker

ANONYMOUS = "User:ANONYMOUS"


@pytest.fixture
def shell(kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(kafka_broker.bootstrap, capsysbinary)


@pytest.fixture
def guarded(capsysbinary: pytest.CaptureFixture[bytes]) -> Iterator[Shell]:
    """A cluster with an authorizer."""
    with BackgroundBroker(authorizer=True, super_users=[ANONYMOUS]) as broker:
        yield Shell(broker.bootstrap, capsysbinary)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "kafka.toml"


@pytest.fixture(autouse=True)
def shop_password(monkeypatch: pytest.MonkeyPatch) -> str:
    """The secret that the example needs."""
    secret = "secret-of-the-shop"
    monkeypatch.setenv("SHOP_PASSWORD", secret)
    return secret
