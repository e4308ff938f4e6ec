"""The stalls of partitions as OpenTelemetry's events."""

import time
from typing import Any, Final

from opentelemetry._logs import Logger, SeverityNumber, get_logger

from ..version import __version__
from .attributes import CLIENT_ID, DESTINATION, PARTITION, SCHEMA_URL, SYSTEM

__all__ = ("StallEvents",)

_STALLED: Final = "aiokafkawire.partition.stalled"
_ENDED: Final = "aiokafkawire.partition.stall_ended"


class StallEvents:
    """An observer that emits an event for each stall that begins or ends, through the global logger provider.

    Args:
        client_id: the id of the client that is observed.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._logger: Logger = get_logger("aiokafkawire", __version__, schema_url=SCHEMA_URL)

    def partition_stalled(self, event: Any) -> None:
        """Emit the event of a partition without progress."""
        body = f"{event.lane}: {event.topic}-{event.partition} is stalled: {event.reason}"
        self._emit(_STALLED, event, SeverityNumber.WARN, body)

    def stall_ended(self, event: Any) -> None:
        """Emit the event of the end of a partition's stall."""
        body = f"{event.lane}: {event.topic}-{event.partition} is not stalled any more"
        self._emit(_ENDED, event, SeverityNumber.INFO, body)

    def _emit(self, name: str, event: Any, severity: SeverityNumber, body: str) -> None:
        self._logger.emit(
            timestamp=time.time_ns(),
            event_name=name,
            severity_number=severity,
            body=body,
            attributes={
                SYSTEM: "kafka",
                CLIENT_ID: self._client_id,
                DESTINATION: event.topic,
                PARTITION: str(event.partition),
                "aiokafkawire.stall.duration": event.seconds,
                "aiokafkawire.stall.lane": event.lane,
            },
        )
