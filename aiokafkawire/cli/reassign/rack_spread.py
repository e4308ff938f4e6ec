"""The spread of a partition's replicas over racks."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

__all__ = ("RackSpread",)


class RackSpread:
    """The racks of brokers, and whether replicas are spread over them as evenly as possible.

    Args:
        racks: the rack of each broker. If one is None, each broker is a rack of its own.
    """

    def __init__(self, racks: Mapping[int, str | None]) -> None:
        is_known = all(rack is not None for rack in racks.values())
        self.rack_of: dict[int, Hashable] = {broker: rack if is_known else broker for broker, rack in racks.items()}
        self._sizes = Counter(self.rack_of.values())

    def count(self, brokers: Iterable[int]) -> Counter[Hashable]:
        """Return the number of these brokers in each rack."""
        return Counter(self.rack_of[broker] for broker in brokers)

    def is_even(self, brokers: Iterable[int]) -> bool:
        """Return whether no replica could go to a rack that has two replicas fewer, and a free broker."""
        counts = self.count(brokers)
        most = max(counts.values(), default=0)
        return all(counts[rack] >= min(most - 1, size) for rack, size in self._sizes.items())
