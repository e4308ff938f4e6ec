"""The site of the documents: links of the reference, and the folder of all its versions."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

SITE = Path(__file__).parents[1] / "docs" / "site"


def load(name: str) -> ModuleType:
    """Import a program of docs/site, which is no package."""
    spec = spec_from_file_location(name, SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def roles(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """roles.py without griffe, which only the environment of the site has."""
    monkeypatch.setitem(sys.modules, "griffe", SimpleNamespace(Extension=object, Module=None, Object=None))
    return load("roles")


ANCHORS = [
    "pkg.client.Client",
    "pkg.client.Client.send",
    "pkg.blocking.Client",
    "pkg.blocking.Client.send",
    "pkg.tables.read_table",
]


@pytest.mark.parametrize(
    ("role", "owner", "expected"),
    [
        (":class:`Client`", "pkg.client.open", "[`Client`][pkg.client.Client]"),
        (":class:`Client`", "pkg.blocking.Worker", "[`Client`][pkg.blocking.Client]"),
        (":meth:`~.Client.send`", "pkg.blocking.Worker", "[`send`][pkg.blocking.Client.send]"),
        (":meth:`send`", "pkg.client.Client.close", "[`send`][pkg.client.Client.send]"),
        (":meth:`send`", "pkg.other.Other.close", "`send`"),
        (":func:`pkg.tables.read_table`", "pkg.client", "[`pkg.tables.read_table`][pkg.tables.read_table]"),
        (":class:`Unknown`", "pkg.client", "`Unknown`"),
    ],
)
def test_a_role_leads_to_the_nearest_name_of_the_reference(
    roles: ModuleType, role: str, owner: str, expected: str
) -> None:
    assert roles.with_links(f"See {role}.", owner, ANCHORS) == f"See {expected}."


def test_every_name_of_a_page_of_the_reference_has_a_section() -> None:
    pages = load("pages")
    assert "aiokafkawire.client.Client" in pages.documented("aiokafkawire")
    assert "::: aiokafkawire.client.Client\n" in pages.reference("aiokafkawire")


def test_a_version_of_the_site_is_added_beside_the_others(tmp_path: Path) -> None:
    versions = load("versions")
    built, published = tmp_path / "built", tmp_path / "published"
    built.mkdir()
    for number, text in (("0.9.0", "old"), ("0.10.0", "older"), ("0.10.0", "new"), ("1.0.0rc1", "candidate")):
        (built / "index.html").write_text(text)
        versions.add(built, published, number)
    listed = json.loads((published / "versions.json").read_text())
    assert [(entry["version"], entry["aliases"]) for entry in listed] == [
        ("1.0.0rc1", []),
        ("0.10.0", ["latest"]),
        ("0.9.0", []),
    ]
    assert (published / "0.10.0" / "index.html").read_text() == "new"
    assert 'url=0.10.0/"' in (published / "index.html").read_text()


def test_a_release_is_newer_than_its_candidates_and_numbers_are_no_text() -> None:
    versions = load("versions")
    assert versions.in_order(["1.2.0rc1", "1.10.0", "1.2.0", "1.2.0b2"]) == ["1.10.0", "1.2.0", "1.2.0rc1", "1.2.0b2"]
    assert versions.newest_release(["0.1.0rc2", "0.1.0rc1"]) == "0.1.0rc2"
    with pytest.raises(SystemExit, match="next is no version such as"):
        versions.in_order(["next"])
