"""One run of the nightly series in a process of its own: its outcome and, if it fails, the faults that it takes.

The client is imported only when a run begins, so that a mutation can be applied to it before.
"""

import resource
import traceback
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import attrs
from histories.mutations.every import MUTATIONS
from histories.mutations.mutation import import_mutated

from .failures import TakesTooLong, limited, name_of
from .shrinking import shrink

__all__ = ("NightRun", "mutate", "run_one")


@attrs.define
class NightRun:
    """The outcome of one seed of a scenario."""

    scenario: str
    seed: int
    seconds: float = 0.0
    """Virtual seconds."""
    cpu: float = 0.0
    """Seconds of the processor."""
    faults: Counter[str] = attrs.field(factory=Counter)
    met: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """Transitions and error codes; see coverage.py."""
    failure: str = ""
    error: str = ""
    """The traceback of a failure."""
    happened: int = 0
    """How many faults could be left out."""
    kept: Sequence[str] | None = None
    """The faults without which it does not fail; None if it passed, or was not shrunk."""


def mutate(name: str) -> None:
    """Apply a mutation to the client of this process."""
    import_mutated(next(one for one in MUTATIONS if one.name == name))


def run_one(scenario: str, seed: int, *, seconds: float, tries: int) -> NightRun:
    """Run a seed; if it fails, find the fewest faults with which it fails in the same way, in so many runs at most.

    Each run may take so many of the processor's seconds.
    """
    coverage, run, began = import_module("simulation.coverage"), NightRun(scenario, seed), _cpu()
    study = _new_study()
    with coverage.watching_transitions() as transitions:
        try:
            done = _run(study, scenario, seed, seconds)
            run.seconds, run.faults = done.seconds, done.trace.faults
        except (Exception, TakesTooLong, BaseExceptionGroup) as error:  # a task group wraps TakesTooLong
            run.failure, run.error = name_of(error), "".join(traceback.format_exception(error, limit=-5))
    run.cpu = _cpu() - began
    run.met = transitions + (coverage.codes_of(study.broker) if study.broker is not None else Counter())
    if run.failure:
        run.happened = len(study.happened)

        def fails(kept: Sequence[str]) -> bool:
            return _failure(_new_study(kept), scenario, seed, seconds) == run.failure

        run.kept = shrink(study.happened, fails, tries=tries)
    return run


def _new_study(kept: Sequence[str] | None = None) -> Any:
    return import_module("aiokafkawire.testing.virtual.study").Study(kept)


def _run(study: Any, scenario: str, seed: int, seconds: float) -> Any:
    run = import_module("simulation.one_seed").RUN[scenario]
    quick_loop = import_module("simulation.quick_loop").quick_loop
    with limited(seconds), quick_loop(), import_module("aiokafkawire.testing.virtual.study").studying(study):
        return run(seed)


def _failure(study: Any, scenario: str, seed: int, seconds: float) -> str:
    try:
        _run(study, scenario, seed, seconds)
    except (Exception, TakesTooLong, BaseExceptionGroup) as error:
        return name_of(error)
    return ""


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
