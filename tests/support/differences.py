"""Where the package's declarations differ from Kafka's definitions, told so that they can be mended."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

import attrs
from support.definitions import NEVER, Definition, Field, clip, default_of, snake

from aiokafkawire.protocol.api import request_header_version, response_header_version
from aiokafkawire.protocol.primitives import WireType
from aiokafkawire.protocol.schema import FieldSchema, Message, Request, Response, Versions, schema_of

__all__ = ("absences", "differences")


def absences(declared: Mapping[str, type[Message]], definitions: Mapping[str, Definition]) -> list[str]:
    """What is declared and not defined: ``Fetch 0-3``, or ``LeaderAndIsr`` where every version is missing."""
    found: dict[str, str] = {}
    for name, cls in declared.items():
        theirs = definitions[name].versions if name in definitions else NEVER
        ranges = (Versions(cls.versions.first, theirs.first - 1), Versions(theirs.last + 1, cls.versions.last))
        if name not in definitions:
            found[name] = ""
        elif lacking := [f" {clip(one, cls.versions)}" for one in ranges if clip(one, cls.versions) != NEVER]:
            found[name] = " and".join(lacking)
    for name in [name for name in found if name.endswith("Request")]:
        api = name.removesuffix("Request")
        if found[name] == found.get(f"{api}Response"):
            found[api] = found.pop(name)
            del found[f"{api}Response"]
    return [name + lacking for name, lacking in sorted(found.items())]


def differences(declared: Mapping[str, type[Message]], definitions: Mapping[str, Definition]) -> list[str]:
    """Where the declared messages differ from Kafka's definitions: a line each, in the order of the definitions.

    Versions that are declared and not defined do not count (see `absences`); defined ones that are not declared do.
    """
    answers = {one.api_key: one.name for one in definitions.values() if one.kind == "response"}
    found: list[str] = []
    for name, kafka in definitions.items():
        cls = declared.get(name)
        if cls is None:
            api = "" if kafka.api_key is None else f" (API key {kafka.api_key})"
            found.append(f"{name}{api}: not declared")
            continue
        window = _Window(cls.versions, clip(cls.versions, kafka.versions), kafka.versions)
        found += _of_message(name, cls, kafka, answers.get(kafka.api_key), window.shared)
        found += (_new_version(name, cls, kafka, one) for one in _each(kafka.versions) if one not in cls.versions)
        found += _of_fields(name, cls, kafka.fields, window)
    return found


@attrs.frozen
class _Window:
    """The versions of a message in which a struct of it exists: ours, those that both sides have, and Kafka's."""

    declared: Versions
    shared: Versions
    defined: Versions

    def inside(self, versions: Versions) -> "_Window":
        return _Window(*(clip(one, versions) for one in (self.declared, self.shared, self.defined)))


def _of_message(
    name: str, cls: type[Message], kafka: Definition, answer: str | None, shared: Versions
) -> Iterator[str]:
    kind, unstable = "message", NEVER
    if issubclass(cls, Request | Response):
        kind = "request" if issubclass(cls, Request) else "response"
        yield from _differ(name, "API key", int(cls.api_key), kafka.api_key)
    yield from _differ(name, "kind", kind, kafka.kind if kafka.kind in ("request", "response") else "message")
    if issubclass(cls, Request):
        unstable = Versions(cls.stable.last + 1, cls.versions.last)
        yield from _differ(name, "response", cls.response.__name__, answer or cls.response.__name__)
        yield from _of_headers(name, "request", cls, request_header_version, kafka.request_headers, shared)
        yield from _of_headers(name, "response", cls, response_header_version, kafka.response_headers, shared)
    newest = Versions(kafka.versions.last, kafka.versions.last) if kafka.unstable else NEVER
    yield from _differ_in(name, "unstable ", unstable, newest, shared)
    yield from _differ_in(name, "flexible ", cls.flexible, kafka.flexible, shared)


def _of_headers(
    name: str,
    what: str,
    cls: type[Request[Response]],
    ours: Callable[[type[Request[Response]], int], int],
    kafka: tuple[int, ...],
    shared: Versions,
) -> Iterator[str]:
    for version, theirs in enumerate(kafka):
        if version in shared:
            yield from _differ(f"{name}: version {version}", f"{what} header", ours(cls, version), theirs)


def _new_version(name: str, cls: type[Message], kafka: Definition, version: int) -> str:
    now, before = _present(kafka.fields, version), _present(kafka.fields, version - 1)
    told = [f"adds {path}" for path in _tops(now, before)] + [f"drops {path}" for path in _tops(before, now)]
    for path in (path for path in now if path in before):
        was, may_be = version - 1 in now[path].nullable, version in now[path].nullable
        if was != may_be:
            told.append(f"{path} may be null" if may_be else f"{path} may no longer be null")
    state = "new in Kafka" if version > cls.versions.last else "not declared"
    unstable = ", unstable" if kafka.unstable and version == kafka.versions.last else ""
    return f"{name}: version {version} is {state}{unstable}: {', '.join(told) or 'the same fields'}"


def _present(fields: tuple[Field, ...], version: int, path: str = "") -> dict[str, Field]:
    """The fields of a version by their paths, those of a struct after itself."""
    found: dict[str, Field] = {}
    for field in fields:
        if version in field.versions:
            found[path + snake(field.name)] = field
            found |= _present(field.fields, version, f"{path}{_step(field)}.")
    return found


def _tops(these: Mapping[str, Field], others: Mapping[str, Field]) -> list[str]:
    """The paths that only these have, without what a struct among them brings along."""
    found: list[str] = []
    for path in these:
        if path not in others and not path.startswith(tuple(f"{top}{end}" for top in found for end in (".", "[]."))):
            found.append(path)
    return found


def _of_fields(path: str, struct: type[Any], kafka: tuple[Field, ...], window: _Window) -> Iterator[str]:
    declared = {field.name: field for field in schema_of(struct).fields}
    defined = {snake(field.name): field for field in kafka if clip(field.versions, window.defined) != NEVER}
    for name, field in defined.items():
        if name in declared:
            yield from _of_field(f"{path}.{name}", declared[name], field, window)
        else:
            yield from _not_declared(path, field, window)
    for name, ours in declared.items():
        if name not in defined and clip(ours.versions, window.shared) != NEVER:
            yield f"{path}.{name}: not in Kafka: declared {_type(ours)}, {ours.versions}"
    yield from _of_order(path, declared, defined, window.shared)


def _of_field(path: str, ours: FieldSchema, kafka: Field, window: _Window) -> Iterator[str]:
    yield from _differ_in(path, "", ours.versions, kafka.versions, window.shared)
    both = clip(clip(ours.versions, kafka.versions), window.shared)
    if both == NEVER:
        return
    yield from _differ_in(path, "nullable ", ours.nullable, kafka.nullable, both)
    yield from _differ(path, "tag", "none" if ours.tag is None else str(ours.tag), _tag(kafka, both))
    # It says what happens in versions without the field: a release that has lost those has often lost the word too.
    if both != window.shared or window.shared == window.declared:
        yield from _differ(path, "ignorable", ours.ignorable, kafka.ignorable)
    alike = "where its message is"
    yield from _differ(path, "flexible", ours.flexible or alike, kafka.flexible or alike)
    # The name of a struct is ours to choose.
    if _plain(_type(ours)) != _plain(kafka.type):
        yield from _differ(path, "type", _type(ours), kafka.type)
        return
    yield from _differ(path, "default", _our_default(ours), default_of(kafka))
    if not isinstance(ours.kind, WireType):
        inside = attrs.evolve(window.inside(kafka.versions), shared=both)
        yield from _of_fields(f"{path}[]" if ours.array else path, ours.kind, kafka.fields, inside)


def _of_order(
    path: str, declared: Mapping[str, FieldSchema], kafka: Mapping[str, Field], shared: Versions
) -> Iterator[str]:
    """Whether the fields that both have stand in line alike, in every version; the first that does not is told."""
    for version in _each(shared):
        both = {name for name in kafka if name in declared and kafka[name].tag is None and declared[name].tag is None}
        both = {name for name in both if version in declared[name].versions and version in kafka[name].versions}
        ours, theirs = [name for name in declared if name in both], [name for name in kafka if name in both]
        moved = [at for at, name in enumerate(ours) if name != theirs[at]]
        if moved:
            part = slice(moved[0], moved[-1] + 1)
            yield f"{path}: declared in the order {', '.join(ours[part])}, Kafka has {', '.join(theirs[part])}"
            return


def _not_declared(path: str, field: Field, window: _Window) -> Iterator[str]:
    state = "new in Kafka" if clip(field.versions, window.shared) == NEVER else "not declared"
    inside = window.inside(field.versions)
    told = [field.type, str(field.versions)]
    told += [f"nullable {field.nullable}"] if field.nullable != NEVER else []
    told += [f"tag {_tag(field, inside.defined)}"] if field.tag is not None else []
    told += [f"default {default_of(field)}"]
    told += ["ignorable"] if field.ignorable else []
    told += [f"flexible {field.flexible}"] if field.flexible is not None else []
    yield f"{path}.{snake(field.name)}: {state}: {', '.join(told)}"
    for one in field.fields:
        if clip(one.versions, inside.defined) != NEVER:
            yield from _not_declared(f"{path}.{_step(field)}", one, inside)


def _differ(path: str, what: str, ours: object, theirs: object) -> Iterator[str]:
    if ours != theirs:
        yield f"{path}: declared {what} {ours}, Kafka has {theirs}"


def _differ_in(path: str, what: str, ours: Versions, theirs: Versions, window: Versions) -> Iterator[str]:
    if clip(ours, window) != clip(theirs, window):
        yield f"{path}: declared {what}{ours}, Kafka has {theirs}"


def _each(versions: Versions) -> range:
    return range(versions.first, versions.last + 1)


def _step(field: Field) -> str:
    return snake(field.name) + ("[]" if field.type.startswith("[]") else "")


def _tag(field: Field, inside: Versions) -> str:
    if field.tag is None:
        return "none"
    where = clip(field.tagged, inside)
    return str(field.tag) if where == inside else f"{field.tag} in {where} alone"


def _type(field: FieldSchema) -> str:
    return ("[]" if field.array else "") + (
        field.kind.value if isinstance(field.kind, WireType) else field.kind.__name__
    )


def _plain(type_: str) -> str:
    return re.sub(r"[A-Z]\w*", "struct", type_)


def _our_default(field: FieldSchema) -> str:
    """The default as `default_of` writes it; a field that must be given stands for Kafka's zero."""
    if field.default is attrs.NOTHING:
        return default_of(Field(field.name, _type(field), field.versions))
    return _shown(field.default() if callable(field.default) else field.default)


def _shown(value: Any) -> str:
    """A value as `default_of` writes it; a struct whose fields all have their defaults is ``{}``."""
    if attrs.has(type(value)):
        shown = {field: _shown(getattr(value, field.name)) for field in schema_of(type(value)).fields}
        told = [f"{field.name}: {text}" for field, text in shown.items() if text != _our_default(field)]
        return f"{{{', '.join(told)}}}"
    if isinstance(value, bytes):
        return json.dumps(value.decode("latin-1"))
    return str(value) if isinstance(value, UUID) else json.dumps(value, default=repr)
