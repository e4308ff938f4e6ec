"""Seeds that once left a producer of no use: its user was cancelled in a commit, which was refused afterwards."""

import pytest
from histories.transactions import End

from . import transactions


@pytest.mark.slow
@pytest.mark.parametrize("seed", [30364, 30890])
def test_a_commit_that_was_given_up_and_is_refused_is_aborted(seed: int) -> None:
    assert transactions.run(seed).value.ends[End.COMMITTED]
