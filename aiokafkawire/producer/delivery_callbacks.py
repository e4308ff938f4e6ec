"""Calls what users have given to ``Delivery.add_callback``, and keeps its exceptions away from the producer."""

import inspect

from ..argument_checks import shown
from ..errors import KafkaError, UsageError
from ..event_log import EventLog
from ..records.delivery_result import DeliveryCallback
from ..types import RecordMetadata

__all__ = ("call_back", "check_callback")

_log = EventLog("aiokafkawire.producer")


def check_callback(callback: object) -> None:
    """Raise UsageError unless the object is a function that does not wait."""
    if not callable(callback) or inspect.iscoroutinefunction(callback):
        raise UsageError(f"a callback must be a plain function of the metadata and the error, got {shown(callback)}")


def call_back(callback: DeliveryCallback, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
    """Call a user's function with the outcome of a record, and log the exception that it raises."""
    try:
        callback(metadata, error)
    except BaseException as raised:
        if isinstance(raised, (KeyboardInterrupt, SystemExit)):
            raise
        # Also a CancelledError: it would end the task that handles the responses of all batches.
        text = {"callback": callback}
        _log.error("the callback %(callback)r of a delivery has failed", text=text, error=raised, exc_info=raised)
