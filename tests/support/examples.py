"""How many examples and seeds a run tries: a sample in a run of all tests, all in `nox -s thorough`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

__all__ = ("examples", "register_profiles", "sampled", "seeds")

_THOROUGH, _SAMPLE = 100, 25


def register_profiles() -> None:
    """Register hypothesis's profiles, and load the one of a run of all tests."""
    # How long an example takes says more of the machine, and of what else runs there, than of the code.
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("thorough", patient, max_examples=_THOROUGH)
    settings.register_profile("sample", patient, max_examples=_SAMPLE)
    settings.load_profile("sample")


def examples(thorough: int) -> int:
    """Return how many examples hypothesis tries; ``--hypothesis-profile thorough`` has it try this many."""
    return max(10, thorough * settings().max_examples // _THOROUGH)


def sampled(parameters: Iterable[Any], *always: Any) -> list[Any]:
    """Return parameters of a test: ``always`` in every run of all tests, the others with ``-m thorough``."""
    return [one if one in always else pytest.param(one, marks=pytest.mark.thorough) for one in parameters]


def seeds(numbers: Iterable[int], sample: int) -> list[Any]:
    """Return parameters of a test: of these seeds the first few always run, the others with ``-m thorough``."""
    return [
        pytest.param(seed, marks=pytest.mark.thorough) if index >= sample else seed
        for index, seed in enumerate(numbers)
    ]
