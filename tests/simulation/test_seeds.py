"""The scenarios with a few seeds in every run of the tests; `nox -s thorough` and `nox -s simulate` run more."""

import pytest
from histories.transactions import End
from simulation import (
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
from support.examples import seeds

# The seeds that run always are those that take the least time.
SEEDS = seeds(range(5), 3)
GROUPS = seeds((4, 6, 5), 2)
MIXED = seeds((4, 22, 6), 2)
ORDERLY_GROUPS = seeds((4, 1, 5), 1)
PROCESSING = seeds((0, 3, 4, 1, 2), 3)
PROCESS = seeds((2, 4, 5), 2)
TRANSFORMS = seeds((7, 3, 0), 1)
SHARE = seeds(range(3), 2)
SHARE_PROCESS = seeds((2, 5, 7), 2)
RECREATED = seeds(range(4), 2)
SUBSCRIPTIONS = seeds(range(4), 2)
ROLLING = seeds((0, 1, 2, 3), 1)
ADMIN = seeds(range(40), 5)
# `nox -s simulate` runs more.


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_acknowledged_is_there_once_in_order_and_seen_once(seed: int) -> None:
    done = scenario.run(seed)
    print(scenario.told(done))
    assert done.value.sent
    assert done.value.faults


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_transaction_all_is_seen_or_nothing(seed: int) -> None:
    done = transactions.run(seed)
    print(transactions.told(done))
    assert done.value.ends[End.COMMITTED]
    assert done.value.faults


@pytest.mark.slow
@pytest.mark.parametrize("seed", GROUPS)
def test_a_group_reads_all_and_commits_what_is_finished(seed: int) -> None:
    done = groups.run(seed)
    print(groups.told(done))
    assert done.value.records
    assert done.value.generations
    assert done.value.faults


@pytest.mark.parametrize("seed", MIXED)
def test_a_group_with_members_of_other_clients_reads_all_and_commits_what_is_finished(seed: int) -> None:
    done = groups.run_mixed(seed)
    print(groups.told(done))
    assert done.value.company
    assert done.value.records
    assert done.value.generations
    assert done.value.faults


@pytest.mark.slow
@pytest.mark.parametrize("seed", GROUPS)
def test_a_consumer_group_reads_all_and_commits_what_is_finished(seed: int) -> None:
    done = groups.run_consumer_protocol(seed)
    print(groups.told(done))
    assert done.value.records
    assert done.value.generations
    assert done.value.faults


@pytest.mark.parametrize("seed", ORDERLY_GROUPS)
def test_members_that_leave_in_order_have_committed_what_is_finished(seed: int) -> None:
    done = groups.run_orderly(seed)
    print(groups.told(done))
    assert done.value.records
    assert done.value.generations
    assert not done.value.faults


@pytest.mark.slow
@pytest.mark.parametrize("seed", PROCESSING)
def test_every_record_counts_once_whatever_becomes_of_its_workers(seed: int) -> None:
    done = processing.run(seed)
    print(processing.told(done))
    assert done.value.records


@pytest.mark.parametrize("seed", PROCESS)
def test_every_record_is_handled_in_the_order_of_its_key_whatever_becomes_of_the_members(seed: int) -> None:
    done = process.run(seed)
    print(process.told(done))
    assert done.value.records


@pytest.mark.slow
@pytest.mark.parametrize("seed", TRANSFORMS)
def test_instances_of_a_transform_count_every_record_once_though_some_are_killed(seed: int) -> None:
    done = processing.run_transforms(seed)
    print(processing.told(done))
    assert done.value.records
    assert done.value.faults


@pytest.mark.slow
@pytest.mark.parametrize("seed", SHARE)
def test_a_share_group_finishes_every_record_and_undoes_no_acknowledgement(seed: int) -> None:
    done = share.run(seed)
    print(share.told(done))
    assert done.value.records
    assert done.value.deliveries
    assert done.value.faults


@pytest.mark.slow
@pytest.mark.parametrize("seed", SHARE_PROCESS)
def test_every_record_of_a_share_group_is_handled_or_a_dead_letter_before_it_is_accepted(seed: int) -> None:
    done = share_process.run(seed)
    print(share_process.told(done))
    assert done.value.handled


@pytest.mark.parametrize("seed", SUBSCRIPTIONS)
def test_every_record_of_a_changing_subscription_is_read_and_none_that_is_paused(seed: int) -> None:
    done = subscriptions.run(seed)
    print(subscriptions.told(done))
    assert done.value.read
    assert done.value.changes > done.value.members


@pytest.mark.parametrize("seed", RECREATED)
def test_every_record_of_a_topic_that_was_made_anew_is_read(seed: int) -> None:
    done = recreated.run(seed)
    print(recreated.told(done))
    assert done.value.topics > 1
    assert done.value.left
    assert done.value.faults


@pytest.mark.parametrize("seed", ROLLING)
def test_nothing_is_lost_while_brokers_change_their_release(seed: int) -> None:
    done = rolling.run(seed)
    print(rolling.told(done))
    assert done.value.faults


@pytest.mark.parametrize("seed", ADMIN)
def test_calls_of_admin_clients_end_in_time_with_what_was_answered(seed: int) -> None:
    done = admin.run(seed)
    print(admin.told(done))
    assert done.value.ends
    assert done.value.faults


def test_most_calls_of_admin_clients_are_done_although_brokers_fail() -> None:
    ends = admin.run(1).value.ends
    assert ends["done"] > ends.total() / 2, ends
