"""The page that the matrix writes."""

from __future__ import annotations

from pathlib import Path

from support.kafka_releases import RELEASES
from support.release_table import HEAD, NOTES, PAGE, ReleaseTable


def test_the_page_is_written_once_every_cell_was_found(tmp_path: Path) -> None:
    page, table = tmp_path / "page.md", ReleaseTable(["1.0", "2.0"])
    assert not table.write(page)
    table.add("Codec zstd", "1.0", "no")
    assert not table.write(page)
    assert not page.exists()
    table.add("Codec zstd", "2.0", "yes")
    assert table.write(page)
    assert "|  | 1.0 | 2.0 |\n| --- | --- | --- |\n| Codec zstd | no | yes |\n" in page.read_text()
    assert not table.write(page), "the same is found again"
    table.add("Codec zstd", "2.0", "no")
    assert table.write(page)


def test_the_page_has_every_release_and_the_words_of_today() -> None:
    page = PAGE.read_text()
    assert page.startswith(f"{HEAD}|  | {' | '.join(RELEASES)} |\n")
    assert page.endswith(NOTES)
    rows = [line.strip("|\n").split(" | ") for line in page.splitlines() if line.startswith("|")]
    assert {len(row) for row in rows} == {1 + len(RELEASES)}
    assert len(rows) > 20
