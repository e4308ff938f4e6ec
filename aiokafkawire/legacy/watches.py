"""Which watches are set, and whom an event concerns: each is told once."""

from collections.abc import Callable
from typing import Final, TypeAlias

from .jute import EventType, Op, SetWatches, WatchEvent

__all__ = ("Watch", "Watches")

Watch: TypeAlias = Callable[[WatchEvent], None]
"""Hears of one event, in the middle of other work: it should set something, and return."""

_DATA, _EXIST, _CHILD = "data", "exist", "child"
_CONCERNS: Final = {
    EventType.CREATED: (_DATA, _EXIST),
    EventType.DELETED: (_DATA, _EXIST, _CHILD),
    EventType.DATA_CHANGED: (_DATA, _EXIST),
    EventType.CHILDREN_CHANGED: (_CHILD,),
}


class Watches:
    """The watches of a session, by what they look at and by path."""

    def __init__(self) -> None:
        self._set: dict[str, dict[str, list[Watch]]] = {_DATA: {}, _EXIST: {}, _CHILD: {}}

    def add(self, op: Op, path: str, watch: Watch, *, found: bool) -> None:
        """A server has set one: with ``found`` there is a node, so without one it waits for its creation.

        The same one for the same thing, given again, is set once.
        """
        kind = _CHILD if op is Op.GET_CHILDREN else _DATA if found else _EXIST
        given = self._set[kind].setdefault(path, [])
        if watch not in given:
            given.append(watch)

    def tell(self, event: WatchEvent) -> None:
        """Tell all whom an event concerns, which are then no longer set."""
        concerned = [watch for kind in _CONCERNS.get(event.type, ()) for watch in self._set[kind].pop(event.path, ())]
        # One that was given twice, for the data and for the children, is told of the deletion once.
        for watch in dict.fromkeys(concerned):
            watch(event)

    def expire(self) -> None:
        """The session is over: tell everybody."""
        for paths in self._set.values():
            told = [(path, watch) for path, watches in paths.items() for watch in watches]
            paths.clear()
            for path, watch in told:
                watch(WatchEvent(EventType.NONE, path))

    def again(self, root: str = "") -> SetWatches | None:
        """What a new connection has to know, with ``root`` before every path; None for nothing."""
        lists = [sorted(root + path if path != "/" else root or "/" for path in paths) for paths in self._set.values()]
        return SetWatches(*lists) if any(lists) else None
