"""Runs a command of the shell with a client: on an event loop, until it ends or is interrupted."""

import os
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Final, TypeAlias, TypeVar

import anyio
import attrs

from ...client import Client
from ...config import ClientConfig, ClientOptions
from ...config.client import parse_servers
from ...config.properties import KafkaSettings
from ...errors import ConfigError, UsageError
from ...observe import Observer
from ..exit_status import MISSING, CommandFailed, run_until_signalled
from .connecting import ConnectionNotes
from .settings import read_settings
from .shared_options import SharedOptions

__all__ = ("ClientCommand", "Session", "ask_with_client", "run_with_client")

T = TypeVar("T")

_PROPAGATION_MS: Final = 2_000
"""How long to wait for a topic that does not exist: one that was just created is known to all brokers by then."""


@attrs.frozen
class Session:
    """The open client of a command, the settings for its producers and consumers, and the shared options."""

    kafka: Client
    settings: KafkaSettings
    options: SharedOptions


ClientCommand: TypeAlias = Callable[[Session], Awaitable[int]]
"""A command that gets a session, and returns the exit status."""


def run_with_client(
    options: SharedOptions,
    command: ClientCommand,
    *,
    quiet: bool = False,
    on_fast_loop: bool = False,
    observer: Observer | None = None,
) -> int:
    """Connect to the cluster that the options name, run the command, and return the exit status.

    SIGINT (Ctrl-C) and SIGTERM cancel the command; the exit status is then 128 and the number of the signal. While no
    broker can be reached, a line on standard error says so, unless ``quiet``. With ``on_fast_loop`` the command runs on
    uvloop, if that is installed: it takes 25 ms to load, and saves a tenth of the time of receiving many records. The
    client notifies the ``observer``, if there is one.

    Raises:
        CommandFailed: standard output is closed, or a setting or an argument is wrong (exit status 2); perhaps in an
            exception group.
        KafkaError: the client cannot connect, or the command failed; perhaps in an exception group.
    """
    if "stdout" in options.closed:
        raise CommandFailed("standard output is closed, so nothing can be printed")
    settings = read_settings(options, os.environ)
    try:
        loop = {"use_uvloop": on_fast_loop and find_spec("uvloop") is not None}
        return anyio.run(_run, settings, options, command, quiet, observer, backend_options=loop)
    except* (UsageError, ConfigError) as refused:
        raise CommandFailed(str(_first(refused)), MISSING) from None


def ask_with_client(options: SharedOptions, ask: Callable[[Session], Awaitable[T]]) -> T:
    """Connect to the cluster that the options name, and return what brokers answer: before the user is asked.

    Raises as :func:`run_with_client`, and:
        CommandFailed: SIGINT or SIGTERM has interrupted the command (exit status 128 and the number of the signal).
    """
    found: list[T] = []

    async def command(session: Session) -> int:
        found.append(await ask(session))
        return 0

    status = run_with_client(options, command)
    if status:
        raise CommandFailed("", status)
    return found[0]


async def _run(
    settings: KafkaSettings, options: SharedOptions, command: ClientCommand, quiet: bool, observer: Observer | None
) -> int:
    status = 0
    observers = [one for one in (observer, None if quiet else _connection_notes(settings)) if one is not None]

    async def connected() -> None:
        nonlocal status
        config: ClientOptions = {"topic_metadata_propagation_max_ms": _PROPAGATION_MS, **settings.client}
        async with Client(settings.bootstrap_servers, observers=observers, **config) as kafka:
            status = await command(Session(kafka, settings, options))

    received = await run_until_signalled(connected)
    return status if received is None else 128 + received


def _connection_notes(settings: KafkaSettings) -> ConnectionNotes:
    milliseconds = settings.client.get("bootstrap_timeout_ms") or ClientConfig().bootstrap_timeout_ms
    return ConnectionNotes(len(parse_servers(settings.bootstrap_servers)), milliseconds / 1000)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
