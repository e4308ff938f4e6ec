"""The certificates of these tests."""

import pytest
from support.securing import Papers, make_papers


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return make_papers(tmp_path_factory.mktemp("papers"))
