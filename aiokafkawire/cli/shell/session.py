"""Runs a command of the shell with a client: on an event loop, until it ends or is interrupted."""

import os
from collections.abc import Awaitable, Callable

import anyio

from ...client import Client
from ...config.properties import KafkaSettings
from ...errors import ConfigError, UsageError
from ..exit_status import MISSING, CommandFailed, run_until_signalled
from .settings import read_settings
from .shared_options import SharedOptions

__all__ = ("ClientCommand", "Session", "run_with_client")


class Session:
    """The client of a command, and the settings for its producers and consumers."""

    def __init__(self, kafka: Client, settings: KafkaSettings, options: SharedOptions) -> None:
        self.kafka = kafka
        self.settings = settings
        self.options = options


ClientCommand = Callable[[Session], Awaitable[int]]
"""A command that gets a session with an open client, and returns the exit status."""


def run_with_client(options: SharedOptions, command: ClientCommand) -> int:
    """Connect to the cluster that the options name, run the command, and return the exit status.

    SIGINT (Ctrl-C) and SIGTERM cancel the command; the exit status is then 128 and the number of the signal.

    Raises:
        CommandFailed: standard output is closed, a setting is wrong, or the command has refused an argument.
        KafkaError: the client cannot connect, or the command failed; perhaps in an exception group.
    """
    if "stdout" in options.closed:
        raise CommandFailed("standard output is closed, so nothing can be printed")
    settings = read_settings(options, os.environ)
    try:
        return anyio.run(_run, Session(_client(settings), settings, options), command)
    except* (UsageError, ConfigError) as refused:
        raise CommandFailed(str(_first(refused)), MISSING) from None


def _client(settings: KafkaSettings) -> Client:
    return Client(settings.bootstrap_servers, **settings.client)


async def _run(session: Session, command: ClientCommand) -> int:
    status = 0

    async def connected() -> None:
        nonlocal status
        async with session.kafka:
            status = await command(session)

    received = await run_until_signalled(connected)
    return status if received is None else 128 + received


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
