"""Ports of 127.0.0.1 that nobody has, for servers that have to be told theirs."""

import random
import socket

__all__ = ("accepts", "free_ports")

# Systems give higher ones to outgoing connections, which would take the port of a server that is not yet up, or is down
# for a while, or connect to themselves.
_LOWEST, _HIGHEST = 20_000, 32_000
_CHANCE = random.SystemRandom()  # hypothesis seeds the other one, alike in every process


def accepts(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in _CHANCE.sample(range(_LOWEST, _HIGHEST), _HIGHEST - _LOWEST):
        if len(found) == count:
            break
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return found
