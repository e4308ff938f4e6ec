"""Records in hand belong to the membership under which they were handed out, in consumer groups (KIP-848) too."""

from __future__ import annotations

import pytest
from contract.conftest import Where
from contract.groups import test_in_hand
from contract.groups.test_in_hand import (
    test_a_commit_of_what_was_taken_away_fails,
    test_a_listener_may_commit_in_a_task_of_its_own_and_may_not_unsubscribe,
    test_a_seek_does_not_hide_that_records_in_hand_were_taken_away,
    test_a_transaction_that_takes_records_twice_aborts_if_the_first_were_taken_away,
    test_a_transaction_with_what_was_taken_away_aborts,
    test_automatic_commits_leave_out_what_was_taken_away,
    test_group_metadata_is_of_the_membership_that_got_the_records,
)
from support.readers import SERVED

__all__ = (
    "test_a_commit_of_what_was_taken_away_fails",
    "test_a_listener_may_commit_in_a_task_of_its_own_and_may_not_unsubscribe",
    "test_a_seek_does_not_hide_that_records_in_hand_were_taken_away",
    "test_a_transaction_that_takes_records_twice_aborts_if_the_first_were_taken_away",
    "test_a_transaction_with_what_was_taken_away_aborts",
    "test_automatic_commits_leave_out_what_was_taken_away",
    "test_group_metadata_is_of_the_membership_that_got_the_records",
)

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]


@pytest.fixture
async def cluster(quick_cluster: Where) -> Where:
    return quick_cluster


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the coordinator assign."""
    monkeypatch.setattr(test_in_hand, "USUAL", SERVED)
