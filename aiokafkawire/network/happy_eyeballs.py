"""Connects to the first of a name's addresses that accepts a connection (RFC 8305)."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from itertools import zip_longest
from typing import Final, TypeVar

import anyio

from ..runtime import background_tasks
from ..types import Address

__all__ = ("addresses_of", "canonical", "dial")

T = TypeVar("T")

_STAGGER: Final = 0.25
"""The seconds without an answer from an address after which the next address is tried concurrently."""


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
    except OSError:
        return (at,)
    for address in addresses:
        try:
            name, _ = await anyio.getnameinfo((address, at.port), socket.NI_NAMEREQD | socket.NI_NUMERICSERV)
        except OSError:
            name = address
        found.append(Address(name, at.port))
    return tuple(dict.fromkeys(found))


async def dial(addresses: Sequence[str], connect: Callable[[str], Awaitable[T]], discard: Callable[[T], None]) -> T:
    """Return the result of ``connect`` for the first address that accepts. Call ``discard`` with any later result.

    Raises:
        OSError: no address accepted. If there are several addresses, the ``__cause__`` is a group of their errors.
    """
    if len(addresses) == 1:
        return await connect(addresses[0])
    made: list[T] = []
    errors: list[OSError] = []

    async def attempt(address: str, failed: anyio.Event) -> None:
        try:
            connected = await connect(address)
        except OSError as error:
            errors.append(error)
            failed.set()
            return
        if made:
            discard(connected)
        else:
            made.append(connected)
            attempts.cancel_scope.cancel()

    try:
        async with background_tasks() as attempts:
            for address in addresses:
                failed = anyio.Event()
                attempts.start_soon(attempt, address, failed)
                with anyio.move_on_after(_STAGGER):
                    await failed.wait()
    except BaseException:
        for connected in made:
            discard(connected)
        raise
    if not made:
        raise OSError(f"none of {len(errors)} addresses accepted it") from ExceptionGroup("connecting", errors)
    return made[0]
