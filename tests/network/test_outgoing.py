"""The frames that wait to be written, and the observers of their writes."""

from __future__ import annotations

import pytest

from aiokafkawire.network.transport import OWN_WRITE, Outgoing

LARGE = b"L" * OWN_WRITE


class Seen:
    """Keeps the names of the frames whose writes have begun."""

    def __init__(self, name: str, sent: list[str]) -> None:
        self.name, self.names = name, sent

    def sent(self) -> None:
        self.names.append(self.name)


@pytest.fixture
def sent() -> list[str]:
    return []


def test_an_observer_is_notified_when_its_frame_is_taken(sent: list[str]) -> None:
    outgoing = Outgoing()
    for name in "abc":
        outgoing.append(LARGE)
        if name != "b":
            outgoing.observe(Seen(name, sent))
    assert (outgoing.take(), sent) == (LARGE, ["a"])
    assert (outgoing.take(), sent) == (LARGE, ["a"])
    assert (outgoing.take(), sent) == (LARGE, ["a", "c"])
    assert not outgoing


def test_small_frames_are_taken_together_and_their_observers_notified_in_order(sent: list[str]) -> None:
    outgoing = Outgoing()
    for name in "abc":
        outgoing.append(name.encode())
        outgoing.observe(Seen(name, sent))
    outgoing.append(LARGE)
    outgoing.observe(Seen("L", sent))
    assert (outgoing.take(), sent) == (b"abc", ["a", "b", "c"])
    assert (outgoing.take(), sent[3:]) == (LARGE, ["L"])


def test_frames_before_the_first_observer_count(sent: list[str]) -> None:
    outgoing = Outgoing()
    outgoing.append(LARGE)
    outgoing.take()
    outgoing.append(LARGE)
    outgoing.append(LARGE)
    outgoing.observe(Seen("b", sent))
    outgoing.take()
    assert sent == []
    outgoing.append(LARGE)
    outgoing.observe(Seen("c", sent))
    outgoing.take()
    outgoing.take()
    assert sent == ["b", "c"]
