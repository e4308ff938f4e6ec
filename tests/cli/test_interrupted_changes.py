"""Ctrl-C before the answer to a change: the broker may make it nevertheless, and the command says so."""

from __future__ import annotations

import signal

import pytest
from support.patience import PATIENCE
from support.shell import start_shell

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker

UNKNOWN = b"aiokafkawire: interrupted before the answer, so it is not known what is done\n"


@pytest.mark.parametrize(
    ("argv", "api"),
    [
        (("topics", "delete", "t", "--yes"), ApiKey.DELETE_TOPICS),
        (("topics", "elect-leaders", "t"), ApiKey.ELECT_LEADERS),
        (("groups", "delete", "g", "--yes"), ApiKey.DELETE_GROUPS),
    ],
)
def test_ctrl_c_before_the_answer_is_told(argv: tuple[str, ...], api: ApiKey, kafka_broker: BackgroundBroker) -> None:
    kafka_broker.create_topic("t")
    with (
        kafka_broker.hold(api) as held,
        start_shell(*argv, bootstrap=kafka_broker.bootstrap) as process,
    ):
        try:
            held.arrived(timeout=PATIENCE)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=PATIENCE) == (b"", UNKNOWN)
        finally:
            process.kill()
    assert process.returncode == 130
