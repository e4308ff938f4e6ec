"""Settings that refer to secrets: in the environment, in files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.config.properties import settings_from
from aiokafkawire.config.properties_parser import parse_properties
from aiokafkawire.config.providers import resolved
from aiokafkawire.errors import ConfigError

TEXT = """\
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.username=${file:%s:user.name}
sasl.password=${env:KAFKA_PASSWORD}
client.id=${directory:%s:client-name}
"""


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KAFKA_PASSWORD", "  pass=wörd \\ with: all\tof # it")
    (tmp_path / "secrets.properties").write_text("user.name = alice\n")
    (tmp_path / "client-name").write_text("of the directory")
    return TEXT % (tmp_path / "secrets.properties", tmp_path)


def test_references_stand_for_what_is_there(text: str) -> None:
    client = settings_from(resolved(text)).client
    assert client["sasl_username"] == "alice"
    assert client["sasl_password"] == "  pass=wörd \\ with: all\tof # it"
    assert client["client_id"] == "of the directory"


def test_without_asking_for_it_nothing_is_looked_up(text: str) -> None:
    assert settings_from(text).client["sasl_password"] == "${env:KAFKA_PASSWORD}"


def test_what_is_commented_out_is_not_looked_up() -> None:
    text = "# sasl.password=${env:NOT_SET_ANYWHERE}\n  !${vault:a:b}\r\n"
    text += "client.id=x\\\n  #${of:it}\n#${of:it}\\\na=${of:it}"
    found = parse_properties(resolved(text, {"of": lambda path, key: f"the {key}"}))
    assert found == {"client.id": "x#the it", "a": "the it"}


@pytest.mark.parametrize("name", ["aws-secrets", "vault.kv", "v2"])
def test_providers_have_names_as_in_java(name: str) -> None:
    assert resolved(f"a=${{{name}:path:key}}", {name: lambda path, key: f"{path} {key}"}) == "a=path key"
    with pytest.raises(ConfigError, match=f"unknown provider '{name}'"):
        resolved(f"a=${{{name}:path:key}}")


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("${vault:a:b}", "unknown provider 'vault'; known: directory, env, file"),
        ("${env:NOT_SET_ANYWHERE}", "there is no value of that name"),
        ("${env:somewhere:HOME}", "there is no value of that name"),
        ("${file:/nowhere/at.all:key}", "No such file or directory"),
        ("${directory:/nowhere:key}", "No such file or directory"),
        ("${directory:/:../etc/hostname}", "there is no value of that name"),
        ("${file:/dev/zero:key}", "there is no value of that name"),
    ],
)
def test_what_is_not_there_is_named(reference: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(f"sasl.password=before {reference} behind")
    assert str(caught.value) == f"{reference}: {told}"


def test_no_file_s_content_is_told(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("other=hidden")
    with pytest.raises(ConfigError) as caught:
        resolved(f"a=${{file:{tmp_path / 'f'}:key}}")
    assert "hidden" not in repr(caught.value)
    assert caught.value.__cause__ is None


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_secret_comes_as_it_is(secret: str) -> None:
    made = resolved("sasl.password=x${of:it}x", {"of": lambda path, key: secret})
    assert parse_properties(made) == {"sasl.password": f"x{secret}x"}
