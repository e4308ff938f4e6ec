"""The line about brokers that cannot be reached, while the client still tries."""

import pytest

from aiokafkawire.cli.shell.connecting import ConnectionNotes
from aiokafkawire.errors import AuthenticationFailed, ConnectionLost, KafkaError
from aiokafkawire.observe import ConnectionFailed, ConnectionOpened


def failed(broker: str, error: KafkaError | None = None) -> ConnectionFailed:
    lost = ConnectionLost(f"cannot connect to {broker}: [Errno 111] Connect call failed ('127.0.0.1', 1)")
    return ConnectionFailed(broker=broker, node_id=None, lane="control", seconds=0.1, error=error or lost)


def test_one_line_once_all_servers_have_refused(capsys: pytest.CaptureFixture[str]) -> None:
    notes = ConnectionNotes(2, 10)
    notes.connection_failed(failed("a:1"))
    notes.connection_failed(failed("a:1"))
    assert capsys.readouterr().err == ""
    notes.connection_failed(failed("b:1"))
    assert capsys.readouterr().err == (
        "aiokafkawire: cannot connect to a:1: connection refused; cannot connect to b:1: connection refused; "
        "trying again for 10 s\n"
    )
    notes.connection_failed(failed("a:1"))
    assert capsys.readouterr().err == ""


def test_a_long_list_of_servers_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    notes = ConnectionNotes(5, 1)
    for number in range(5):
        notes.connection_failed(failed(f"b{number}:1"))
    assert capsys.readouterr().err.endswith("b2:1: connection refused; and 2 more; trying again for 1 s\n")


def test_nothing_is_said_after_a_connection_or_of_a_wrong_password(capsys: pytest.CaptureFixture[str]) -> None:
    notes = ConnectionNotes(1, 10)
    notes.connection_failed(failed("a:1", AuthenticationFailed("wrong password")))
    notes.connection_opened(ConnectionOpened(broker="a:1", node_id=None, lane="control", seconds=0.1))
    notes.connection_failed(failed("a:1"))
    assert capsys.readouterr().err == ""
