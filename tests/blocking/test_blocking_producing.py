"""Many records of the blocking producer, from iterables that belong to the calling thread."""

from __future__ import annotations

import sqlite3
from secrets import token_hex
from typing import Any

import pytest

from aiokafkawire import UsageError, blocking


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    """A topic of one partition."""
    name = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({name: 1})
    return name


def test_the_rows_of_a_database_are_sent(kafka: blocking.Client, topic: str) -> None:
    database = sqlite3.connect(":memory:")  # its objects may be used on this thread alone
    database.execute("create table flights (number blob, carrier blob)")
    database.executemany("insert into flights values (?, ?)", [(b"1545", b"UA"), (b"725", b"B6")])
    with kafka.producer() as producer:
        sent = producer.send_many(
            topic,
            (row[0] for row in database.execute("select number from flights")),
            keys=(row[0] for row in database.execute("select carrier from flights")),
        )
    assert [metadata.offset for metadata in sent] == [0, 1]
    database.close()


def test_values_may_be_made_with_the_same_client(kafka: blocking.Client, topic: str) -> None:
    with kafka.producer() as producer:
        sent = producer.send_many(topic, (b"%d" % producer.send(topic, b"before").offset for _ in range(2)))
    assert [metadata.offset for metadata in sent] == [2, 3]


def test_text_is_no_iterable_of_values(kafka: blocking.Client, topic: str) -> None:
    with kafka.producer() as producer, pytest.raises(UsageError, match="values must be"):
        producer.send_many(topic, b"one")  # type: ignore[arg-type]


def test_a_producer_whose_opening_was_interrupted_is_closed(
    kafka: blocking.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes once it is open, and before the body of its ``with``, which would have closed it."""
    call, producer = kafka.loop.call, kafka.producer()

    def interrupted(*args: Any) -> Any:
        monkeypatch.undo()
        call(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(kafka.loop, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        producer.__enter__()
    assert producer.health().state == "closed"


def test_an_interrupt_just_before_the_end_of_a_with_leaves_nothing_open(
    kafka: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), kafka.producer(transactional_id=topic) as producer:
        with pytest.raises(KeyboardInterrupt), producer.transaction() as transaction:
            transaction.send(topic, b"aborted")
            monkeypatch.setattr(kafka.loop, "call", interrupted)
        with producer.transaction() as transaction:
            transaction.send(topic, b"committed")
        monkeypatch.setattr(kafka.loop, "call", interrupted)
    assert producer.health().state == "closed"
    assert [record.value for record in kafka.read_records(topic)] == [b"committed"]
