"""The Java programs of the benchmarks fit the newest kafka-clients."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.examples import sampled
from support.guarded_process import BootFailed
from support.needing import require

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.java import CompilationFailed, compiled, missing_java
from benchmarks.machine import ROOT
from benchmarks.processing.parallel_consumer import PROGRAM, parallel_consumer

pytestmark = [pytest.mark.thorough, pytest.mark.kafka]

PROGRAMS = sorted(set((ROOT / "benchmarks").rglob("*.java")) - {PROGRAM})


@pytest.mark.parametrize("program", sampled(PROGRAMS, PROGRAMS[-1]), ids=lambda path: path.stem)
def test_programs_compile_with_apache_kafka(program: Path, tmp_path: Path) -> None:
    require(missing_java())
    assert compiled(program, tmp_path)[-1] == program.stem
    assert (tmp_path / f"{program.stem}.class").exists()


def test_the_program_of_parallel_consumer_compiles_with_its_own_jars(tmp_path: Path) -> None:
    require(missing_java())
    try:
        command = parallel_consumer(tmp_path)
    except BootFailed as failure:
        pytest.skip(f"Confluent's Parallel Consumer cannot be had from Maven: {failure}")
    assert command[-1] == PROGRAM.stem


def test_what_the_compiler_refuses_with_apache_kafka_is_shown(tmp_path: Path) -> None:
    require(missing_java())
    program = tmp_path / "Wrong.java"
    program.write_text("class Wrong { int number = nothing; }")
    with pytest.raises(CompilationFailed, match=r"(?s)Wrong\.java.*nothing"):
        compiled(program, tmp_path)
