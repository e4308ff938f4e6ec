"""``aiokafkawire tap``: runs a proxy in front of a cluster, and prints the requests and responses."""

import os
import signal
import ssl
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any, Final

import anyio
import attrs

from ...config import ClientConfig, make_config
from ...config.client import parse_servers
from ...config.properties import KafkaSettings
from ...errors import ConfigError
from ...network.tls_context import make_context
from ...testing.faults.rules import FaultRule
from ...testing.tap.tap import Tap
from ...testing.tap.tap_events import TapEvent, TapNotice, TappedRequest
from ..counted import counted
from ..error_text import one_line, reason_text
from ..exit_status import FAILED, INTERRUPTED, MISSING, CommandFailed, run_until_signalled
from ..shell.settings import read_settings
from ..shell.shared_options import SharedOptions
from ..standard_streams import discard_output
from ..wire.apis import api_named, name_of
from .fault_parser import ParsedFault, parse_fault
from .lines import json_line, text_line

__all__ = ("TapOptions", "run_tap")

_CONNECT_TIMEOUT_MS: Final = 10_000
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_ANY_HOST: Final = ("0.0.0.0", "::")  # noqa: S104  # to compare with


@attrs.frozen(kw_only=True)
class TapOptions:
    """The arguments of the tap command, as texts of the command line."""

    shared: SharedOptions
    """The brokers, and the settings of TLS to them."""
    listen: str = "127.0.0.1:19092"
    """HOST:PORT; brokers get the next ports. Port 0 means any free ports."""
    advertised_host: str | None = None
    faults: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """The APIs to print; empty for all."""
    excluded: tuple[str, ...] = ()
    """The APIs not to print."""
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
    settings = read_settings(options.shared, os.environ)
    tap = _tap(options, settings, output)
    rules = [_add(tap, fault) for fault in faults]
    tap_timeout = options.shared.timeout or _CONNECT_TIMEOUT_MS / 1000

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(tap)
            except OSError as error:
                raise CommandFailed(_why_not_open(options, error)) from None
            _say(_hint(tap.bootstrap, settings.bootstrap_servers, options))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(_warn_if_unreachable, settings.bootstrap_servers, tap_timeout)
            await output.closed.wait()
            tasks.cancel_scope.cancel()

    try:
        received = await run_until_signalled(serve)
    except Exception:
        if tap.faults:
            raise CommandFailed(f"the tap failed {len(tap.faults)} times; see the log above") from None
        raise
    if tap.faults:
        raise CommandFailed(f"the tap failed {len(tap.faults)} times; see the log above")
    for fault, rule in zip(faults, rules, strict=True):
        _say(f"fault {fault.text!r} was applied to {counted(rule.count, 'request')}")
    if output.closed.is_set():
        discard_output()
        if output.error is not None:
            raise CommandFailed(f"cannot write the output: {output.error.strerror}")
        return FAILED
    return INTERRUPTED if received == signal.SIGINT else 0


async def _warn_if_unreachable(servers: str, seconds: float) -> None:
    """Print a line if no broker accepts a connection; the tap tries again for each client."""
    causes = {}
    for server in parse_servers(servers):
        try:
            with anyio.fail_after(seconds):
                connection = await anyio.connect_tcp(server.host, server.port)
        except TimeoutError:
            causes[server] = f"no connection within {seconds:g} s"
        except OSError as error:
            # anyio's own error has no reason; that of several addresses of a host is a group.
            cause = error.__cause__ or error
            cause = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause
            causes[server] = one_line(reason_text(str(cause)))
        else:
            await anyio.aclose_forcefully(connection)
            return
    why = "; ".join(f"cannot connect to {server}: {cause}" for server, cause in causes.items())
    _say(f"aiokafkawire: {why}; the tap tries again when a client connects")


class _Output:
    """Prints the events of the tap: requests and responses to standard output, notices to standard error."""

    def __init__(self, options: TapOptions) -> None:
        only, excluded = _apis("--only", options.only), _apis("--except", options.excluded)
        if only and excluded:
            raise CommandFailed("--only and --except cannot be combined", MISSING)
        self._only, self._excluded = only, excluded
        self._line = json_line if options.shared.json else text_line
        self.closed = anyio.Event()
        """Set when nothing more can be printed: as a rule the program that reads the output has ended."""
        self.error: OSError | None = None
        """The reason, unless it is the end of that program."""

    def event(self, event: TapEvent) -> None:
        if isinstance(event, TapNotice):
            _say(event.text)
            return
        api = event.api if isinstance(event, TappedRequest) else event.request.api
        if api in self._excluded or (self._only and api not in self._only) or self.closed.is_set():
            return
        try:
            print(self._line(event), flush=True)
        except OSError as error:
            self.error = None if isinstance(error, BrokenPipeError) else error
            self.closed.set()


def _tap(options: TapOptions, settings: KafkaSettings, output: _Output) -> Tap:
    host, port = _listening(options.listen)
    timeout = options.shared.timeout
    try:
        _check_target(settings.bootstrap_servers, host, port)
        return Tap(
            settings.bootstrap_servers,
            host=host,
            port=port,
            advertised_host=options.advertised_host,
            tls=_context(options, settings),
            journal=options.journal,
            on_event=output.event,
            connect_timeout_ms=_CONNECT_TIMEOUT_MS if timeout is None else max(1, round(timeout * 1000)),
        )
    except ConfigError as error:
        raise CommandFailed(str(error), MISSING) from None


def _check_target(servers: str, host: str, port: int) -> None:
    """Raise CommandFailed if the tap would connect to itself, and so without end."""
    for server in parse_servers(servers):
        is_same_host = server.host == host or (server.host in _LOOPBACK and host in (*_LOOPBACK, *_ANY_HOST))
        if server.port == port and is_same_host:
            why = f"the tap would connect to itself at {server}"
            raise CommandFailed(f"{why}: give a broker with --to, or another address with --listen", MISSING)


def _listening(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise CommandFailed(f"--listen {text}: give HOST:PORT, with a port from 0 to 65535", MISSING)
    return host, int(port)


def _context(options: TapOptions, settings: KafkaSettings) -> ssl.SSLContext | None:
    """Return the context for TLS to the brokers; None if neither the options nor the settings ask for TLS."""
    files: dict[str, Any] = {
        "ssl_ca_location": options.cafile,
        "ssl_certificate_location": options.certfile,
        "ssl_key_location": options.keyfile,
    }
    given = {name: path for name, path in files.items() if path is not None}
    protocol = str(settings.client.get("security_protocol", "")).upper()
    if not options.tls and protocol not in ("SSL", "SASL_SSL"):
        if given:
            raise CommandFailed("--cafile, --certfile and --keyfile need --tls", MISSING)
        return None
    if options.keyfile and not options.certfile:
        raise CommandFailed("--keyfile needs --certfile", MISSING)
    named: dict[str, Any] = {name: value for name, value in settings.client.items() if name.startswith("ssl_")}
    try:
        # Clients log in through the tap, so it needs no SASL itself.
        return make_context(make_config(ClientConfig, {**named, **given, "security_protocol": "SSL"}))
    except ConfigError as error:
        raise CommandFailed(f"cannot use the certificates for TLS: {error}", MISSING) from None


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


def _hint(bootstrap: str, servers: str, options: TapOptions) -> str:
    lines = [f"listening at {bootstrap} for the cluster at {servers}; use it as bootstrap.servers. Ctrl-C stops it."]
    if options.journal is not None:
        lines.append(
            f"The journal has all bytes, passwords included. Decode it with: aiokafkawire wire --file {options.journal}"
        )
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
