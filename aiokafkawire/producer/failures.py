"""What flush has to report: records that failed, and that nobody awaited."""

from typing import Final

from ..errors import DeliveryFailed, KafkaError
from .result import BatchResult

__all__ = ("Failures",)

_KEPT: Final = 100


class Failures:
    """Failed batches; beyond the kept ones only how many records, and the last error."""

    def __init__(self) -> None:
        self._results: list[BatchResult] = []
        self._more = 0
        self._last: KafkaError | None = None

    def add(self, result: BatchResult) -> None:
        """A batch has failed."""
        if len(self._results) >= _KEPT:
            self._results = [failed for failed in self._results if failed.unawaited]
        if len(self._results) < _KEPT:
            self._results.append(result)
        elif result.unawaited:
            self._more += result.unawaited
            self._last = result.error

    def take(self) -> DeliveryFailed | None:
        """All since it was last called, as one error; None if somebody heard of each."""
        results, self._results = self._results, []
        count, self._more = self._more, 0
        last, self._last = self._last, None
        errors = [] if last is None else [last]
        for result in reversed(results):
            if result.error is not None and result.unawaited:
                errors.insert(0, result.error)
                count += result.unawaited
        return DeliveryFailed(errors, count) if errors else None
