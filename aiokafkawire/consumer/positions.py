"""Where a consumer is in each of its partitions, and what it wants of them."""

from collections.abc import Collection, Iterator, Mapping

import attrs

from ..errors import UsageError
from ..types import OffsetSpec, TopicPartition

__all__ = ("Place", "Positions", "some_of")


@attrs.define(eq=False)
class Place:
    """One assigned partition.

    ``position`` is the offset of the next record to hand out; None until ``spec`` was looked up. ``epoch`` changes
    with every seek, so that an answer to a question asked before can be told apart and dropped. A ``lost`` place has
    nothing to go on from, and no default to look up: it waits for a seek.
    """

    where: TopicPartition
    position: int | None
    spec: OffsetSpec | None
    epoch: int = 0
    paused: bool = False
    looking_up: bool = False
    lost: bool = False
    served: int = 0
    """When it brought data last, as a number that grows with each answer; 0 is never."""
    high_watermark: int | None = None
    """The end of the log when it was last fetched: the offset after the last record that all replicas have."""


class Positions:
    """The assignment. ``default`` is where partitions without a position begin; None if there is no such place."""

    def __init__(self, default: OffsetSpec | None) -> None:
        self._default = default
        self._places: dict[TopicPartition, Place] = {}
        self._epoch = 0

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places.values())

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        """The partitions, in the order of their assignment."""
        return tuple(self._places)

    def assign(self, starts: Mapping[TopicPartition, int | OffsetSpec | None]) -> None:
        """Replace the assignment. Partitions that stay keep their place, unless a start is given for them."""
        before, self._places = self._places, {}
        for where, start in starts.items():
            kept = before.get(where)
            self._places[where] = kept if kept is not None and start is None else self._place(where, start)

    def _place(self, where: TopicPartition, start: int | OffsetSpec | None) -> Place:
        self._epoch += 1
        if isinstance(start, int):
            return Place(where, start, None, self._epoch)
        return Place(where, None, start if start is not None else self._default, self._epoch)

    def get(self, where: TopicPartition) -> Place | None:
        """The place in a partition, if it is assigned."""
        return self._places.get(where)

    def require(self, where: TopicPartition) -> Place:
        """The place in a partition.

        Raises:
            UsageError: it is not assigned.
        """
        place = self._places.get(where)
        if place is None:
            raise UsageError(f"{where} is not assigned to this consumer; assigned are {some_of(self._places)}")
        return place

    def seek(self, where: TopicPartition, to: int | OffsetSpec) -> None:
        """Go on from another offset; what was fetched or asked before counts no more."""
        place = self.require(where)
        self._epoch += 1
        place.epoch, place.looking_up, place.lost = self._epoch, False, False
        place.position, place.spec = (to, None) if isinstance(to, int) else (None, to)

    def reset(self, place: Place) -> bool:
        """The position is out of the log's range: look the default up again. False if there is no default."""
        if self._default is None:
            return False
        self.seek(place.where, self._default)
        return True

    def is_current(self, place: Place, epoch: int) -> bool:
        """Whether the place is still assigned, and nobody sought elsewhere since ``epoch``."""
        return place.epoch == epoch and self._places.get(place.where) is place

    def to_look_up(self) -> list[Place]:
        """The places without a position that nobody looks up yet."""
        places = self._places.values()
        return [place for place in places if place.position is None and not place.looking_up and not place.lost]


def some_of(partitions: Collection[TopicPartition]) -> str:
    """The names of the first few, and how many more there are."""
    named = [str(one) for one in list(partitions)[:5]]
    return ", ".join(named) + (f" and {len(partitions) - 5} more" if len(partitions) > 5 else "") if named else "none"
