"""The verb ``top``: the live view, or one view as plain tables or JSON."""

import asyncio
import signal
import sys
from contextlib import suppress
from functools import partial
from importlib.util import find_spec

import anyio

from ...client import Client
from ...errors import KafkaError
from ..error_text import error_text
from ..exit_status import MISSING, CommandFailed
from ..shell.output import note, write_output
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions
from .options import TopOptions
from .plain_output import json_line, plain_tables
from .rows import History
from .sampler import Sampler

__all__ = ("run",)


def run(shared: SharedOptions, options: TopOptions) -> int:
    """Run the command, and return its exit status.

    Raises:
        CommandFailed: textual is not installed, or there is no terminal for the live view; and as
            :func:`.run_with_client`.
        KafkaError: the cluster cannot be reached.
    """
    is_live = not (options.once or options.json)
    if is_live:
        _check_live()

    async def watch(session: Session) -> int:
        kafka = session.kafka
        sampler = Sampler(kafka, topics=options.topics, groups=options.groups, timeout=options.timeout)
        if is_live:
            return await _show(kafka, sampler, options)
        await _print(sampler, options)
        return 0

    return run_with_client(shared, watch)


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
    history, is_first = History(), True
    while True:
        began = anyio.current_time()
        try:
            history.add(await sampler.sample())
        except KafkaError as error:
            if options.once:
                raise
            note(f"aiokafkawire: trying again: {error_text(error)}")
        else:
            if not is_first:
                text = json_line(history) + "\n" if options.json else plain_tables(history)
                write_output(text.encode())
                if options.once:
                    return
            is_first = False
        took = anyio.current_time() - began
        await anyio.sleep(options.interval if options.once else max(options.interval, took))


async def _show(kafka: Client, sampler: Sampler, options: TopOptions) -> int:
    from .app import TopApp

    app = TopApp(kafka, sampler, interval=options.interval, timeout=options.timeout)
    loop = asyncio.get_running_loop()
    # The signals of kill, and of a lost SSH connection: the app must leave the terminal as it was.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, partial(app.exit, 128 + number))
    status = await app.run_async()
    return status or app.return_code or 0
