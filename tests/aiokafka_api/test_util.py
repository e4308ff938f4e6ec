"""The functions of aiokafka's module of helpers that users import: the same tests on both."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

Api = Any


def test_offsets_are_checked(api: Api) -> None:
    check, where = api("util").commit_structure_validate, api.TopicPartition("t", 0)
    offset = api.OffsetAndMetadata(5, "")
    assert check({where: 5}) == check({where: (5, "")}) == check({where: offset}) == {where: offset}
    assert isinstance(check({where: 5})[where], api.OffsetAndMetadata)
    refused: list[tuple[Any, type[Exception]]] = [
        ({}, ValueError),
        (None, ValueError),
        ({where: "x"}, ValueError),
        ({"t": 5}, TypeError),
        ({where: (5, b"x")}, TypeError),
    ]
    for wrong, error in refused:
        with pytest.raises(error):
            check(wrong)


def test_an_awaitable_has_a_time(api: Api) -> None:
    async def main() -> None:
        assert await api("util").wait_for(asyncio.sleep(0, "done"), 5) == "done"
        assert await api("util").wait_for(asyncio.sleep(0, "done")) == "done"
        with pytest.raises(TimeoutError):
            await api("util").wait_for(asyncio.sleep(5), 0.01)

    asyncio.run(main())


def test_releases_are_parsed(api: Api) -> None:
    parse = api("util").parse_kafka_version
    assert [parse(one) for one in ("0.9", "0.10.1", "2.8")] == [(0, 9, 0), (0, 10, 1), (2, 8, 0)]
    for wrong in ("0.8", "3.0", "2", "2.1.0.0", "auto"):
        with pytest.raises(ValueError):
            parse(wrong)
