"""The labels of a client with the metrics that it pushes: those that KIP-714 requires of clients."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .live import LiveClient

__all__ = ("resource_labels",)


def resource_labels(live: "LiveClient") -> dict[str, str]:
    """Return the labels of a client's producers and consumers; leave out those of which they have different values."""
    found: dict[str, set[str]] = {}
    for name, value in _labels(live):
        if value:
            found.setdefault(name, set()).add(value)
    return {name: value for name, values in sorted(found.items()) if len(values) == 1 for value in values}


def _labels(live: "LiveClient") -> Iterator[tuple[str, str | None]]:
    for producer in live.producers():
        yield "transactional_id", producer.transactional_id
    for member in (*live.members(), *live.share_members()):
        yield "client_rack", member.client_rack
        yield "group_id", member.group_id
        yield "group_instance_id", member.group_instance_id
        yield "group_member_id", member.member_id
