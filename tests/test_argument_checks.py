"""An argument of a wrong shape is one error that says what was expected, and what was given."""

from __future__ import annotations

import inspect
import linecache
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import anyio
import pytest
from support import wrong_arguments as table
from support.patience import SOON
from support.wrong_arguments import CASES, TP, Case, Hands

from aiokafkawire import Admin, Client, Consumer, KafkaError, Producer, ShareConsumer, Transaction
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """One loop will do: what an argument may be is the same on all."""
    return "asyncio", {"use_uvloop": False}


RUBBISH = ("object is not", "unpack", "has no attribute", "not supported between", "codec can't", "NoneType", "__")
"""Words of errors that come from the inside."""


@asynccontextmanager
async def hands() -> AsyncIterator[Hands]:
    async with Broker(port=None) as broker:
        broker.create_topic("t", partitions=2)
        async with (
            Client(broker.bootstrap, connector=broker.connect) as client,
            client.producer(max_block_ms=2_000) as producer,
            client.producer(transactional_id="tx") as transactional,
            client.consumer(group_id="g", enable_auto_commit=False) as consumer,
            client.consumer(group_id="h", enable_auto_commit=False) as member,
            client.share_consumer(group_id="s") as share,
        ):
            await producer.partitions_for("t")
            consumer.assign([TP])
            try:
                async with transactional.transaction() as transaction:
                    await transaction.send("t", b"known", partition=0)
                    yield Hands(client, producer, transaction, consumer, member, share)
                    raise KeyboardInterrupt  # leave nothing behind
            except KeyboardInterrupt:
                pass


def is_raised_by_a_line(trace: TracebackType | None) -> bool:
    """Whether the innermost line raises it: an error of Python's own comes out of any other line."""
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno).strip().startswith("raise ")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_what_does_not_fit_is_refused_in_words(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    async with hands() as held:
        for wrong in case.wrong:
            with pytest.raises((KafkaError, TypeError)) as caught, anyio.fail_after(SOON):
                found = case.call(held, wrong)
                if inspect.isawaitable(found):
                    await found
            told = str(caught.value)
            assert told, wrong
            assert not any(word in told for word in RUBBISH), (wrong, told)
            assert isinstance(caught.value, KafkaError) or is_raised_by_a_line(caught.tb), (wrong, told)
            assert len(told) < 1_000, told
    assert [one for one in caplog.records if one.levelno > logging.WARNING] == []


def arguments_of(face: str, cls: type) -> set[str]:
    """The arguments of each public method; those of one that takes none are none."""
    found = set()
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if name[0] == "_":
            continue
        for argument in inspect.signature(method).parameters.values():
            if argument.name != "self" and argument.kind is not inspect.Parameter.VAR_KEYWORD:
                found.add(f"{face}.{name}({argument.name})")
    return found


@pytest.mark.parametrize(
    ("face", "cls"),
    [
        ("client", Client),
        ("producer", Producer),
        ("transaction", Transaction),
        ("consumer", Consumer),
        ("share", ShareConsumer),
        ("admin", Admin),
    ],
)
def test_the_table_has_every_argument(face: str, cls: type) -> None:
    there = {case.name for case in CASES}
    same = {"transaction.commit_offsets(consumed)": "transaction.commit_offsets(offsets)"}
    wanted = {same.get(one, one) for one in arguments_of(face, cls)}
    assert wanted - there == set()


@pytest.mark.parametrize("timeout", table.TIMEOUTS_THAT_WORK)
async def test_timeouts_of_any_length_work(timeout: float | None) -> None:
    async with hands() as held:
        await held.admin.create_topics({"a": 1}, timeout=timeout)
        assert await held.admin.list_topics(timeout=timeout) == ("a", "t")
        assert await held.consumer.committed([TP], timeout=timeout) == {TP: None}
        await held.producer.send("t", b"", partition=0)
        held.consumer.seek(TP, 0)
        assert await held.consumer.poll(timeout=timeout)
