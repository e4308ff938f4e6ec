"""Seed 4 of the scenario plain with 1 of its 5 faults.

The nightly run found: duplicate.
"""

from simulation.one_seed import replay

FAULTS = ("chaos 2",)


def test_seed_4_of_plain() -> None:
    replay("plain", 4, FAULTS)
