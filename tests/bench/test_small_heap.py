"""A request of 100 MB ends a broker with a small heap; a broker that lives on, or ends otherwise, is an error."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.recovering import JumpingClock

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.broker_faults import faults
from benchmarks.broker_faults.cluster import Place


class Broker:
    """A cluster with one broker, which reads four bytes, and has then ended with a status, or runs on."""

    def __init__(self, status: int | None) -> None:
        self.read = b""
        self._status = status
        self._server = socket.create_server(("127.0.0.1", 0))

    def address_of(self, _: int) -> str:
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def runs(self, _: int) -> bool:
        if not self.read:
            connection, _address = self._server.accept()
            with connection:
                self.read = connection.recv(4, socket.MSG_WAITALL)
        return self._status is None

    def status(self, _: int) -> int | None:
        return self._status

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    made = Broker(request.param)
    yield made
    made.close()


def exhaust(broker: Any) -> None:
    faults._exhaust_memory(Place(broker, []), 1)


@pytest.mark.parametrize("broker", [3], indirect=True)
def test_it_begins_the_largest_request_that_a_broker_takes(broker: Broker) -> None:
    exhaust(broker)
    assert int.from_bytes(broker.read) == 104_857_600


@pytest.mark.parametrize("broker", [None, 1], indirect=True)
def test_another_end_than_for_want_of_memory_is_an_error(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> None:
    monkeypatch.setattr(faults, "time", JumpingClock())
    with pytest.raises(RuntimeError, match="broker 1 did not end for want of memory"):
        exhaust(broker)
