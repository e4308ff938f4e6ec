"""The failures that flush() reports: records that failed, and that no caller awaited."""

from typing import Final

from ..errors import DeliveryFailed, KafkaError
from .batch import BatchResult

__all__ = ("UnreportedFailures",)

_MAX_KEPT: Final = 100


class UnreportedFailures:
    """The results of up to a hundred failed batches; beyond these, only the number of records and the last error."""

    def __init__(self) -> None:
        self._results: list[BatchResult] = []
        self._more = 0
        self._last: KafkaError | None = None

    def add(self, result: BatchResult) -> None:
        """Add the result of a failed batch."""
        if len(self._results) >= _MAX_KEPT:
            self._results = [failed for failed in self._results if failed.unawaited]
        if len(self._results) < _MAX_KEPT:
            self._results.append(result)
        elif result.unawaited:
            self._more += result.unawaited
            self._last = result.error

    def take(self) -> DeliveryFailed | None:
        """Return the failures since the last call as one error; None if callers awaited all failed records."""
        results, self._results = self._results, []
        count, self._more = self._more, 0
        last, self._last = self._last, None
        errors = [] if last is None else [last]
        for result in reversed(results):
            if result.error is not None and result.unawaited:
                errors.insert(0, result.error)
                count += result.unawaited
        return DeliveryFailed(errors, count) if errors else None
