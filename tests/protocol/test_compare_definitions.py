"""Reading a release's definitions, adding them to ours, and the command that compares them."""

import gzip
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import attrs
import pytest
from support import compare_definitions
from support.compare_definitions import main
from support.definitions import OURS, Definition, Field, default_of, extended, read, snake, write

from aiokafkawire.protocol.schema import Versions

Capture = pytest.CaptureFixture[str]
V = Versions.parse
THING = """\
// Licensed to someone, with a "quote".
{
  "apiKey": 95, // not // taken yet
  "type": "request", "name": "ThingRequest", "listeners": ["broker"],
  "validVersions": "0-1", "deprecatedVersions": "0", "flexibleVersions": "1+", "latestVersionUnstable": "true",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "default": "http://a", "about": "Not a // comment." },
    { "name": "Places", "type": "[]Place", "versions": "1+", "nullableVersions": "1+", "ignorable": "true",
      "taggedVersions": "1+", "tag": "0" }
    // the end
  ],
  "commonStructs": [
    { "name": "Place", "versions": "0+", "fields": [ { "name": "Node", "type": "int32", "versions": "0+" } ] }
  ]
}
"""
PARSED = Definition(
    name="ThingRequest",
    kind="request",
    versions=V("0-1"),
    flexible=V("1+"),
    api_key=95,
    unstable=True,
    fields=(
        Field("Url", "string", V("0+"), default="http://a"),
        Field(
            name="Places",
            type="[]Place",
            versions=V("1+"),
            nullable=V("1+"),
            tagged=V("1+"),
            tag=0,
            ignorable=True,
            fields=(Field("Node", "int32", V("0+")),),
        ),
    ),
)


def jar(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("common/message/README.md", "words")
        made.writestr("META-INF/other.json", "{}")
        for name, text in files.items():
            made.writestr(f"common/message/{name}.json", text)
    return path


def test_a_jar_and_a_folder_are_read_with_comments_and_common_structs(tmp_path: Path) -> None:
    gone = '{"name": "GoneRequest", "type": "request", "validVersions": "none"}'  # an API that was given up
    assert read(jar(tmp_path / "clients.jar", ThingRequest=THING, GoneRequest=gone)) == {"ThingRequest": PARSED}
    (tmp_path / "ThingRequest.json").write_text(THING)
    assert read(tmp_path) == {"ThingRequest": PARSED}


def test_what_is_written_is_read_again_and_always_the_same_bytes(tmp_path: Path) -> None:
    full = attrs.evolve(PARSED, request_headers=(1, 2), response_headers=(0, 1))
    for path in (tmp_path / "a.gz", tmp_path / "b.gz"):
        write([attrs.evolve(full, name="ZRequest"), full], path)
    assert read(path) == {"ThingRequest": full, "ZRequest": attrs.evolve(full, name="ZRequest")}
    assert (tmp_path / "a.gz").read_bytes() == path.read_bytes()
    assert path.read_bytes()[4:8] == bytes(4)  # gzip's place for the time
    write(read(OURS).values(), path)
    assert gzip.decompress(path.read_bytes()) == gzip.decompress(OURS.read_bytes())


@pytest.mark.parametrize("text", ["[]", "{}", "{", '{"name": "A", "type": "data", "validVersions": "x", "fields": []}'])
def test_something_else_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="something else in it than message definitions"):
        read(jar(tmp_path / "clients.jar", A=text))


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("int8", None, "0"),
        ("int16", "-1", "-1"),
        ("uint16", "", "0"),
        ("int32", "0x7fffffff", "2147483647"),
        ("int64", -2, "-2"),
        ("bool", None, "false"),
        ("bool", "true", "true"),
        ("bool", True, "true"),
        ("float64", None, "0.0"),
        ("string", None, '""'),
        ("string", "a", '"a"'),
        ("string", "null", "null"),
        ("bytes", None, '""'),
        ("records", None, "null"),
        ("[]int32", None, "[]"),
        ("Place", None, "{}"),
        ("Place", "null", "null"),
        ("uuid", None, "00000000-0000-0000-0000-000000000000"),
        ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ", "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_defaults_are_told_in_one_way(kind: str, given: Any, told: str) -> None:
    assert default_of(Field("Any", kind, V("0+"), default=given)) == told


def test_names_are_pythons() -> None:
    assert [snake(name) for name in ("Name", "TopicId", "KRaftVersion")] == ["name", "topic_id", "k_raft_version"]


def data(versions: str, *fields: Field, flexible: str = "none") -> Definition:
    return Definition("Thing", "data", V(versions), V(flexible), fields)


def test_a_newer_release_adds_its_versions_and_leaves_those_that_it_has_lost() -> None:
    known = data(
        "0-3",
        Field("First", "int8", V("0-1")),
        Field("Second", "int8", V("0+")),
        Field("Between", "int8", V("0-1")),
        Field("Third", "int8", V("1+"), ignorable=True),
        Field("Lost", "int8", V("3"), default="1"),
        Field("Fifth", "string", V("0+"), nullable=V("2+")),
        flexible="3+",
    )
    release = data(
        "2-5",
        Field("Second", "int8", V("0-4")),
        Field("Third", "int8", V("0+")),
        Field("Fifth", "string", V("2+"), nullable=V("2+")),
        Field("Added", "string", V("5+"), nullable=V("4+")),
        flexible="3+",
    )
    assert extended({"Thing": known}, {"Thing": release})["Thing"] == data(
        "0-5",
        Field("First", "int8", V("0-1")),
        Field("Second", "int8", V("0-4")),
        Field("Between", "int8", V("0-1")),
        # In all versions of the release: it says nothing of those without.
        Field("Third", "int8", V("1+"), ignorable=True),
        Field("Fifth", "string", V("0+"), nullable=V("2+")),
        Field("Added", "string", V("5+"), nullable=V("5+")),
        flexible="3+",
    )


def test_a_new_api_gets_its_headers_and_what_a_release_lacks_stays() -> None:
    known = {"Thing": data("0", Field("Only", "int8", V("0+")))}
    grown = attrs.evolve(PARSED, request_headers=(1, 2), response_headers=(0, 1))
    assert extended(known, {"ThingRequest": PARSED}) == known | {"ThingRequest": grown}
    odd = {"ThingRequest": attrs.evolve(grown, request_headers=(0, 2), versions=V("0-1"))}
    newer = extended(odd, {"ThingRequest": attrs.evolve(PARSED, versions=V("1-2"))})
    assert newer["ThingRequest"].request_headers == (0, 2, 2)


@pytest.mark.parametrize(
    ("release", "told"),
    [
        (data("0-2"), "older than what is known: Thing ends with 2, not 3"),
        (data("1-3", Field("A", "int16", V("0+"))), "Thing: A was int8 and is int16 now"),
        (data("1-3", Field("A", "int8", V("3+"))), r"Thing: 0\+ before and 3\+ now leave a gap"),
    ],
)
def test_what_cannot_be_one_definition_is_refused(release: Definition, told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}$"):
        extended({"Thing": data("0-3", Field("A", "int8", V("0+")))}, {"Thing": release})


def test_the_command_finds_nothing_where_nothing_differs(capsys: Capture) -> None:
    assert main([str(OURS)]) == 0
    assert capsys.readouterr().out == f"{OURS}: no differences; {len(read(OURS))} compared\n"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A jar of a release with an API that is new, and of the others Fetch alone, with a version that is new."""
    lines = gzip.decompress(OURS.read_bytes()).splitlines()
    (fetch,) = (json.loads(line) for line in lines if b'"name":"FetchRequest"' in line)
    newer = json.dumps(fetch | {"validVersions": "4-19", "flexibleVersions": "13+"})
    return jar(tmp_path / "clients.jar", ThingRequest=THING, FetchRequest=newer)


def test_the_command_tells_differences_by_message_and_what_was_not_compared(release: Path, capsys: Capture) -> None:
    assert main([str(release)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:6] == [
        "FetchRequest: declared flexible 12+, Kafka has 13+",
        "FetchRequest: version 19 is new in Kafka: the same fields",
        "",
        "ThingRequest (API key 95): not declared",
        "",
        f"{release}: 3 differences in 2 messages; 1 compared",
    ]
    assert lines[6].startswith("not compared, as they are not in it: AbortedTxn, AddOffsetsToTxn, ")
    assert {line[:2] for line in lines[7:]} == {"  "}
    assert "FetchRequest 0-3, FetchResponse, FetchSnapshot," in " ".join(lines)
    assert max(len(line) for line in lines[6:]) <= 120


def test_the_command_takes_a_release_over(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    kept = tmp_path / "kept.jsonl.gz"
    shutil.copy(OURS, kept)
    monkeypatch.setattr(compare_definitions, "OURS", kept)
    assert main([str(release), "--write"]) == 1
    assert capsys.readouterr().out.endswith(f"written to {kept}\n")
    before, after = read(OURS), read(kept)
    assert {name for name in after if after[name] != before.get(name)} == {"FetchRequest", "ThingRequest"}
    assert after["FetchRequest"].versions == V("0-19")
    assert main([str(OURS), "--write"]) == 2
    assert "older than what is known: FetchRequest ends with 18, not 19" in capsys.readouterr().err
    assert read(kept) == after


def told(capsys: Capture) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_what_is_no_version_or_cannot_be_fetched_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["newest"]) == 2
    assert told(capsys) == "newest: no such file, and a version looks like 4.1.1\n"
    assert main(["4.1.1"]) == 2
    assert told(capsys) == "4.1.1: fetching a release needs Maven, and there is no `mvn` on PATH\n"
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty")]) == 2
    assert told(capsys) == f"{tmp_path / 'empty'}: there are no message definitions in it\n"


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Maven is a shell script")
@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("exit 0", 2, "4.1.1: Maven failed with status 0: it said nothing\n"),
        ("echo; echo no Java >&2; exit 1", 2, "4.1.1: Maven failed with status 1: no Java\n"),
        (
            "echo x; printf '\\033[31m[ERROR] no net\\n'; exit 1",
            2,
            "4.1.1: Maven failed with status 1: [ERROR] no net\n",
        ),
        (
            "echo '[ERROR] Unable. Could not find artifact a:b'; exit 1",
            2,
            "4.1.1: Maven finds no such version of org.apache.kafka:kafka-clients\n",
        ),
        ('for a; do case $a in -DoutputDirectory=*) cp "$JAR" "${a#*=}/kafka-clients-4.1.1.jar";; esac; done', 1, ""),
    ],
    ids=["nothing", "no Java", "no net", "no such version", "the jar"],
)
def test_what_maven_says(
    script: str, status: int, said: str, release: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    maven = release.with_name("mvn")
    maven.write_text(f"#!/bin/sh\n{script}\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{maven.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("JAR", str(release))
    assert main(["4.1.1"]) == status
    assert capsys.readouterr().err == said


def test_help_teaches(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert "nox -s definitions -- 4.1.1 " in shown
    assert "exit status: 0 when nothing differs" in shown
