"""Connects to the first of a name's addresses that accepts a connection (RFC 8305)."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import anyio

from ..runtime import background_tasks
from ..types import Address

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

__all__ = ("addresses_of", "canonical", "dial")

T = TypeVar("T")

_STAGGER: Final = 0.25
"""The seconds without an answer from an address after which the next address is tried concurrently."""
_REPEAT: Final = 2.0
"""The seconds without an answer from any address after which the name is resolved again, for further attempts."""
_MOST_REPEATS: Final = 2


async def addresses_of(host: str, port: int) -> list[str]:
    """Return a host's numeric addresses: IPv4 and IPv6 alternate, and the address that the system prefers is first.

    Raises:
        OSError: the name cannot be resolved.
    """
    try:
        return [str(ip_address(host))]
    except ValueError:
        pass
    families: dict[int, list[str]] = {}
    for family, *_, address in await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        families.setdefault(family, []).append(str(address[0]))
    turns = zip_longest(*families.values())
    return [address for turn in turns for address in dict.fromkeys(turn) if address is not None]


async def canonical(at: Address) -> tuple[Address, ...]:
    """Return the canonical names of a host's addresses, found by reverse lookup (KIP-235).

    An address without a name stays numeric. A host that cannot be resolved is returned unchanged, since connecting to
    it reports the error.
    """
    found: list[Address] = []
    try:
        addresses = await addresses_of(*at)
    except (OSError, UnicodeError):  # the latter if it is no host name
        return (at,)
    for address in addresses:
        try:
            name, _ = await anyio.getnameinfo((address, at.port), socket.NI_NAMEREQD | socket.NI_NUMERICSERV)
        except OSError:
            name = address
        found.append(Address(name, at.port))
    return tuple(dict.fromkeys(found))


async def dial(
    addresses: Sequence[str],
    connect: Callable[[str], Awaitable[T]],
    discard: Callable[[T], None],
    resolve: Callable[[], Awaitable[Sequence[str]]],
) -> T:
    """Return the result of ``connect`` for the first address that accepts. Call ``discard`` with any later result.

    While none answers, try the addresses that ``resolve`` returns as well, twice at most: the broker may have moved,
    and the system doubles the wait before each retransmission of an attempt.

    Raises:
        OSError: no address accepted. If there are several addresses, the ``__cause__`` is a group of their errors.
    """
    attempts = _Attempts(connect, discard)
    try:
        async with background_tasks() as tasks:
            for address in addresses:
                await attempts.start(tasks, address)
            for _ in range(_MOST_REPEATS):
                with anyio.move_on_after(_REPEAT):
                    await attempts.all_ended()
                    break
                with suppress(OSError):
                    addresses = await resolve()
                for address in addresses:
                    if address not in attempts.errors:
                        await attempts.start(tasks, address)
    except BaseException:
        for connected in attempts.made:
            discard(connected)
        raise
    if attempts.made:
        return attempts.made[0]
    errors = list(attempts.errors.values())
    try:
        if len(errors) == 1:
            raise errors[0]
        raise OSError(f"none of {len(errors)} addresses accepted it") from ExceptionGroup("connecting", errors)
    finally:  # or each error would keep itself alive, by its traceback
        attempts.errors.clear()
        del errors


class _Attempts(Generic[T]):
    """The attempts to connect to a host's addresses, of which the first to succeed ends the others."""

    def __init__(self, connect: Callable[[str], Awaitable[T]], discard: Callable[[T], None]) -> None:
        self.made: list[T] = []
        self.errors: dict[str, Exception] = {}
        self._connect, self._discard = connect, discard
        self._pending = 0
        self._one_ended = anyio.Event()

    async def all_ended(self) -> None:
        """Wait until an attempt has succeeded, or all have failed."""
        while self._pending and not self.made:
            await self._one_ended.wait()

    async def start(self, tasks: "TaskGroup", address: str) -> None:
        """Start an attempt, and wait until it fails, or the next address may be tried."""
        failed = anyio.Event()
        self._pending += 1
        tasks.start_soon(self._attempt, tasks, address, failed)
        with anyio.move_on_after(_STAGGER):
            await failed.wait()

    async def _attempt(self, tasks: "TaskGroup", address: str, failed: anyio.Event) -> None:
        try:
            connected = await self._connect(address)
        except Exception as error:
            self.errors[address] = error
            failed.set()
        else:
            if self.made:
                self._discard(connected)
            else:
                self.made.append(connected)
                tasks.cancel_scope.cancel()
        finally:
            self._pending -= 1
            ended, self._one_ended = self._one_ended, anyio.Event()
            ended.set()
