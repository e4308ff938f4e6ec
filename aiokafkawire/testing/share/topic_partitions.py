"""A topic as a share group's coordinator sees it."""

from uuid import UUID

import attrs

__all__ = ("SubscribedTopic",)


@attrs.frozen
class SubscribedTopic:
    """An existing topic, with the number of its partitions."""

    name: str
    topic_id: UUID
    partitions: int
