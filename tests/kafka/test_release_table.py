"""The page that the matrix writes."""

from __future__ import annotations

from pathlib import Path

from support.release_table import ReleaseTable


def test_the_page_is_written_once_every_cell_was_found(tmp_path: Path) -> None:
    page, table = tmp_path / "page.md", ReleaseTable(["1.0", "2.0"])
    assert not table.write(page)
    table.add("Codec zstd", "1.0", "no")
    assert not table.write(page)
    assert not page.exists()
    table.add("Codec zstd", "2.0", "yes")
    assert table.write(page)
    assert "|  | 1.0 | 2.0 |\n| --- | --- | --- |\n| Codec zstd | no | yes |\n" in page.read_text()
