"""What must be true of records that are processed exactly once: their results, and the offsets of their group."""

from collections.abc import Iterator, Mapping, Sequence

from .anomalies import Anomaly, Kind
from .events import SourceFound, Value, shown
from .group_events import OffsetFetched
from .index import Index, Place

__all__ = ("check_results",)


def check_results(index: Index) -> Iterator[Anomaly]:
    """Check that the result of every record of a source is committed once, and the group is at the sources' ends."""
    if not index.sources:
        return
    places = index.places(index.committed_logs.values())
    for source in index.sources:
        yield from _results(index, source, places)
    due = {value for source in index.sources for _, value in source.results}
    for value, found in places.items():
        if value not in due:
            told = f"{shown(value)} counts, and is the result of no record"
            yield Anomaly(Kind.PHANTOM, told, tuple(index.shown_in(found[:1])))
    sources = {source.partition: source for source in index.sources}
    for fetched in index.fetched:
        if fetched.partition in sources:
            yield from _offset(fetched, sources[fetched.partition])


def _results(index: Index, source: SourceFound, places: Mapping[Value, Sequence[Place]]) -> Iterator[Anomaly]:
    for offset, value in source.results:
        found = places.get(value, ())
        if not found:
            told = f"{source.partition}:{offset} does not count"
            missing = (log.without() for log in index.committed_logs.values())
            yield Anomaly(Kind.LOST_WRITE, told, (source.only(offset), *missing))
        elif len(found) > 1:
            told = f"{source.partition}:{offset} counts {len(found)} times"
            yield Anomaly(Kind.DUPLICATE, told, (source.only(offset), *index.shown_in(found[:2])))


def _offset(fetched: OffsetFetched, source: SourceFound) -> Iterator[Anomaly]:
    last = source.results[-1][0] if source.results else -1
    if source.results and fetched.offset <= last:
        told = f"{fetched.group} is at {fetched.offset} in {source.partition}, and {last} counts already"
        yield Anomaly(Kind.OFFSET_REGRESSION, told, (source.only(last), fetched))
    elif fetched.offset > max(source.end, last + 1):
        told = f"{fetched.group} is at {fetched.offset} in {source.partition}, which ends at {source.end}"
        yield Anomaly(Kind.COMMIT_BEYOND_FINISHED, told, (source.only(-1), fetched))
