"""``aiokafkawire tap``: runs a proxy in front of a cluster, and prints the requests and responses."""

import os
import signal
import ssl
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack

import anyio
import attrs

from ...errors import ConfigError
from ...testing.faults.rules import FaultRule
from ...testing.tap.tap import Tap
from ...testing.tap.tap_events import TapEvent, TapNotice, TappedRequest
from ..exit_status import FAILED, INTERRUPTED, MISSING, CommandFailed, run_until_signalled
from ..wire.apis import api_named, name_of
from .fault_parser import ParsedFault, parse_fault
from .lines import json_line, text_line

__all__ = ("TapOptions", "run_tap")


@attrs.frozen(kw_only=True)
class TapOptions:
    """The arguments of the tap command, as texts of the command line."""

    to: str
    """The brokers, as HOST:PORT; several are separated by commas."""
    listen: str = "127.0.0.1:19092"
    """HOST:PORT; brokers get the next ports. Port 0 means any free ports."""
    advertised_host: str | None = None
    faults: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """The APIs to print; empty for all."""
    excluded: tuple[str, ...] = ()
    """The APIs not to print."""
    json: bool = False
    journal: str | None = None
    """The path of a pcap file to write."""
    tls: bool = False
    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None


async def run_tap(options: TapOptions) -> int:
    """Run the tap until Ctrl-C, SIGTERM, or the end of the program that reads its output; return the exit status.

    Raises:
        CommandFailed: an option is invalid, the tap cannot listen or write the journal, or it failed.
    """
    faults = [parse_fault(text) for text in options.faults]
    output = _Output(options)
    tap = _tap(options, output)
    rules = [_add(tap, fault) for fault in faults]

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(tap)
            except OSError as error:
                raise CommandFailed(_why_not_open(options, error)) from None
            _say(_hint(tap.bootstrap, options))
            await output.closed.wait()

    try:
        received = await run_until_signalled(serve)
    except Exception:
        if tap.faults:
            raise CommandFailed(f"the tap failed {len(tap.faults)} times; see the log above") from None
        raise
    if tap.faults:
        raise CommandFailed(f"the tap failed {len(tap.faults)} times; see the log above")
    for fault, rule in zip(faults, rules, strict=True):
        _say(f"fault {fault.text!r} was applied to {_counted(rule.count, 'request')}")
    if output.closed.is_set():
        # Redirect the output that Python flushes at exit, to avoid another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return INTERRUPTED if received == signal.SIGINT else 0


class _Output:
    """Prints the events of the tap: requests and responses to standard output, notices to standard error."""

    def __init__(self, options: TapOptions) -> None:
        only, excluded = _apis("--only", options.only), _apis("--except", options.excluded)
        if only and excluded:
            raise CommandFailed("--only and --except cannot be combined", MISSING)
        self._only, self._excluded = only, excluded
        self._line = json_line if options.json else text_line
        self.closed = anyio.Event()
        """Set when the program that reads the output has ended."""

    def event(self, event: TapEvent) -> None:
        if isinstance(event, TapNotice):
            _say(event.text)
            return
        api = event.api if isinstance(event, TappedRequest) else event.request.api
        if api in self._excluded or (self._only and api not in self._only) or self.closed.is_set():
            return
        try:
            print(self._line(event), flush=True)
        except BrokenPipeError:
            self.closed.set()


def _tap(options: TapOptions, output: _Output) -> Tap:
    host, port = _listening(options.listen)
    try:
        return Tap(
            options.to,
            host=host,
            port=port,
            advertised_host=options.advertised_host,
            tls=_context(options),
            journal=options.journal,
            on_event=output.event,
        )
    except ConfigError as error:
        raise CommandFailed(str(error), MISSING) from None


def _listening(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise CommandFailed(f"--listen {text}: give HOST:PORT, with a port from 0 to 65535", MISSING)
    return host, int(port)


def _context(options: TapOptions) -> ssl.SSLContext | None:
    """Return the context for TLS to the brokers; None without ``--tls``."""
    if not options.tls:
        if options.cafile or options.certfile or options.keyfile:
            raise CommandFailed("--cafile, --certfile and --keyfile need --tls", MISSING)
        return None
    if options.keyfile and not options.certfile:
        raise CommandFailed("--keyfile needs --certfile", MISSING)
    try:
        context = ssl.create_default_context(cafile=options.cafile)
        if options.certfile:
            context.load_cert_chain(options.certfile, options.keyfile)
    except OSError as error:  # an SSLError is one, too
        raise CommandFailed(f"cannot use the certificates for TLS: {error}", MISSING) from None
    return context


def _add(tap: Tap, fault: ParsedFault) -> FaultRule:
    return tap.on(fault.api, **fault.action, **fault.which, times=fault.times, after=fault.after)


def _apis(option: str, names: Iterable[str]) -> frozenset[str]:
    try:
        return frozenset(name_of(api_named(name)[0]) for given in names for name in given.split(",") if name)
    except CommandFailed as error:
        raise CommandFailed(f"{option}: {error}", MISSING) from None


def _why_not_open(options: TapOptions, error: OSError) -> str:
    why = os.strerror(error.errno) if error.errno else str(error)
    if error.filename is not None:
        return f"cannot write the journal {options.journal}: {why}"
    return f"cannot listen at {options.listen}: {why}"


def _hint(bootstrap: str, options: TapOptions) -> str:
    lines = [f"listening at {bootstrap} for the cluster at {options.to}; use it as bootstrap.servers. Ctrl-C stops it."]
    if options.journal is not None:
        lines.append(
            f"The journal has all bytes, passwords included. Decode it with: aiokafkawire wire --file {options.journal}"
        )
    return "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
