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
    for producer in live._producers.all():
        yield "transactional_id", producer._config.transactional_id
    for consumer in live._consumers.all():
        yield "client_rack", consumer._config.client_rack
        yield "group_id", consumer._config.group_id
        yield "group_instance_id", consumer._config.group_instance_id
        if consumer._commits is not None:
            yield "group_member_id", consumer._commits.group.member_id
    for member in live._share_consumers.all():
        yield "client_rack", member._config.client_rack
        yield "group_id", member._config.group_id
        yield "group_member_id", member._member.machine.group.member_id
