"""The Java programs of the benchmarks fit the newest kafka-clients."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.examples import sampled
from support.needing import require

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.java import CompilationFailed, compiled, missing_java
from benchmarks.machine import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.kafka]

PROGRAMS = sorted((ROOT / "benchmarks").rglob("*.java"))


@pytest.mark.parametrize("program", sampled(PROGRAMS, PROGRAMS[-1]), ids=lambda path: path.stem)
def test_programs_compile_with_apache_kafka(program: Path, tmp_path: Path) -> None:
    require(missing_java())
    assert compiled(program, tmp_path)[-1] == program.stem
    assert (tmp_path / f"{program.stem}.class").exists()


def test_what_the_compiler_refuses_with_apache_kafka_is_shown(tmp_path: Path) -> None:
    require(missing_java())
    program = tmp_path / "Wrong.java"
    program.write_text("class Wrong { int number = nothing; }")
    with pytest.raises(CompilationFailed, match=r"(?s)Wrong\.java.*nothing"):
        compiled(program, tmp_path)
