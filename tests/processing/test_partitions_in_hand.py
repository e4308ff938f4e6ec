"""How much is read ahead of what is committed."""

from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.processing.commit_metadata import decode_metadata
from aiokafkawire.processing.partitions_in_hand import PartitionsInHand, offsets_of
from aiokafkawire.types import OffsetAndMetadata, TopicPartition

PARTITIONS = [TopicPartition("orders", index) for index in range(8)]
FIRST = PARTITIONS[0]


@given(st.integers(1, 200), st.integers(1, 8), st.randoms(use_true_random=False))
def test_no_more_than_the_limit_is_in_hand_and_reading_goes_on_after_commits(
    limit: int, count: int, random: object
) -> None:
    partitions, offsets = PartitionsInHand(limit), dict.fromkeys(PARTITIONS[:count], 0)
    for partition in offsets:
        partitions.assign(partition)
    for _ in range(50):
        for _ in range(50):
            readable = [partition for partition in offsets if partition not in partitions.full()]
            if not readable:
                break
            partition = random.choice(readable)  # type: ignore[attr-defined]
            for _ in range(partitions.read_limit):
                partitions[partition].add(offsets[partition])
                offsets[partition] += 1
            assert partitions.in_hand <= limit
        commits = [
            partitions.finish(partition, range(end - partitions[partition].in_hand, end))
            for partition, end in offsets.items()
        ]
        assert any(commits)
        partitions.committed(partitions.progress())
        assert partitions.in_hand == sum(partitions[partition].uncommitted for partition in offsets) == 0
        assert not partitions.full()


def test_a_commit_counts_for_the_assignment_that_it_was_made_for() -> None:
    partitions = PartitionsInHand(10)
    partitions.assign(FIRST)
    partitions[FIRST].add(0)
    partitions[FIRST].finish(0)
    progress = partitions.progress()
    assert offsets_of(progress) == {FIRST: OffsetAndMetadata(1)}
    partitions.revoke([FIRST])
    partitions.committed(progress)
    partitions.assign(FIRST)
    partitions[FIRST].add(0)
    partitions.committed(progress)
    assert partitions.in_hand == 1
    assert partitions.progress([PARTITIONS[1]]) == {}


def test_metadata_becomes_shorter_after_a_refusal_and_none_in_the_end() -> None:
    partitions = PartitionsInHand(4_000)
    partitions.assign(FIRST)
    tracker = partitions[FIRST]
    for offset in range(4_000):
        tracker.add(offset)
    for offset in range(1, 4_000, 2):
        tracker.finish(offset)
    lengths = []
    while (commit := partitions.progress()[FIRST].commit).metadata:
        lengths.append(len(commit.metadata))
        assert decode_metadata(0, commit.metadata)
        partitions.shorten_metadata()
    assert 4_000 < lengths[0] <= 4_096
    assert len(lengths) == 7
    assert commit == OffsetAndMetadata(0)
