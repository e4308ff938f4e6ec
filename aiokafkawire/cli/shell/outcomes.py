"""Prints what became of each of the resources that a command reads or changes."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio

from ...admin.outcomes import Outcomes, results_of
from ...errors import AdminError, KafkaError, UnsupportedVersion, UsageError
from ..error_text import error_text
from .output import Columns, note, print_rows
from .session import Session

__all__ = (
    "call_in_turn",
    "note_errors",
    "partial_results",
    "print_found",
    "print_outcomes",
    "results_of_each",
    "saying_what_is_unknown",
)

K = TypeVar("K")
V = TypeVar("V")


async def partial_results(
    resources: Collection[K], call: Awaitable[Mapping[K, V] | None]
) -> tuple[Mapping[K, V], Mapping[K, KafkaError]]:
    """Return the results and the errors of a call of the admin for resources, by resource.

    Raises:
        UsageError: an argument is wrong.
        UnsupportedVersion: the brokers are too old for the call.
        KafkaError: the call failed for a reason that is not one resource's.
    """
    try:
        return await call or {}, {}
    except AdminError as some:
        return some.results, some.errors
    except (UsageError, UnsupportedVersion):
        raise
    except KafkaError as error:
        if len(resources) != 1:
            raise
        return {}, dict.fromkeys(resources, error)


def note_errors(errors: Iterable[KafkaError]) -> int:
    """Print a line for each error to standard error, and return the exit status.

    An error that several resources share is printed once.
    """
    distinct = {id(error): error for error in errors}
    for error in distinct.values():
        note(f"aiokafkawire: {error_text(error)}")
    return 1 if distinct else 0


def print_found(
    session: Session, columns: Columns, rows: Sequence[Mapping[str, Any]], errors: Collection[KafkaError]
) -> int:
    """Print rows, and a line for each error; no headings if there are only errors. Return the exit status."""
    if rows or not errors:
        print_rows(session.options, columns, rows)
    return note_errors(errors)


@contextmanager
def saying_what_is_unknown() -> Iterator[None]:
    """Print a line if Ctrl-C or SIGTERM cancels the calls in the body: brokers carry out requests that were sent."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        note("aiokafkawire: interrupted before the answer, so it is not known what is done")
        raise


async def results_of_each(call: Awaitable[Mapping[K, V]]) -> tuple[Mapping[K, V], int]:
    """Await a call about several resources; print a line for each error; return the results and the exit status.

    Raises:
        KafkaError: the call failed as a whole, or for the only resource.
    """
    try:
        return await call, 0
    except AdminError as some:
        return some.results, note_errors(some.errors.values())


async def call_in_turn(what: str, resources: Iterable[K], call: Callable[[K], Awaitable[V]]) -> dict[K, V]:
    """Make a call for each resource, one after the other; return the results.

    Args:
        what: the calls, for the error's message, such as "renewing tokens".
        resources: what to make a call for.
        call: the call; an error of one resource does not keep it from the others.

    Raises:
        KafkaError: the error of the only resource.
        AdminError: some of several resources have errors; the others are in its ``results``.
        UsageError: an argument of the first call is wrong.
    """
    outcomes: Outcomes[K, V] = {}
    for resource in resources:
        try:
            outcomes[resource] = await call(resource)
        except KafkaError as error:
            if isinstance(error, UsageError) and not outcomes:
                raise
            outcomes[resource] = error
    return results_of(what, outcomes)


async def print_outcomes(
    session: Session,
    columns: Columns,
    resources: Mapping[K, Mapping[str, Any]],
    change: Awaitable[Any],
    *,
    done: str | Callable[[Any], Mapping[str, Any]],
    accepted: type[KafkaError] | None = None,
    skipped: str = "",
) -> int:
    """Change resources; print a row for each that is changed and a line for each error; return the exit status.

    If Ctrl-C or SIGTERM ends it before the answer, a line says that it is not known what is done.

    Args:
        session: the client and the options.
        columns: the columns of a row, such as ``("topic",)``; the outcome is one more.
        resources: what is changed, as the admin's errors name it, with the row of each.
        change: the call of the admin that changes all of them.
        done: the outcome of a resource that is changed, such as "deleted"; or a function that gets the admin's result
            for the resource, and returns the "outcome" and other values of its row.
        accepted: the error that is no failure.
        skipped: the outcome of a resource with this error.

    Raises:
        UsageError: an argument is wrong.
        KafkaError: nothing is changed, for a reason that is not one resource's.
    """
    with saying_what_is_unknown():
        results, errors = await partial_results(resources, change)
    rows: list[dict[str, Any]] = []
    failures: list[KafkaError] = []
    for resource, row in resources.items():
        failure = errors.get(resource)
        if failure is None:
            rows.append({**row, **({"outcome": done} if isinstance(done, str) else done(results.get(resource)))})
        elif accepted is not None and isinstance(failure, accepted):
            rows.append({**row, "outcome": skipped})
        else:
            failures.append(failure)
    return print_found(session, (*columns, "outcome"), rows, failures)
