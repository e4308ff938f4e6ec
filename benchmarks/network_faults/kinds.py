"""The kinds of faults of a network: what happens, for how long, and how long everything has to recover."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.network_faults.link import Rules

CALM: Final = Rules()
_BROKEN: Final = 8.0
"""Seconds that a network is broken."""
_BAD: Final = 6.0
"""Seconds that it is bad, but works."""


@dataclass(frozen=True)
class Kind:
    """One kind of fault, which happens several times in a run."""

    title: str
    seconds: float = 0.0
    """From its beginning until it is healed; 0 where nothing is healed, and clients have to help themselves."""
    rest: float = 11.0
    """Seconds from then until the next one."""
    rules: Rules = CALM
    """What the link does meanwhile; without healing, until the next one."""
    family: str = "both"
    """The addresses of the brokers: "4", "6" or "both"."""
    forgets: bool = False
    """Whether NAT forgets all connections at the beginning."""
    names_fail: bool = False
    """Whether no name can be resolved meanwhile."""
    moves: bool = False
    """Whether all brokers get other addresses."""
    kills: bool = False
    """Whether a broker's host vanishes: its process is killed, and its packets are lost, so that it closes nothing. It
    comes back with another address."""


_FAR: Final = Rules(delay=1.0, jitter=0.1, unknown="reset")

KINDS: Final[Mapping[str, Kind]] = {
    "loss-1": Kind("1 % of packets lost", _BAD, 4, Rules(loss=0.01)),
    "loss-10": Kind("10 % of packets lost", _BAD, 5, Rules(loss=0.1)),
    "loss-30": Kind("30 % of packets lost", _BAD, 14, Rules(loss=0.3)),
    "delay": Kind("delay of 200 ms ± 50 ms", _BAD, 4, Rules(delay=0.2, jitter=0.05)),
    "far": Kind("round trips of 2 s, at first resets", 20, 15, _FAR, forgets=True),
    "reorder": Kind("25 % of packets reordered", _BAD, 4, Rules(delay=0.005, reordered=0.25, reordering=0.02)),
    "slow": Kind("64 kbit/s", _BAD, 7, Rules(bits_per_second=64_000)),
    "mtu": Kind("packets over 700 bytes vanish", _BROKEN, rules=Rules(largest=700)),
    "to-brokers": Kind("nothing reaches the brokers", _BROKEN, rules=Rules(blocked=("to_brokers",))),
    "to-clients": Kind("nothing reaches the clients", _BROKEN, rules=Rules(blocked=("to_clients",))),
    "cut": Kind("nothing passes", _BROKEN, rules=Rules(blocked=("to_brokers", "to_clients"))),
    "long-cut": Kind("nothing passes, for 20 s", 20, 15, Rules(blocked=("to_brokers", "to_clients"))),
    "ipv6": Kind("IPv6 alone, nothing passes", _BROKEN, rules=Rules(blocked=("to_brokers", "to_clients")), family="6"),
    "nat-reset": Kind("NAT forgets, and resets", rest=7, rules=Rules(unknown="reset"), forgets=True),
    "names": Kind("connections reset, names fail", _BROKEN, 8, Rules(unknown="reset"), forgets=True, names_fail=True),
    "half-open": Kind("connections die silently", rest=65, rules=Rules(unknown="drop"), forgets=True),
    "move": Kind("brokers get other addresses", rest=65, moves=True),
    "vanish": Kind("a broker's host vanishes", rest=45, kills=True),
}
