"""Kafka's own message definitions.

A release carries them in the kafka-clients jar, as JSON with comments: each message with the versions that this
release has. Our file has every version from the first to the newest known, and no prose; it grows by `extended`.
"""

import base64
import gzip
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import attrs

from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.protocol.schema import Versions

__all__ = ("Definition", "Field", "NEVER", "OURS", "clip", "default_of", "extended", "read", "snake", "write")

OURS: Final = Path(__file__).parent.parent / "data" / "definitions.jsonl.gz"
"""The definitions that the declarations must equal, a line per message."""

NEVER: Final = Versions.parse("none")

_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')


@attrs.frozen
class Field:
    """A field as Kafka defines it. ``default`` is as written, None where nothing is; a struct has ``fields``."""

    name: str
    type: str
    versions: Versions
    nullable: Versions = NEVER
    tagged: Versions = NEVER
    tag: int | None = None
    default: Any = None
    ignorable: bool = False
    flexible: Versions | None = None
    fields: "tuple[Field, ...]" = ()


@attrs.frozen
class Definition:
    """A message as Kafka defines it: a request, a response, a header or (embedded) data.

    ``unstable`` says that clients must not choose the newest version by themselves. A request of our file also has the
    versions of the headers that go with each of its versions, from 0 on; jars do not tell those.
    """

    name: str
    kind: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    api_key: int | None = None
    unstable: bool = False
    request_headers: tuple[int, ...] = ()
    response_headers: tuple[int, ...] = ()


def read(source: Path) -> dict[str, Definition]:
    """The definitions in a jar, a folder of JSON files, or a gzipped file with a line per message; sorted by name.

    Raises:
        ValueError: there are none in it, or something else is.
        OSError: it cannot be read.
    """
    try:
        found = [_definition(json.loads(_COMMENT.sub(r"\1", text))) for text in _texts(source)]
    except (zipfile.BadZipFile, gzip.BadGzipFile, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"there is something else in it than message definitions: {error!r}") from error
    if not found:
        raise ValueError("there are no message definitions in it")
    # An API that a release has given up may still be there, with no version.
    return {one.name: one for one in sorted(found, key=lambda one: one.name) if one.versions != NEVER}


def write(definitions: Iterable[Definition], path: Path) -> None:
    """Write a line per message, sorted by name: the same definitions make the same bytes."""
    ordered = sorted(definitions, key=lambda one: one.name)
    lines = "".join(json.dumps(_definition_json(one), separators=(",", ":")) + "\n" for one in ordered)
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


def clip(versions: Versions, window: Versions) -> Versions:
    """The versions that are in both ranges."""
    first, last = max(versions.first, window.first), min(versions.last, window.last)
    return Versions(first, last) if first <= last else NEVER


def snake(name: str) -> str:
    """``TopicId`` as Python has it: ``topic_id``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def default_of(field: Field) -> str:
    """The default of a field as JSON, in one way for each value: Kafka writes 1 as ``1``, ``"1"`` and ``"0x1"``."""
    kind, given = field.type, field.default
    if given is None or given == "":
        zeros = {"string": '""', "bytes": '""', "records": "null", "bool": "false", "float64": "0.0"}
        zeros |= {"uuid": str(ZERO_UUID)}
        return "[]" if kind.startswith("[]") else "{}" if kind[0].isupper() else zeros.get(kind, "0")
    if given == "null":
        return "null"
    if kind == "uuid":
        return str(UUID(bytes=base64.urlsafe_b64decode(f"{given}==")))
    if kind.startswith(("int", "uint")):
        return str(int(str(given), 0))
    return {"bool": str(given).lower(), "float64": str(given)}.get(kind, json.dumps(given))


def extended(known: Mapping[str, Definition], release: Mapping[str, Definition]) -> dict[str, Definition]:
    """The definitions of a newer release, and for all that it has no more the known ones.

    Raises:
        ValueError: the release is the older one, or a message's two definitions cannot be one.
    """
    found = dict(known)
    for name, new in release.items():
        old = known.get(name, attrs.evolve(new, versions=NEVER, fields=()))
        if new.versions.last < old.versions.last:
            raise ValueError(f"older than what is known: {name} ends with {new.versions.last}, not {old.versions.last}")
        found[name] = _with_headers(_Merge(old, new).definition())
    return found


class _Merge:
    """Two definitions of a message becoming one: the new one for the versions that it has, the old one for the rest."""

    def __init__(self, old: Definition, new: Definition) -> None:
        self._old, self._new = old, new
        first = new.versions.first if old.versions == NEVER else min(old.versions.first, new.versions.first)
        self._every = Versions(first, new.versions.last)

    def definition(self) -> Definition:
        return attrs.evolve(
            self._new,
            versions=self._every,
            flexible=self._range(self._old.flexible, self._new.flexible),
            fields=self._fields(self._old.fields, self._new.fields, self._new.versions),
            request_headers=self._old.request_headers,
            response_headers=self._old.response_headers,
        )

    def _fields(self, old: tuple[Field, ...], new: tuple[Field, ...], inside: Versions) -> tuple[Field, ...]:
        before = {field.name: field for field in old}
        found = [self._field(before.get(field.name, _absent(field)), field, inside) for field in new]
        for at, field in enumerate(old):
            if all(one.name != field.name for one in found):
                # Where it stood: after the one that it came after.
                place = next((place for place, one in enumerate(found, 1) if at and one.name == old[at - 1].name), 0)
                found.insert(place, self._field(field, _absent(field), inside))
        return tuple(field for field in found if field.versions != NEVER)

    def _field(self, old: Field, new: Field, inside: Versions) -> Field:
        if old.type != new.type:
            raise ValueError(f"{self._new.name}: {new.name} was {old.type} and is {new.type} now")
        versions = self._range(old.versions, new.versions)
        # Of a field that is in all its versions, a release need not say what happens without it.
        unsaid = self._new.versions != self._every and new.versions.covers(inside)
        return attrs.evolve(
            new,
            versions=versions,
            nullable=self._range(clip(old.nullable, versions), clip(new.nullable, versions)),
            tagged=self._range(old.tagged, new.tagged),
            ignorable=old.ignorable if unsaid else new.ignorable,
            fields=self._fields(old.fields, new.fields, clip(new.versions, inside)),
        )

    def _range(self, old: Versions, new: Versions) -> Versions:
        """The new range in the new versions and the old one in the others; open at the newest, as Kafka writes it."""
        every = range(self._every.first, self._every.last + 1)
        found = [one for one in every if one in (new if one in self._new.versions else old)]
        if not found:
            return NEVER
        if len(found) != found[-1] - found[0] + 1:
            raise ValueError(f"{self._new.name}: {old} before and {new} now leave a gap")
        return Versions.parse(f"{found[0]}+") if found[-1] == every[-1] else Versions(found[0], found[-1])


def _with_headers(one: Definition) -> Definition:
    """With the headers of versions whose headers are not known: Kafka's exceptions to this rule are all old."""
    if one.kind != "request":
        return one
    later = [one.flexible.covers(Versions(at, at)) for at in range(len(one.request_headers), one.versions.last + 1)]
    plain = one.name == "ApiVersionsRequest"
    return attrs.evolve(
        one,
        request_headers=(*one.request_headers, *(2 if flexible else 1 for flexible in later)),
        response_headers=(*one.response_headers, *(1 if flexible and not plain else 0 for flexible in later)),
    )


def _absent(field: Field) -> Field:
    return attrs.evolve(field, versions=NEVER, nullable=NEVER, tagged=NEVER)


def _texts(source: Path) -> Iterator[str]:
    if source.is_dir():
        yield from (path.read_text(encoding="utf-8") for path in source.glob("*.json"))
    elif source.suffix == ".gz":
        with gzip.open(source, "rt", encoding="utf-8") as lines:
            yield from lines
    else:
        with zipfile.ZipFile(source) as jar:
            names = [name for name in jar.namelist() if re.fullmatch(r"common/message/\w+\.json", name)]
            yield from (jar.read(name).decode() for name in names)


def _definition(given: Mapping[str, Any]) -> Definition:
    structs = {one["name"]: one["fields"] for one in given.get("commonStructs", ())}
    return Definition(
        name=given["name"],
        kind=given["type"],
        versions=Versions.parse(given["validVersions"]),
        flexible=Versions.parse(given.get("flexibleVersions", "none")),
        fields=_fields(given.get("fields", ()), structs),
        api_key=given.get("apiKey"),
        unstable=_true(given.get("latestVersionUnstable")),
        request_headers=tuple(given.get("requestHeaderVersions", ())),
        response_headers=tuple(given.get("responseHeaderVersions", ())),
    )


def _fields(given: Iterable[Mapping[str, Any]], structs: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of a struct, those of common structs put in their place."""
    return tuple(
        Field(
            name=one["name"],
            type=one["type"],
            versions=Versions.parse(one["versions"]),
            nullable=Versions.parse(one.get("nullableVersions", "none")),
            tagged=Versions.parse(one.get("taggedVersions", "none")),
            tag=int(one["tag"]) if "tag" in one else None,
            default=one.get("default"),
            ignorable=_true(one.get("ignorable")),
            flexible=Versions.parse(one["flexibleVersions"]) if "flexibleVersions" in one else None,
            fields=_fields(one.get("fields") or structs.get(one["type"].removeprefix("[]"), ()), structs),
        )
        for one in given
    )


def _true(given: object) -> bool:
    return str(given).lower() == "true"


def _definition_json(one: Definition) -> dict[str, Any]:
    found = {
        "name": one.name,
        "type": one.kind,
        "apiKey": one.api_key,
        "validVersions": str(one.versions),
        "flexibleVersions": str(one.flexible),
        "latestVersionUnstable": one.unstable or None,
        "requestHeaderVersions": one.request_headers or None,
        "responseHeaderVersions": one.response_headers or None,
        "fields": [_field_json(field) for field in one.fields],
    }
    return {name: value for name, value in found.items() if value is not None}


def _field_json(field: Field) -> dict[str, Any]:
    found = {
        "name": field.name,
        "type": field.type,
        "versions": str(field.versions),
        "nullableVersions": str(field.nullable) if field.nullable != NEVER else None,
        "taggedVersions": str(field.tagged) if field.tagged != NEVER else None,
        "tag": field.tag,
        "default": field.default,
        "ignorable": field.ignorable or None,
        "flexibleVersions": None if field.flexible is None else str(field.flexible),
        "fields": [_field_json(one) for one in field.fields] or None,
    }
    return {name: value for name, value in found.items() if value is not None}
