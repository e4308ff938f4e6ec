"""The summary of a call of ``Client.process``."""

import attrs

__all__ = ("ProcessSummary",)


@attrs.frozen
class ProcessSummary:
    """The work that a call of :meth:`Client.process` has done so far, and what it is doing."""

    processed: int = 0
    """The number of records that the handler has finished."""
    retried: int = 0
    """How often the handler was called again after a failure."""
    deferred: int = 0
    """The number of records that were written to a retry topic; one that goes through several counts each time."""
    dead_lettered: int = 0
    """The number of records that were written to the dead-letter topic."""
    rejected: int = 0
    """The number of records that the share group hands out no more, since the handler has raised Reject."""
    undeserializable: int = 0
    """The number of records that were skipped because they cannot be deserialized, with ``on_error="skip"``."""
    skipped: int = 0
    """The number of records that an earlier owner of their partition had finished, and that were not handled again;
    and of those in retry topics that are another group's."""
    waiting: int = 0
    """The number of records that were read from retry topics, and are not due yet; more may be in the topics."""
    in_hand: int = 0
    """The number of records that were read and are not committed, or not acknowledged."""
    running: int = 0
    """The number of calls of the handler that are running."""
    longest: float = 0.0
    """The seconds that the longest of them has been running."""
