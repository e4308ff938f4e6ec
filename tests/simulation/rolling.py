"""Rolling upgrades and downgrades: brokers that crash restart as another release of Kafka, under load.

A seed runs the plain scenario, transactions, or a group of either protocol, with the checks of that scenario.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from aiokafkawire.testing.simulation import Run

from . import groups, scenario, transactions

__all__ = ("run", "told")

_RUNS: Final = (scenario.run, transactions.run, groups.run, groups.run_consumer_protocol)
_TOLD: Final[Mapping[type[Any], Callable[[Run[Any]], str]]] = {
    scenario.Outcome: scenario.told,
    transactions.Outcome: transactions.told,
    groups.Outcome: groups.told,
}
_PAIRS: Final = (("3.3", "3.9"), ("3.9", "4.0"), ("3.9", "4.3"), ("4.0", "4.1"), ("4.1", "4.3"))
"""The releases of a cluster: it begins with the older one. In the end it may be at one of them, or at both."""


def run(seed: int, *, keep: int = 2_000) -> Run[Any]:
    """One run. Raises as the scenario whose turn it is."""
    chosen = _RUNS[seed % len(_RUNS)]
    pairs = [pair for pair in _PAIRS if chosen is not groups.run_consumer_protocol or pair[0] >= "4.0"]
    return chosen(seed, keep=keep, releases=Random(f"{seed}/releases").choice(pairs))


def told(done: Run[Any]) -> str:
    """One line on a run."""
    return _TOLD[type(done.value)](done)
