"""Runs of one seed, in whichever process."""

import traceback
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from aiokafkawire.testing.simulation import Run
from aiokafkawire.testing.virtual.study import Study, studying

from . import (
    admin,
    groups,
    process,
    processing,
    recreated,
    rolling,
    scenario,
    share,
    share_process,
    subscriptions,
    transactions,
)
from .quick_loop import quick_loop

__all__ = ("RUN", "TOLD", "Outcome", "replay", "run_seed")

RUN: Mapping[str, Callable[..., Run[Any]]] = {
    "plain": scenario.run,
    "transactions": transactions.run,
    "groups": groups.run,
    "mixed": groups.run_mixed,
    "consumer_groups": groups.run_consumer_protocol,
    "orderly_groups": groups.run_orderly,
    "processing": processing.run,
    "consumer_processing": processing.run_consumer_protocol,
    "process": process.run,
    "transforms": processing.run_transforms,
    "share": share.run,
    "share_process": share_process.run,
    "recreated": recreated.run,
    "subscriptions": subscriptions.run,
    "rolling": rolling.run,
    "admin": admin.run,
}
TOLD: Mapping[str, Callable[[Run[Any]], str]] = {
    "plain": scenario.told,
    "transactions": transactions.told,
    "groups": groups.told,
    "mixed": groups.told,
    "consumer_groups": groups.told,
    "orderly_groups": groups.told,
    "processing": processing.told,
    "consumer_processing": processing.told,
    "process": process.told,
    "transforms": processing.told,
    "share": share.told,
    "share_process": share_process.told,
    "recreated": recreated.told,
    "subscriptions": subscriptions.told,
    "rolling": rolling.told,
    "admin": admin.told,
}


class Outcome(NamedTuple):
    """What a run of one seed came to; `error` is its traceback if it failed."""

    seed: int
    error: str
    told: str
    seconds: float
    faults: Counter[str]


def replay(name: str, seed: int, faults: Collection[str]) -> Run[Any]:
    """Run a scenario with a seed, but only with these of its faults; raise what the run raises."""
    with studying(Study(faults)):
        return RUN[name](seed)


def run_seed(name: str, seed: int) -> Outcome:
    """Run a scenario with a seed; whatever it raises is in the outcome."""
    try:
        with quick_loop():
            done = RUN[name](seed)
    except Exception as error:
        return Outcome(seed, "".join(traceback.format_exception(error, limit=-5)), "", 0.0, Counter())
    return Outcome(seed, "", TOLD[name](done), done.seconds, done.trace.faults)
