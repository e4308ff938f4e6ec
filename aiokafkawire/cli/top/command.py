"""The verb ``top``: the live view, or one view as plain tables or JSON."""

import asyncio
import signal
import sys
from contextlib import suppress
from functools import partial
from importlib.util import find_spec

import anyio

from ...client import Client
from ...config import ClientOptions
from ...errors import KafkaError
from ..exit_status import MISSING, CommandFailed, run_until_signalled
from .options import TopOptions, pattern
from .plain_output import json_line, plain_tables
from .rows import History
from .sampler import Sampler

__all__ = ("run",)


def run(options: TopOptions) -> int:
    """Run the command, and return its exit status.

    Raises:
        CommandFailed: an option is wrong, textual is not installed, or there is no terminal for the live view.
        KafkaError: the cluster cannot be reached.
    """
    topics, groups = pattern("--topics", options.topics), pattern("--groups", options.groups)
    is_live = not (options.once or options.json)
    if is_live:
        _check_live()

    async def start() -> int:
        settings: ClientOptions = {**options.settings, "bootstrap_timeout_ms": int(options.timeout * 1000)}
        async with Client(options.bootstrap, **settings) as kafka:
            sampler = Sampler(kafka, topics=topics, groups=groups, timeout=options.timeout)
            if is_live:
                return await _show(kafka, sampler, options)
            received = await run_until_signalled(partial(_print, sampler, options))
            return 0 if received is None else 128 + received

    return anyio.run(start)


def _check_live() -> None:
    if find_spec("textual") is None:
        raise CommandFailed(
            'the live view needs textual, which is not installed: pip install "aiokafkawire[top]" '
            "(--once and --json need nothing more)",
            MISSING,
        )
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)  # Textual writes to the last one
    if not all(stream is not None and stream.isatty() for stream in streams):
        raise CommandFailed("the live view needs a terminal: use --once or --json for a file or a pipe", MISSING)


async def _print(sampler: Sampler, options: TopOptions) -> None:
    """Print a view from two samples, for the rates; with ``json`` alone go on after each interval, and after errors."""
    history = History()
    history.add(await sampler.sample())
    while True:
        await anyio.sleep(options.interval)
        try:
            history.add(await sampler.sample())
        except KafkaError as error:
            if options.once:
                raise
            print(f"aiokafkawire: trying again: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        print(json_line(history) + "\n" if options.json else plain_tables(history), end="", flush=True)
        if options.once:
            return


async def _show(kafka: Client, sampler: Sampler, options: TopOptions) -> int:
    from .app import TopApp

    app = TopApp(kafka, sampler, interval=options.interval, timeout=options.timeout)
    loop = asyncio.get_running_loop()
    # The signals of kill, and of a lost SSH connection: the app must leave the terminal as it was.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, partial(app.exit, 128 + number))
    status = await app.run_async()
    return status or app.return_code or 0
