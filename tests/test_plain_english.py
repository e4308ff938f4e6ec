"""Docstrings, comments and documents keep to plain English."""

from pathlib import Path

import pytest
from support.plain_english import check, files_under

ROOT = Path(__file__).parent.parent
ROOTS = ("aiokafkawire", "docs", "examples", "benchmarks", "README.md")


def test_readers_stumble_over_nothing() -> None:
    findings = [finding for path in files_under(*(ROOT / root for root in ROOTS)) for finding in check(path)]
    assert findings == []


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ('def f():\n    """What is committed."""\n', "begin with a verb"),
        ('def f():\n    """Return the offsets. Who asks again gets them again."""\n', "name the subject"),
        ('"""What is due."""\n', "name the subject"),
        ("x = 1  # nobody was told\n", "use a standard verb"),
    ],
)
def test_each_rule_finds_what_it_is_for(tmp_path: Path, source: str, rule: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert rule in {finding.rule for finding in check(path)}


def test_questions_code_and_properties_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        'class A:\n    @property\n    def size(self):\n        """The size in bytes. What is it for? See ``told``."""\n'
    )
    assert check(path) == []
