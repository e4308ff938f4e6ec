"""The pictures of docs/ show what the program shows today."""

from __future__ import annotations

import pytest
from support.pictures import PICTURES, PLOTS, draw, words


@pytest.mark.thorough
@pytest.mark.parametrize("name", PICTURES)
def test_the_script_draws_the_pictures_of_the_docs(name: str) -> None:
    drawn = words(draw(name))
    # Other releases of Textual and rich draw the same text elsewhere.
    assert "".join(drawn).split() == "".join(words((PLOTS / name).read_text())).split(), (
        "python tests/support/pictures.py draws them again"
    )
    assert {"top.svg": "sessionizer", "top-group.svg": "payouts-2", "shell.svg": "PARTITION"}[name] in "".join(drawn)
