"""What a dead letter says of a record and its error, whatever the user's exception does."""

import attrs

from aiokafkawire.processing.failed_record_writer import describe_failure
from aiokafkawire.processing.failures import failure_of, with_failure
from aiokafkawire.types import Header


@attrs.frozen
class Read:
    topic: str = "orders"
    partition: int = 2
    offset: int = 7
    timestamp: int = 1_000
    headers: tuple[Header, ...] = ()


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_record_that_fails_again_keeps_its_origin_and_counts_all_attempts() -> None:
    first = describe_failure(Read(), None, "billing", 3, ValueError("no amount"))
    assert first.origin == ("orders", 2, 7)
    again = Read("orders.retry", 0, 99, 2_000, tuple(with_failure((), first)))
    second = describe_failure(again, failure_of(again.headers), "billing", 2, KeyError("id"))
    assert (second.origin, second.timestamp_ms, second.attempts) == (first.origin, 1_000, 5)
    assert (second.group, second.error) == ("billing", "builtins.KeyError")


def test_an_exception_without_a_text_is_described_all_the_same() -> None:
    failure = describe_failure(Read(), None, "billing", 1, Unspeakable())
    assert failure.message == "its text cannot be read: RuntimeError"
    assert failure.error.endswith("Unspeakable")
