"""What ``export`` writes, ``apply`` finds unchanged, and makes on another cluster."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from support.cluster_states import PASSWORD, states
from support.examples import examples
from support.shell import Shell

from aiokafkawire.cli.apply.cluster_settings import ClusterSettings
from aiokafkawire.cli.apply.state_file import parse_state
from aiokafkawire.cli.apply.state_writer import format_state
from aiokafkawire.testing.background import BackgroundBroker

ANONYMOUS = "User:ANONYMOUS"


@given(states())
def test_a_state_that_is_written_and_read_is_the_same_but_for_passwords(state: ClusterSettings) -> None:
    written = format_state(state, ["A comment."])
    again = parse_state(written)
    assert (again.topics, again.brokers, again.acls, again.quotas) == (
        state.topics,
        state.brokers,
        state.acls,
        state.quotas,
    )
    assert {name: {user.mechanism for user in users} for name, users in (again.users or {}).items()} == {
        name: {user.mechanism for user in users} for name, users in (state.users or {}).items()
    }
    assert format_state(again, ["A comment."]) == written


@pytest.mark.slow
@pytest.mark.timeout(240)
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(states())
def test_a_state_goes_to_a_cluster_and_from_there_to_another(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], state: ClusterSettings
) -> None:
    declared, exported = tmp_path / "declared.toml", tmp_path / "exported.toml"
    # Also a state that was written from another form, with other passwords.
    text = format_state(state)
    declared.write_text(text, "utf-8")
    variables = {
        user.password.environment: "s3cret"
        for users in (parse_state(text).users or {}).values()
        for user in users
        if user.password is not None and user.password.environment is not None
    }
    with pytest.MonkeyPatch.context() as environment:
        for name in (PASSWORD, *variables):
            environment.setenv(name, "s3cret")
        with BackgroundBroker(authorizer=True, super_users=[ANONYMOUS]) as broker:
            shell = Shell(broker.bootstrap, capsysbinary)
            brokers_own = parse_state(shell("export", "brokers").decode()).brokers or {}
            shell("apply", str(declared), "--yes")
            assert shell("apply", str(declared), "--check") == b""
            exported.write_bytes(shell("export"))
            found = parse_state(exported.read_text("utf-8"))
            assert (set(found.topics or {}), found.acls, found.quotas) == (
                set(state.topics or {}),
                state.acls,
                state.quotas,
            )
            assert set(found.brokers or {}) == {*(state.brokers or {}), *brokers_own}
            assert shell("apply", str(exported), "--dry-run", "--delete", "all") == b""
            assert shell.err == "no changes: the cluster is as declared\n"
        with BackgroundBroker(authorizer=True, super_users=[ANONYMOUS]) as other:
            shell = Shell(other.bootstrap, capsysbinary)
            shell("apply", str(exported), "--yes", "--delete", "all")
            assert shell("export") == exported.read_bytes()
    assert "s3cret" not in os.environ.values()
