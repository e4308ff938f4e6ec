"""Which of a name's addresses to connect to: the first that takes it (RFC 8305)."""

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
"""After so many seconds without a word from one address the next is tried beside it."""


async def addresses_of(host: str, port: int) -> list[str]:
    """The numeric addresses of a host, families in turn, beginning with the one that the system prefers.

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
    return [one for turn in zip_longest(*families.values()) for one in dict.fromkeys(turn) if one is not None]


async def canonical(at: Address) -> tuple[Address, ...]:
    """The names of all machines that a name stands for (KIP-235), by reverse lookup; a machine without one keeps its
    numeric address, and a name that cannot be resolved stays as it is, for whoever dials it to say so."""
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
    """What ``connect`` makes of the first address that takes it; what others make meanwhile is discarded.

    Raises:
        OSError: no address took it; with several its cause is a group of what each of them said.
    """
    if len(addresses) == 1:
        return await connect(addresses[0])
    made: list[T] = []
    errors: list[OSError] = []

    async def attempt(address: str, failed: anyio.Event) -> None:
        try:
            one = await connect(address)
        except OSError as error:
            errors.append(error)
            failed.set()
            return
        if made:
            discard(one)
        else:
            made.append(one)
            attempts.cancel_scope.cancel()

    try:
        async with background_tasks() as attempts:
            for address in addresses:
                failed = anyio.Event()
                attempts.start_soon(attempt, address, failed)
                with anyio.move_on_after(_STAGGER):
                    await failed.wait()
    except BaseException:
        for one in made:
            discard(one)
        raise
    if not made:
        raise OSError(f"none of {len(errors)} addresses took it") from ExceptionGroup("connecting", errors)
    return made[0]
