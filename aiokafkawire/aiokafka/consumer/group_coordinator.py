"""The name that Faust imports from aiokafka's module of the group coordinator."""

from typing import Final

__all__ = ("OffsetCommitRequest",)


class OffsetCommitRequest:
    """The generation of a consumer outside a group; not a request."""

    DEFAULT_GENERATION_ID: Final = -1
