"""docs/releases.md: what the matrix has found of every release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ("HEAD", "NOTES", "PAGE", "ReleaseTable")

PAGE = Path(__file__).parents[2] / "docs" / "releases.md"

HEAD = """\
# Releases

What works with each release of Apache Kafka. `nox -s matrix` boots every one of them and writes this page: a cell is
what was found there, its test fails where that is not what is expected, and the run fails where the page was another.
"no" is a feature that the brokers lack: it is refused before anything is sent, by UnsupportedVersion with the release
that brought it.

"""
NOTES = """
- *Versions told*: brokers tell by ApiVersions what they speak. To that question 0.8 closes the connection, and 0.9 says
  nothing: such a broker is recognised by what else it answers, once for its address, and again after its connections
  broke. With 0.9 that takes two seconds, twice `api_version_request_timeout_ms`: who is silent once may be a newer one
  behind a bad network.
- *Timestamps*, *headers*: records travel in message sets of magic 0 up to 0.9 and of magic 1 in 0.10, and in record
  batches since. A record with headers for an older broker fails alone, and those beside it are sent.
- *Idempotence*: that is with `enable_idempotence=True`; where it is only the default, records go without.
- *Offsets by time*: of single records, or of segments alone, by when their files were last written: then the offset may
  be a whole segment too early, and it carries no timestamp.
- *Codec lz4*: UnsupportedVersion names the release of the broker and the codec, before anything is sent.
- *Commits of who assigns*: 0.8.1 stores committed offsets in ZooKeeper, without metadata. 0.8.0 stores none: open the
  consumer without `group_id`, and store its offsets in your application.
- *Commit retention*: `commit(retention_ms=...)`.
- *Groups of two*: brokers before 0.9 have no group membership. A consumer that subscribes there raises
  UnsupportedVersion at its first read: `assign()` partitions instead.
- *Metadata makes no topic*: with `allow_auto_create_topics=False`, the default, brokers before 0.11 are asked for all
  topics, since they would make those that are named.
"""


class ReleaseTable:
    """Gathers cells; complete, it can be written down."""

    def __init__(self, releases: Sequence[str]) -> None:
        self._releases = releases
        self._rows: dict[str, dict[str, str]] = {}

    def add(self, feature: str, release: str, cell: str) -> None:
        """What was found."""
        self._rows.setdefault(feature, {})[release] = cell

    def text(self) -> str | None:
        """The page; None while a cell is missing."""
        if not self._rows or any(set(row) != set(self._releases) for row in self._rows.values()):
            return None
        head = ["", *self._releases]
        lines = [head, ["---"] * len(head)]
        lines += [[feature, *(row[release] for release in self._releases)] for feature, row in self._rows.items()]
        return HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines) + NOTES

    def write(self, page: Path = PAGE) -> bool:
        """Write the page, if every cell was found; whether that has changed it."""
        text = self.text()
        if text is None or (page.exists() and page.read_text() == text):
            return False
        page.write_text(text)
        return True
