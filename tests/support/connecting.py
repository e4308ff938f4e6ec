"""Connections to a scripted broker, and requests that are easily told apart."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskStatus

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.network.connection import Connection
from aiokafkawire.network.connector import Connector
from aiokafkawire.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from aiokafkawire.runtime import Owner, Runtime

from .patience import PATIENCE

__all__ = ("ask", "connected", "echo", "eventually", "named", "running_tasks")


def running_tasks() -> set[int]:
    """The ids of the tasks that run now."""
    return {task.id for task in anyio.get_running_tasks()}


@asynccontextmanager
async def connected(
    connector: Connector, *, runtime: Runtime | None = None, host: str = "b", **options: Any
) -> AsyncIterator[Connection]:
    """An open connection; afterwards no task of it is left, and none has failed."""
    before, faults = running_tasks(), list[Exception]()
    owner = Owner(faults.append)
    await owner.open()
    try:
        yield await Connection.open(
            connector, host, 9092, config=make_config(ClientConfig, options), owner=owner, runtime=runtime or Runtime()
        )
    finally:
        await owner.close()
    assert running_tasks() <= before
    assert faults == []


def named(name: str) -> MetadataRequest:
    """A request that says who asks."""
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


def echo(request: MetadataRequest) -> MetadataResponse:
    """The answer to :func:`named`: the same name."""
    brokers = [MetadataResponseBroker(node_id=1, host="b", port=9092)]
    topics = [MetadataResponseTopic(error_code=3, name=one.name, partitions=[]) for one in request.topics or ()]
    return MetadataResponse(brokers=brokers, controller_id=1, topics=topics)


async def ask(
    connection: Connection, name: str, heard: list[Any], *, task_status: TaskStatus[anyio.CancelScope]
) -> None:
    """Ask, and add the answer's name or the error to ``heard``; gives the scope that cancels it."""
    with anyio.CancelScope() as scope:
        task_status.started(scope)
        try:
            answer = await connection.request(named(name))
            heard.append(answer.topics[0].name)
        except Exception as error:
            heard.append(error)


async def eventually(condition: Callable[[], bool]) -> None:
    """Let the other tasks run until it holds; fails after a while."""
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.lowlevel.checkpoint()
