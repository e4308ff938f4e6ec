"""Every mutation still applies: its code occurs once, and the changed module compiles."""

from pathlib import Path

import pytest
from simulation.one_seed import RUN
from support.rows import every_row

from histories.mutations.every import MUTATIONS
from histories.mutations.mutation import Mutation, NotApplied

MUTATION = Mutation("m", "g", "consumer._pure", "old", "new", "plain")


@every_row("mutation", MUTATIONS)
def test_a_mutation_applies_and_compiles(mutation: Mutation) -> None:
    mutation.compile(mutation.path)
    assert mutation.scenario in RUN


def test_mutations_have_different_names() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize("source", ["", "old old"])
def test_code_that_does_not_occur_once_is_an_error(source: str) -> None:
    with pytest.raises(NotApplied, match=f"occurs {source.count('old')} times in consumer._pure"):
        MUTATION.apply(source)
    assert MUTATION.apply("an old one") == "an new one"


def test_code_that_does_not_compile_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("old = (")
    with pytest.raises(SyntaxError):
        MUTATION.compile(tmp_path / "module.py")


def test_a_module_with_a_compiled_twin_runs_in_plain_python() -> None:
    assert MUTATION.environment == {"AIOKAFKAWIRE_RECORDS": "pure"}
    assert not next(one for one in MUTATIONS if one.module == "producer.idempotence").environment
