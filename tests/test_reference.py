"""The pages of docs/ that are made from the code say what the code says."""

import pytest
from support.reference import DOCS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    # If not: python tests/support/reference.py
    assert (DOCS / name).read_text() == PAGES[name]()
