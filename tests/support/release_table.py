"""The page docs/releases.md: the matrix's results for every release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ("HEAD", "NOTES", "PAGE", "ReleaseTable")

PAGE = Path(__file__).parents[2] / "docs" / "releases.md"

HEAD = """\
# Releases

See which features work with your release of Apache Kafka. `nox -s matrix` boots every release and writes this page: a
cell is the observed result. A test fails if its result is not the expected one, and the run fails if the page differs.
"no" is a feature that the brokers lack: the client raises UnsupportedVersion, with the release that introduced the
feature, before it sends a request.

"""
NOTES = """
- *ApiVersions*: whether brokers answer ApiVersions with the versions that they support. 0.8 closes the connection, and
  0.9 does not answer: the client recognises such a broker by its answers to other requests, once for its address, and
  again after its connections broke. With 0.9 that takes two seconds, twice `api_version_request_timeout_ms`, since a
  broker that does not answer once may be a newer one behind a bad network.
- *Timestamps*, *headers*: the client sends records in message sets of magic 0 up to 0.9 and of magic 1 in 0.10, and in
  record batches since. A record with headers for an older broker fails alone; the other records of its batch are sent.
- *Idempotence*: the cell is for `enable_idempotence=True`; by default the producer sends without it to older brokers.
- *Offsets by time*: brokers find single records, or segments by the last write to their files: then the offset may be a
  whole segment too early, and it has no timestamp.
- *Codec lz4*: UnsupportedVersion names the release of the broker and the codec, before the client sends a request.
- *Commits with assign()*: commits of a consumer that assigns its partitions itself. 0.8.1 stores committed offsets in
  ZooKeeper, without metadata. 0.8.0 stores none: open the consumer without `group_id`, and store its offsets in your
  application.
- *Commit retention*: `commit(retention_ms=...)`.
- *Groups of two*: brokers before 0.9 have no group membership. A consumer that subscribes there raises
  UnsupportedVersion at its first read: `assign()` partitions instead.
- *Metadata creates no topic*: with `allow_auto_create_topics=False`, the default, the client requests the metadata of
  all topics from brokers before 0.11, since they create the topics that a request names.
"""


class ReleaseTable:
    """The cells of the page, written when complete."""

    def __init__(self, releases: Sequence[str]) -> None:
        self._releases = releases
        self._rows: dict[str, dict[str, str]] = {}

    def add(self, feature: str, release: str, cell: str) -> None:
        """Add a result."""
        self._rows.setdefault(feature, {})[release] = cell

    def text(self) -> str | None:
        """Return the page; None while a cell is missing."""
        if not self._rows or any(set(row) != set(self._releases) for row in self._rows.values()):
            return None
        head = ["", *self._releases]
        lines = [head, ["---"] * len(head)]
        lines += [[feature, *(row[release] for release in self._releases)] for feature, row in self._rows.items()]
        return HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines) + NOTES

    def write(self, page: Path = PAGE) -> bool:
        """Write the page if no cell is missing; return whether that changed it."""
        text = self.text()
        if text is None or (page.exists() and page.read_text() == text):
            return False
        page.write_text(text)
        return True
