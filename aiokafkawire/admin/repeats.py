"""Refusals of a change that an attempt before, which has no answer, may have made already."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from ..errors import BrokerError, ConnectionLost, ErrorCode, KafkaError, NotController, RequestTimeout, broker_error

__all__ = ("Repeats", "is_made_before")

V = TypeVar("V")


class Repeats:
    """The attempts of a call that have no answer. Brokers may have made the change, and refuse it when it is repeated.

    Args:
        refusals: the errors of a change that is made already.
    """

    def __init__(self, *refusals: type[BrokerError]) -> None:
        self._refusals = refusals
        self._last: KafkaError | None = None

    def unanswered(self, error: KafkaError) -> None:
        """Note that an attempt has ended without an answer, or by a controller that has lost its office meanwhile."""
        self._last = error

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note a retriable error that the body raises: the controller may make the change after such an answer."""
        try:
            yield
        except BrokerError as error:
            if error.retriable:
                self.unanswered(error)
            raise

    def explained(self, outcome: V) -> V | BrokerError:
        """Return an outcome. If it may be a refusal of this call's own change, say so, with the cause."""
        if self._last is None or not isinstance(outcome, self._refusals):
            return outcome
        assert isinstance(outcome, BrokerError)
        detail = str(outcome).partition(f": {ErrorCode(outcome.code).name}: ")[0].rstrip(".")
        why = f"an attempt before has no answer and may have done it: {self._last}"
        explained = broker_error(outcome.code, f"{detail} ({why})")
        explained.broker_message = outcome.broker_message
        explained.__cause__ = self._last
        return explained

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Raise the error of the body as :meth:`explained` returns it."""
        try:
            yield
        except BrokerError as error:
            raise self.explained(error)  # noqa: B904  # it has its cause


def is_made_before(error: KafkaError) -> bool:
    """Return whether an error may be the refusal of a change that an attempt before of the same call has made."""
    return isinstance(error, BrokerError) and isinstance(
        error.__cause__, ConnectionLost | RequestTimeout | NotController
    )
