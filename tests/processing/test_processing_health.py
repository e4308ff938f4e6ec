"""What the health says of the handlers of a call of ``Client.process``."""

from aiokafkawire.client_health import client_health
from aiokafkawire.processing.health import processing_health


def test_calls_that_hang_are_named_and_need_no_restart() -> None:
    fine = processing_health("g", running=2, in_hand=5, longest=9.0, abandoned=0, limit=10.0)
    assert not fine.stalled
    assert fine.why is None
    hangs = processing_health("g", running=2, in_hand=5, longest=11.0, abandoned=2, limit=10.0)
    assert hangs.stalled
    health = client_health("open", processing={"fetch-1": hangs})
    assert (health.ready, health.live) == (True, True)
    assert health.why is not None
    assert "fetch-1: a call of the handler has been running for 11 s, and 2 threads go on" in health.why
    assert health.to_dict()["processing"]["fetch-1"]["longest"] == 11.0
