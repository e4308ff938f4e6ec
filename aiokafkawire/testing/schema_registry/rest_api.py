"""The REST API of the schema registry: requests to the store, and its answers as JSON."""

import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import attrs

from .registry_error import RegistryRefusal
from .serialized_protobuf import serialized
from .stored_schemas import SCHEMA_TYPES, StoredReference, StoredSchema, check_schema
from .subject_store import LEVELS, MODES, SubjectStore, SubjectVersion

__all__ = ("RegistryRequest", "RestApi")

_INT32: Final = 2**31


@attrs.frozen
class RegistryRequest:
    """A request to the schema registry.

    Attributes:
        method: the HTTP method.
        target: the path with its query.
        body: the body; empty if there is none.
    """

    method: str
    target: str
    body: bytes = attrs.field(default=b"", repr=False)

    @property
    def _url(self) -> SplitResult:
        try:
            return urlsplit(self.target)
        except ValueError:
            raise RegistryRefusal(400, "HTTP 400 Bad Request") from None

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of the path."""
        return tuple(unquote(part) for part in self._url.path.split("/") if part)

    def parameter(self, name: str, default: str = "") -> str:
        """Return a parameter of the query."""
        return parse_qs(self._url.query).get(name, [default])[-1]

    def flag(self, name: str) -> bool:
        """Return a parameter that is true or false."""
        return self.parameter(name).lower() == "true"

    def json(self) -> dict[str, Any]:
        """Return the body, which must be a JSON object."""
        try:
            body = json.loads(self.body)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise RegistryRefusal(400, "Unrecognized request: the body is not a JSON object")
        return body


class RestApi:
    """Answers requests.

    Args:
        store: the subjects.
        gives_guids: whether schemas have GUIDs, as from Confluent Platform 8.0 on.
    """

    def __init__(self, store: SubjectStore, *, gives_guids: bool) -> None:
        self._store, self._gives_guids = store, gives_guids

    def answer(self, request: RegistryRequest) -> tuple[int, Any]:
        """Return the status and the JSON of the response."""
        try:
            return 200, self._handler(request)(request)
        except RegistryRefusal as refusal:
            return refusal.status, {"error_code": refusal.code, "message": refusal.message}

    def _handler(self, request: RegistryRequest) -> Callable[[RegistryRequest], Any]:
        """Return the method for a request; parts of the path that are no fixed words do not matter here."""
        found = self._handler_of(request.method, request.path)
        if found is not None:
            return found
        if any(self._handler_of(method, request.path) for method in ("GET", "POST", "PUT", "DELETE")):
            raise RegistryRefusal(405, "HTTP 405 Method Not Allowed")
        raise RegistryRefusal(404, "HTTP 404 Not Found")

    def _handler_of(self, method: str, path: tuple[str, ...]) -> Callable[[RegistryRequest], Any] | None:
        match (method, *path):
            case ("GET",):
                return lambda _: {}
            case (_, "subjects", *rest):
                return self._subject_handler(method, rest)
            case ("GET", "schemas", *rest):
                return self._schema_handler(rest)
            case ("POST", "compatibility", "subjects", _, "versions", *rest) if len(rest) < 2:
                return self._check_compatibility
            case ("GET" | "PUT" | "DELETE", "config" | "mode" as name, *rest) if len(rest) < 2:
                handler: Callable[[RegistryRequest], Any] = getattr(self, f"_{method.lower()}_{name}")
                return handler
        return None

    def _subject_handler(self, method: str, path: list[str]) -> Callable[[RegistryRequest], Any] | None:
        match (method, *path):
            case ("GET",):
                return self._list_subjects
            case ("POST", _):
                return self._look_up
            case ("DELETE", subject):
                return lambda request: self._store.delete_subject(subject, request.flag("permanent"))
            case ("GET", _, "versions"):
                return self._list_versions
            case ("POST", _, "versions"):
                return self._register
            case ("DELETE", subject, "versions", version):
                return lambda request: self._store.delete_version(subject, version, request.flag("permanent"))
            case ("GET", subject, "versions", version):
                return lambda request: self._describe(self._find(request, subject, version), request)
            case ("GET", subject, "versions", version, "schema"):
                return lambda request: _as_value(self._find(request, subject, version).schema)
            case ("GET", subject, "versions", version, "referencedby"):
                return lambda request: self._store.referenced_by(self._find(request, subject, version))
        return None

    def _schema_handler(self, path: list[str]) -> Callable[[RegistryRequest], Any] | None:
        store = self._store
        match path:
            case ["types"]:
                return lambda _: list(SCHEMA_TYPES)
            case ["ids", schema_id]:
                return lambda request: self._schema(schema_id, store.schema(schema_id), request)
            case ["ids", schema_id, "schema"]:
                return lambda _: _as_value(store.schema(schema_id))
            case ["ids", schema_id, "subjects"]:
                return lambda request: sorted({one.subject for one in self._versions_of(schema_id, request)})
            case ["ids", schema_id, "versions"]:
                return lambda request: [
                    {"subject": one.subject, "version": one.version} for one in self._versions_of(schema_id, request)
                ]
            case ["guids", guid] if self._gives_guids:
                return lambda request: self._schema_by_guid(guid, request)
        return None

    # --- subjects ----------------------------------------------------------------------------------------------

    def _list_subjects(self, request: RegistryRequest) -> list[str]:
        prefix = request.parameter("subjectPrefix")
        found = self._store.subjects(prefix, request.flag("deleted"), request.flag("deletedOnly"))
        return _page(found, request)

    def _list_versions(self, request: RegistryRequest) -> list[int]:
        versions = self._store.versions(request.path[1], request.flag("deleted"), request.flag("deletedOnly"))
        return _page([one.version for one in versions], request)

    def _find(self, request: RegistryRequest, subject: str, version: str) -> SubjectVersion:
        return self._store.version(subject, version, request.flag("deleted"))

    def _register(self, request: RegistryRequest) -> dict[str, Any]:
        registered = self._store.register(request.path[1], _schema_in(request))
        if not self._gives_guids:
            return {"id": registered.schema_id}
        return {
            "id": registered.schema_id,
            "version": registered.version,
            "guid": registered.schema.guid,
            **registered.schema.as_json(),
        }

    def _look_up(self, request: RegistryRequest) -> dict[str, Any]:
        found = self._store.look_up(request.path[1], _schema_in(request), request.flag("deleted"))
        return self._describe(found, request)

    def _describe(self, version: SubjectVersion, request: RegistryRequest) -> dict[str, Any]:
        return {
            "subject": version.subject,
            "version": version.version,
            "id": version.schema_id,
            **self._schema(version.schema_id, version.schema, request),
        }

    # --- schemas -----------------------------------------------------------------------------------------------

    def _schema(self, schema_id: int | str, schema: StoredSchema, request: RegistryRequest) -> dict[str, Any]:
        fields = schema.as_json()
        if request.parameter("format") == "serialized" and schema.schema_type == "PROTOBUF":
            fields["schema"] = serialized(schema.text, self._store.references(schema))
        if self._gives_guids:
            fields["guid"] = schema.guid
        return fields

    def _schema_by_guid(self, guid: str, request: RegistryRequest) -> dict[str, Any]:
        schema_id, schema = self._store.schema_of_guid(guid)
        return {"id": schema_id, **self._schema(schema_id, schema, request)}

    def _versions_of(self, schema_id: str, request: RegistryRequest) -> list[SubjectVersion]:
        self._store.schema(schema_id)
        return list(self._store.versions_of(int(schema_id), request.flag("deleted")))

    # --- compatibility, levels and modes -----------------------------------------------------------------------

    def _check_compatibility(self, request: RegistryRequest) -> dict[str, Any]:
        _, _, subject, _, *version = request.path
        against = self._version_to_compare(subject, version[0]) if version else None
        found: tuple[str, ...]
        try:
            schema = _schema_in(request)
            check_schema(schema, self._store.references(schema))
            found = self._store.differences(subject, schema, against)
        except RegistryRefusal as refusal:
            if refusal.code != 42201 or not request.flag("verbose"):
                raise
            found = (refusal.message,)
        shown: dict[str, Any] = {"messages": list(found)} if request.flag("verbose") else {}
        return {"is_compatible": not found, **shown}

    def _version_to_compare(self, subject: str, version: str) -> SubjectVersion | None:
        """Return a version of a subject; None for the latest one of a subject that has none."""
        try:
            return self._store.version(subject, version)
        except RegistryRefusal as refusal:
            if refusal.code != 40401:
                raise
            if version in ("latest", "-1"):
                return None
            raise RegistryRefusal(40402, f"Version {version} not found.") from None

    def _get_config(self, request: RegistryRequest) -> dict[str, str]:
        subject = _subject_in(request)
        if subject and subject not in self._store.levels and not request.flag("defaultToGlobal"):
            raise RegistryRefusal(40408, f"Subject '{subject}' does not have subject-level compatibility configured")
        return {"compatibilityLevel": self._store.level(subject)}

    def _put_config(self, request: RegistryRequest) -> dict[str, str]:
        level = request.json().get("compatibility")
        if not isinstance(level, str) or level.upper() not in LEVELS:
            raise RegistryRefusal(42203, f"Invalid compatibility level. Valid values are {', '.join(LEVELS).lower()}")
        self._store.refuse_read_only(_subject_in(request))
        self._store.levels[_subject_in(request)] = level.upper()
        return {"compatibility": level.upper()}

    def _delete_config(self, request: RegistryRequest) -> dict[str, str]:
        subject, levels = _subject_in(request), self._store.levels
        if subject and subject not in levels:
            raise RegistryRefusal(40401, f"Subject '{subject}' not found.")
        self._store.refuse_read_only(subject)
        level = self._store.level(subject)
        levels.pop(subject, None)
        return {"compatibilityLevel": level}

    def _get_mode(self, request: RegistryRequest) -> dict[str, str]:
        subject = _subject_in(request)
        if subject and subject not in self._store.modes and not request.flag("defaultToGlobal"):
            raise RegistryRefusal(40409, f"Subject '{subject}' does not have subject-level mode configured")
        return {"mode": self._store.mode(subject)}

    def _put_mode(self, request: RegistryRequest) -> dict[str, str]:
        mode = request.json().get("mode")
        if not isinstance(mode, str) or mode.upper() not in MODES:
            raise RegistryRefusal(42204, f"Invalid mode. Valid values are {', '.join(MODES)}")
        subject, force = _subject_in(request), request.flag("force")
        if mode.upper() == "IMPORT" != self._store.mode(subject) and not force and self._store.has_versions(subject):
            raise RegistryRefusal(42205, "Cannot import since found existing subjects")
        self._store.modes[subject] = mode.upper()
        return {"mode": mode.upper()}

    def _delete_mode(self, request: RegistryRequest) -> dict[str, str]:
        subject, modes = _subject_in(request), self._store.modes
        if subject and subject not in modes:
            raise RegistryRefusal(40401, f"Subject '{subject}' not found.")
        mode = self._store.mode(subject)
        modes.pop(subject, None)
        return {"mode": mode}


def _subject_in(request: RegistryRequest) -> str:
    return request.path[1] if len(request.path) > 1 else ""


def _schema_in(request: RegistryRequest) -> StoredSchema:
    body = request.json()
    text, kind = body.get("schema"), body.get("schemaType") or "AVRO"
    if isinstance(text, dict | list):
        raise RegistryRefusal(400, "Cannot deserialize value of type `String`: the schema is not quoted")
    if not isinstance(text, str) or not text:
        raise RegistryRefusal(42201, "Empty schema")
    if kind not in SCHEMA_TYPES:
        raise RegistryRefusal(42201, f"Invalid schema type {kind}")
    try:
        references = tuple(
            StoredReference(str(one["name"]), str(one["subject"]), int(one["version"]))
            for one in body.get("references") or ()
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        raise RegistryRefusal(42201, f"Invalid schema {text:.200}, details: a reference is not complete") from None
    if kind == "JSON" and request.flag("normalize"):
        text = _in_order(text)
    return StoredSchema(text, kind, references)


def _in_order(text: str) -> str:
    """Return JSON with its keys in order; other text as it is."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _as_value(schema: StoredSchema) -> Any:
    """Return a schema as the body of a response: JSON as it is, and other text as a string."""
    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError):
        return schema.text


def _page(found: list[Any], request: RegistryRequest) -> list[Any]:
    offset, limit = (_number(request, name, default) for name, default in (("offset", 0), ("limit", -1)))
    return found[offset:] if limit < 0 else found[offset : offset + limit]


def _number(request: RegistryRequest, name: str, default: int) -> int:
    try:
        number = int(request.parameter(name, str(default)))
    except ValueError:
        raise RegistryRefusal(404, "HTTP 404 Not Found") from None
    return max(-1 if name == "limit" else 0, min(number, _INT32))
