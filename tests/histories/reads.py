"""What must be true of readers that read whole logs."""

from collections.abc import Iterator, Mapping, Sequence

from .anomalies import Anomaly, Kind
from .events import LogFound, Partition, ReaderOpened, RecordRead, Value, shown
from .index import Index

__all__ = ("check_reads",)


def check_reads(index: Index) -> Iterator[Anomaly]:
    """Check that every reader has read every record of its partitions once, in the order of the offsets."""
    for name, reader in index.readers.items():
        logs = index.committed_logs if reader.is_committed else index.logs
        for partition in reader.partitions:
            reads = index.reads.get(name, {}).get(partition, [])
            log = logs.get(partition) or LogFound(partition, (), is_committed=reader.is_committed)
            yield from _order(reads)
            yield from _contents(reads, log, index.logs)
            yield from _unseen(reader, reads, log)


def _order(reads: Sequence[RecordRead]) -> Iterator[Anomaly]:
    """Find records that were read again, or behind later ones."""
    met: dict[int, RecordRead] = {}
    last: RecordRead | None = None
    for read in reads:
        again = met.setdefault(read.offset, read)
        if again is not read:
            told = f"{read.reader} has read {read.partition}:{read.offset} twice"
            yield Anomaly(Kind.DUPLICATE, told, (again, read))
        elif last is not None and read.offset < last.offset:
            told = f"{read.reader} has read {read.partition}:{read.offset} behind {last.offset}"
            yield Anomaly(Kind.REORDER, told, (last, read))
        else:
            last = read


def _contents(reads: Sequence[RecordRead], log: LogFound, all_logs: Mapping[Partition, LogFound]) -> Iterator[Anomaly]:
    """Find records that are others in the log, or that readers of committed records must not see."""
    values: dict[int, Value] = dict(log.records)
    for read in reads:
        if read.offset in values and values[read.offset] == read.value:
            continue
        written = all_logs.get(read.partition)
        if read.offset not in values and written is not None and (read.offset, read.value) in written.records:
            told = f"{read.reader} has read {read.partition}:{read.offset} {shown(read.value)}, which is not committed"
            yield Anomaly(Kind.ABORTED_READ, told, (read, log.only((read.offset,))))
        else:
            told = (
                f"{read.reader} has read {shown(read.value)} at {read.partition}:{read.offset}, and that is not there"
            )
            yield Anomaly(Kind.PHANTOM, told, (read, log.only((read.offset,))))


def _unseen(reader: ReaderOpened, reads: Sequence[RecordRead], log: LogFound) -> Iterator[Anomaly]:
    offsets = {read.offset for read in reads}
    for offset, value in log.records:
        if offset not in offsets:
            told = f"{reader.reader} has not read {log.partition}:{offset} {shown(value)}"
            around = next((read for read in reads if read.offset > offset), None)
            yield Anomaly(Kind.UNSEEN_RECORD, told, (reader, log.only((offset,)), *((around,) if around else ())))
