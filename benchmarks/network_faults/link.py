"""An emulated link, which delays or loses packets by rules that may change at any time. Pure: no clock, no sockets."""

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from benchmarks.network_faults.packets import End, Packet, parse, reset_for

Direction: TypeAlias = Literal["to_brokers", "to_clients"]
OPPOSITE: Final[Mapping[Direction, Direction]] = {"to_brokers": "to_clients", "to_clients": "to_brokers"}


@dataclass(frozen=True)
class Rules:
    """The settings of a link. Without arguments it passes all packets at once."""

    loss: float = 0.0
    """The share of packets that are lost."""
    delay: float = 0.0
    """Seconds that each packet takes."""
    jitter: float = 0.0
    """Seconds by which the delay varies, up and down; the order stays."""
    reordered: float = 0.0
    """The share of packets that `reordering` holds back, so that later ones overtake them."""
    reordering: float = 0.0
    """Seconds."""
    bits_per_second: float = 0.0
    """In each direction; 0 is without limit."""
    queue: int = 32_768
    """Bytes that wait for a limited rate, at most; packets beyond are lost."""
    largest: int = 0
    """Larger packets are lost, and nobody is told (a black hole of the MTU); 0 is without limit."""
    blocked: tuple[Direction, ...] = ()
    """The directions in which all packets are lost."""
    gone: tuple[str, ...] = ()
    """The addresses to which and from which all packets are lost."""
    unknown: Literal["pass", "drop", "reset"] = "pass"
    """What happens to TCP packets of flows whose first packet was not seen, or that NAT has forgotten."""
    forgets_after: float = 0.0
    """Seconds without packets after which NAT forgets a flow; 0 is never."""

    def as_json(self) -> dict[str, Any]:
        """Return the rules that differ from the defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(Rules(), name)}


def rules_of(values: Mapping[str, Any]) -> Rules:
    """Return the rules that `as_json` has written."""
    given: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return Rules(**given)


class Crossing(NamedTuple):
    """A packet that arrives."""

    at: float
    direction: Direction
    data: bytes


@dataclass
class _Lane:
    """The state of one direction."""

    free_at: float = 0.0
    """When the packets that wait for a limited rate have left."""
    last_at: float = 0.0
    """When the last packet in order arrives."""


@dataclass
class Link:
    """Decides about packets. Times are in seconds of any clock that does not go back."""

    seed: int = 0
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.change(self.rules)
        self._seen: dict[tuple[End, End], float] = {}

    def change(self, rules: Rules) -> None:
        """Use other rules; packets that still wait do not delay later ones."""
        self.rules = rules
        self._lanes: dict[Direction, _Lane] = {"to_brokers": _Lane(), "to_clients": _Lane()}

    def forget(self) -> None:
        """Forget all flows, as NAT does when it restarts."""
        self._seen.clear()

    def offer(self, direction: Direction, data: bytes, now: float) -> list[Crossing]:
        """Return what arrives of a packet: itself, a reset for its sender, or nothing."""
        rules, packet = self.rules, parse(data)
        if direction in rules.blocked:
            return []
        if packet is not None:
            if packet.source.address in rules.gone or packet.target.address in rules.gone:
                return []
            if packet.is_tcp and not self._knows(direction, packet, now) and rules.unknown != "pass":
                answer = reset_for(data) if rules.unknown == "reset" else None
                return [] if answer is None else [Crossing(now, OPPOSITE[direction], answer)]
        if rules.largest and len(data) > rules.largest:
            return []
        if rules.loss and self._chance.random() < rules.loss:
            return []
        at = self._arrival(self._lanes[direction], len(data), now)
        return [] if at is None else [Crossing(at, direction, data)]

    def _knows(self, direction: Direction, packet: Packet, now: float) -> bool:
        """Note a flow's packet; return whether its flow is known."""
        flow = (packet.source, packet.target) if direction == "to_brokers" else (packet.target, packet.source)
        seen, limit = self._seen.get(flow), self.rules.forgets_after
        is_known = seen is not None and (not limit or now - seen < limit)
        if is_known or (packet.opens and direction == "to_brokers"):
            self._seen[flow] = now
            return True
        self._seen.pop(flow, None)
        return False

    def _arrival(self, lane: _Lane, size: int, now: float) -> float | None:
        rules, at = self.rules, now
        if rules.bits_per_second:
            begins = max(now, lane.free_at)
            if (begins - now) * rules.bits_per_second / 8 + size > rules.queue:
                return None
            at = lane.free_at = begins + size * 8 / rules.bits_per_second
        at += max(rules.delay + self._chance.uniform(-rules.jitter, rules.jitter), 0.0)
        at = max(at, lane.last_at)
        if rules.reordered and self._chance.random() < rules.reordered:
            return at + rules.reordering
        lane.last_at = at
        return at
