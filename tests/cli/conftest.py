"""All verbs that tests run in this process print JSON with the keys of the vocabulary alone."""

import pytest
from support.vocabulary import CHECKED_MODULES, CheckedJson


@pytest.fixture(autouse=True)
def checked_json(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in CHECKED_MODULES:
        monkeypatch.setattr(f"{module}.json", CheckedJson())
