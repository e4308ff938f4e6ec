"""Runs a scenario with a mutated client, seed by seed, until a run fails; in this process."""

import sys
from collections.abc import Iterable
from importlib import import_module

import attrs
from simulation.failures import TakesTooLong, causes, limited

from .mutation import Mutation, import_mutated

__all__ = ("Caught", "run_mutated")

_SECONDS_OF_A_SEED = 30
"""The processor's seconds that a run may take; most take two."""
_WORDS = 140
"""The longest description of an error, in the table."""
_LONGEST = 2_000


@attrs.frozen
class Caught:
    """What has found a mutation."""

    by: str
    """The name of an anomaly, or the error of another check; empty if nothing has found it."""
    seed: int
    """The seed of the run that has failed, or of the last run."""
    runs: int
    detail: str = ""


def run_mutated(mutation: Mutation, seeds: Iterable[int]) -> Caught:
    """Run the mutation's scenario with these seeds until a run fails. The client must not be imported yet."""
    import_mutated(mutation)
    run = import_module("simulation.one_seed").RUN[mutation.scenario]
    runs = seed = 0
    for runs, seed in enumerate(seeds, 1):
        try:
            with limited(_SECONDS_OF_A_SEED):
                run(seed)
        except (Exception, TakesTooLong) as error:
            return _caught(error, seed, runs)
    assert f"aiokafkawire.{mutation.module}" in sys.modules, f"{mutation.scenario} does not use {mutation.module}"
    return Caught("", seed, runs)


def _caught(error: BaseException, seed: int, runs: int) -> Caught:
    cause = next(causes(error))
    detail = " ".join(str(cause).split())
    names = getattr(cause, "names", None)
    if names:
        return Caught(", ".join(names), seed, runs, str(cause)[:_LONGEST])
    kind = "" if isinstance(cause, AssertionError) else f"{type(cause).__name__}: "
    return Caught(f"{kind}{detail}"[:_WORDS], seed, runs, str(cause)[:_LONGEST])
