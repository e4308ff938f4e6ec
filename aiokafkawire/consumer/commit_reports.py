"""Reports a consumer's commits to the observers."""

from collections.abc import Iterator, Sized
from contextlib import contextmanager

from ..cluster.cluster import Cluster
from ..errors import KafkaError
from ..observe import CommitEnded

__all__ = ("reported_commit",)


@contextmanager
def reported_commit(cluster: Cluster, group_id: str, offsets: Sized) -> Iterator[None]:
    """Report the commit that the body makes; ``offsets`` are those that it has committed at its end."""

    def report(error: KafkaError | None) -> None:
        if offsets and (notify := cluster.observers.commit_ended) is not None:
            seconds = cluster.runtime.now() - began
            notify(CommitEnded(group=group_id, partitions=len(offsets), seconds=seconds, error=error))

    began = cluster.runtime.now()
    try:
        yield
    except KafkaError as error:
        report(error)
        raise
    report(None)
