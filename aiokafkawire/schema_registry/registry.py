"""The client of a schema registry, with its caches."""

import time
from collections.abc import Iterable
from typing import Any, Final, Literal, Unpack, cast

from ..argument_checks import check_flag, check_integer, check_text, shown
from ..config.making import make_config
from ..errors import SchemaRegistryError, UsageError, copy_for_reraise
from .bounded_cache import BoundedCache
from .http_transport import HttpTransport
from .rest_messages import (
    RestRequest,
    parse_compatibility,
    parse_field,
    parse_integers,
    parse_registered,
    parse_schema,
    parse_strings,
    schema_body,
)
from .schemas import (
    CompatibilityLevel,
    CompatibilityResult,
    RegisteredSchema,
    Schema,
    SchemaReference,
    Version,
    check_version,
)
from .settings import SchemaRegistryConfig, SchemaRegistryOptions, parse_urls
from .shared_requests import SharedRequests

__all__ = ("SchemaRegistry",)

_NOT_FOUND: Final = 404
_MAX_REFERENCES: Final = 1000


class SchemaRegistry:
    """A schema registry with Confluent's REST API. It holds no connection between calls, so it needs no closing.

    Schemas are cached, and several tasks that need the same schema share one request. All calls retry what may succeed
    later, at each URL, and end within ``default_api_timeout_ms``. Serializers on several event loops and threads may
    share a registry.

    Args:
        url: the registry's URL, such as ``"http://localhost:8081"``; several (with commas, or a collection) are those
            of one cluster, and another is used when one does not answer.
        options: settings of :class:`~aiokafkawire.schema_registry.SchemaRegistryConfig`.

    Raises:
        ConfigError: a setting is wrong.
    """

    def __init__(self, url: str | Iterable[str], **options: Unpack[SchemaRegistryOptions]) -> None:
        urls, login = parse_urls(url)
        self._config = make_config(SchemaRegistryConfig, cast("dict[str, Any]", options))
        self._config.check_login(login)
        self._urls = urls
        self._transport = HttpTransport(urls, self._config, login)
        self._requests = SharedRequests()
        self._now = time.monotonic
        capacity = self._config.cache_capacity
        self._schemas: BoundedCache[tuple[int | str, str], Schema] = BoundedCache(capacity)
        self._missing: BoundedCache[tuple[int | str, str], SchemaRegistryError] = BoundedCache(capacity)
        self._registered: BoundedCache[tuple[str, Schema, bool], RegisteredSchema] = BoundedCache(capacity)
        self._found: BoundedCache[tuple[str, Schema, bool], RegisteredSchema] = BoundedCache(capacity)
        self._versions: BoundedCache[tuple[str, int], RegisteredSchema] = BoundedCache(capacity)
        self._referenced: BoundedCache[tuple[str, int], RegisteredSchema] = BoundedCache(capacity)
        self._latest: BoundedCache[str, RegisteredSchema] = BoundedCache(capacity)

    def __repr__(self) -> str:
        return f"<SchemaRegistry {', '.join(self._urls)}>"

    # --- schemas -----------------------------------------------------------------------------------------------

    async def register_schema(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Register a schema under a subject, and return it with its id; one that is registered already keeps its id.

        Args:
            subject: the subject.
            schema: the schema; it must be compatible with the subject's versions.
            normalize: whether the registry stores and compares a normal form of the schema.

        Raises:
            SchemaRegistryError: the registry refused the schema (status 409: incompatible; 422: not valid), or failed.
        """
        key = _checked_key(subject, schema, normalize)
        known = self._registered.get(key)
        if known is not None:
            return known
        query = {"normalize": True} if normalize else {}
        request = RestRequest("POST", ("subjects", subject, "versions"), query, schema_body(schema))

        async def register() -> RegisteredSchema:
            answer = await self._transport.send(request)
            registered = parse_registered(answer, str(request), subject, schema)
            self._registered.put(key, registered)
            self._latest.discard(subject)
            return registered

        return await self._requests.run(("register", key), register)

    async def lookup_schema(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Return a schema of a subject with its id and version.

        Args:
            subject: the subject.
            schema: the schema.
            normalize: whether the registry compares normal forms of the schemas.

        Raises:
            SchemaRegistryError: the subject does not have the schema (error code 40403), does not exist (40401), or the
                registry failed.
        """
        key = _checked_key(subject, schema, normalize)
        known = self._found.get(key)
        if known is not None:
            return known
        query = {"normalize": True} if normalize else {}
        request = RestRequest("POST", ("subjects", subject), query, schema_body(schema))

        async def look_up() -> RegisteredSchema:
            answer = await self._transport.send(request)
            found = parse_registered(answer, str(request), subject, schema)
            self._found.put(key, found)
            return found

        return await self._requests.run(("look up", key), look_up)

    async def get_schema(self, schema_id: int | str, *, schema_format: Literal["", "serialized"] = "") -> Schema:
        """Return a schema by its id, or by its GUID.

        Args:
            schema_id: the id, or the GUID as a string.
            schema_format: ``"serialized"`` for a Protobuf schema as a serialized ``FileDescriptorProto`` in base64.

        Raises:
            SchemaRegistryError: there is no such schema (error code 40403), or the registry failed.
        """
        if isinstance(schema_id, str):
            check_text("schema_id", schema_id)
        else:
            check_integer("schema_id", schema_id, 0, 2**32 - 1)
        if schema_format not in ("", "serialized"):
            raise UsageError(f"schema_format must be '' or 'serialized', got {shown(schema_format)}")
        key = (schema_id, schema_format)
        known = self._schemas.get(key)
        if known is not None:
            return known
        missing = self._missing.get(key, self._now())
        if missing is not None:
            raise copy_for_reraise(missing)
        kind = "guids" if isinstance(schema_id, str) else "ids"
        query = {"format": schema_format} if schema_format else {}
        request = RestRequest("GET", ("schemas", kind, schema_id), query)

        async def get() -> Schema:
            try:
                answer = await self._transport.send(request)
            except SchemaRegistryError as error:
                if error.status == _NOT_FOUND:
                    self._missing.put(key, error, self._now() + self._config.missing_id_cache_ttl_sec)
                raise
            schema = parse_schema(answer, str(request))
            self._schemas.put(key, schema)
            return schema

        return await self._requests.run(("get", key), get)

    async def get_version(
        self, subject: str, version: Version = "latest", *, schema_format: Literal["", "serialized"] = ""
    ) -> RegisteredSchema:
        """Return a version of a subject; the latest one may be as old as ``latest_cache_ttl_sec``.

        Args:
            subject: the subject.
            version: the version's number, or ``"latest"``.
            schema_format: ``"serialized"`` for a Protobuf schema as a serialized ``FileDescriptorProto`` in base64.

        Raises:
            SchemaRegistryError: there is no such subject (error code 40401) or version (40402), or the registry failed.
        """
        check_text("subject", subject)
        check_version(version)
        known = self.cached_latest_version(subject) if version == "latest" else self._versions.get((subject, version))
        if known is not None and not schema_format:
            return known
        return await self._get_version(subject, version, schema_format)

    async def _get_version(
        self, subject: str, version: Version, schema_format: str, *, deleted: bool = False
    ) -> RegisteredSchema:
        """Ask for a version of a subject; with ``deleted`` also for one that is deleted, but not permanently."""
        query: dict[str, str | bool] = {"format": schema_format} if schema_format else {}
        query |= {"deleted": True} if deleted else {}
        request = RestRequest("GET", ("subjects", subject, "versions", version), query)

        async def get() -> RegisteredSchema:
            found = parse_registered(await self._transport.send(request), str(request), subject)
            if schema_format:
                return found
            if version == "latest":
                self._latest.put(subject, found, self._now() + self._config.latest_cache_ttl_sec)
            if found.version is not None:
                (self._referenced if deleted else self._versions).put((subject, found.version), found)
            return found

        return await self._requests.run(("version", subject, version, schema_format, deleted), get)

    def cached_latest_version(self, subject: str) -> RegisteredSchema | None:
        """Return the latest version of a subject without a request; None if it is not cached, or not any more."""
        check_text("subject", subject)
        return self._latest.get(subject, self._now())

    async def get_references(
        self, schema: Schema, *, schema_format: Literal["", "serialized"] = ""
    ) -> dict[str, Schema]:
        """Return the schemas that a schema references, and those that they reference, by their names.

        A schema comes after all the schemas that it references itself. They may be deleted, but not permanently: what
        was written by them can still be read.

        Args:
            schema: the schema.
            schema_format: as for :meth:`get_version`.

        Raises:
            SchemaRegistryError: one does not exist, references itself through others, or the registry failed.
        """
        _check_schema(schema)
        found: dict[str, Schema] = {}
        pending: set[str] = set()

        async def visit(parent: Schema) -> None:
            for reference in parent.references:
                if reference.name in found:
                    continue
                if reference.name in pending or len(pending) > _MAX_REFERENCES:
                    raise SchemaRegistryError(f"the schema {reference.name!r} references itself through others")
                pending.add(reference.name)
                registered = await self._get_referenced(reference, schema_format)
                await visit(registered.schema)
                pending.discard(reference.name)
                found[reference.name] = registered.schema

        await visit(schema)
        return found

    async def _get_referenced(
        self, reference: SchemaReference, schema_format: Literal["", "serialized"]
    ) -> RegisteredSchema:
        if reference.version < 1:
            return await self.get_version(reference.subject, schema_format=schema_format)
        key = reference.subject, reference.version
        known = None if schema_format else self._versions.get(key) or self._referenced.get(key)
        return known or await self._get_version(*key, schema_format, deleted=True)

    # --- subjects ----------------------------------------------------------------------------------------------

    async def list_subjects(self, *, prefix: str = "", deleted: bool = False) -> tuple[str, ...]:
        """Return the names of the subjects.

        Args:
            prefix: the beginning of their names; empty for all.
            deleted: whether to include subjects that are deleted, but not permanently.

        Raises:
            SchemaRegistryError: the registry failed.
        """
        check_text("prefix", prefix, empty=True)
        check_flag("deleted", deleted)
        query: dict[str, str | int | bool] = {"subjectPrefix": prefix} if prefix else {}
        request = RestRequest("GET", ("subjects",), query | ({"deleted": True} if deleted else {}))
        return parse_strings(await self._transport.send(request), str(request))

    async def list_versions(self, subject: str, *, deleted: bool = False) -> tuple[int, ...]:
        """Return the versions of a subject.

        Args:
            subject: the subject.
            deleted: whether to include versions that are deleted, but not permanently.

        Raises:
            SchemaRegistryError: the subject does not exist (error code 40401), or the registry failed.
        """
        check_text("subject", subject)
        check_flag("deleted", deleted)
        request = RestRequest("GET", ("subjects", subject, "versions"), {"deleted": True} if deleted else {})
        return parse_integers(await self._transport.send(request), str(request))

    async def delete_subject(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """Delete a subject, and return its versions. The schemas of written records can still be read by their ids.

        Args:
            subject: the subject.
            permanent: whether to remove a subject for good that is deleted already; then its records cannot be read.

        Raises:
            SchemaRegistryError: the subject does not exist, other schemas reference it (error code 42206), or the
                registry failed. A request that may have been done is not repeated.
        """
        check_text("subject", subject)
        check_flag("permanent", permanent)
        request = RestRequest("DELETE", ("subjects", subject), {"permanent": True} if permanent else {})
        try:
            return parse_integers(await self._transport.send(request), str(request))
        finally:
            self.clear_caches()

    async def delete_version(self, subject: str, version: Version, *, permanent: bool = False) -> int:
        """Delete a version of a subject, and return its number.

        Args:
            subject: the subject.
            version: the version's number, or ``"latest"``.
            permanent: whether to remove a version for good that is deleted already.

        Raises:
            SchemaRegistryError: as :meth:`delete_subject`.
        """
        check_text("subject", subject)
        check_version(version)
        check_flag("permanent", permanent)
        query = {"permanent": True} if permanent else {}
        request = RestRequest("DELETE", ("subjects", subject, "versions", version), query)
        try:
            return parse_integers([await self._transport.send(request)], str(request))[0]
        finally:
            self.clear_caches()

    # --- compatibility -----------------------------------------------------------------------------------------

    async def check_compatibility(
        self, subject: str, schema: Schema, *, version: Version | Literal["all"] = "latest", normalize: bool = False
    ) -> CompatibilityResult:
        """Return whether a schema is compatible with a version of a subject, as the subject's level requires.

        Confluent's registry answers that a schema which is not valid is not compatible, with a message, and that every
        valid schema is compatible with ``"latest"`` and ``"all"`` of a subject that has no versions.

        Args:
            subject: the subject.
            schema: the schema.
            version: the version's number, ``"latest"``, or ``"all"`` for those that the level names.
            normalize: whether to compare a normal form of the schema.

        Raises:
            SchemaRegistryError: there is no version with this number (error code 40402), or the registry failed; other
                registries also refuse unknown subjects, and schemas that are not valid.
        """
        _checked_key(subject, schema, normalize)
        check_version(version, "all")
        path: tuple[str | int, ...] = ("compatibility", "subjects", subject, "versions")
        path = path if version == "all" else (*path, version)
        query = {"verbose": True} | ({"normalize": True} if normalize else {})
        request = RestRequest("POST", path, query, schema_body(schema))
        return parse_compatibility(await self._transport.send(request), str(request))

    async def get_compatibility(self, subject: str | None = None) -> CompatibilityLevel:
        """Return the level of compatibility that a subject has, or all subjects without a level of their own.

        Args:
            subject: the subject; None for the level of all.

        Raises:
            SchemaRegistryError: the registry failed.
        """
        query = {"defaultToGlobal": True} if subject is not None else {}
        request = RestRequest("GET", _config_path(subject), query)
        answer = await self._transport.send(request)
        return _level(parse_field(answer, str(request), "compatibilityLevel", "compatibility"), str(request))

    async def set_compatibility(self, level: CompatibilityLevel | str, subject: str | None = None) -> None:
        """Set the level of compatibility that new versions must have.

        Args:
            level: the level, or its name.
            subject: the subject; None for all subjects without a level of their own.

        Raises:
            SchemaRegistryError: the registry failed.
        """
        names = [one.value for one in CompatibilityLevel]
        name = level.value if isinstance(level, CompatibilityLevel) else level
        if name not in names:
            raise UsageError(f"level must be a CompatibilityLevel or one of {', '.join(names)}, got {shown(level)}")
        await self._transport.send(RestRequest("PUT", _config_path(subject), {}, {"compatibility": name}))

    async def delete_compatibility(self, subject: str) -> None:
        """Delete a subject's own level of compatibility, so that the level of all applies.

        Args:
            subject: the subject.

        Raises:
            SchemaRegistryError: the subject has no level of its own (status 404), or the registry failed.
        """
        check_text("subject", subject)
        await self._transport.send(RestRequest("DELETE", _config_path(subject)))

    def clear_caches(self) -> None:
        """Forget all schemas, so that the next calls ask the registry. Serializers keep what they know."""
        self._referenced.clear()
        for cache in (self._schemas, self._missing, self._registered, self._found, self._versions, self._latest):
            cache.clear()


def _check_schema(schema: object) -> None:
    if not isinstance(schema, Schema):
        raise UsageError(f"schema must be a Schema(text, schema_type), got {shown(schema)}")


def _checked_key(subject: object, schema: object, normalize: object) -> tuple[str, Schema, bool]:
    check_text("subject", subject)
    _check_schema(schema)
    check_flag("normalize", normalize)
    return cast("tuple[str, Schema, bool]", (subject, schema, normalize))


def _config_path(subject: str | None) -> tuple[str, ...]:
    if subject is None:
        return ("config",)
    check_text("subject", subject)
    return ("config", subject)


def _level(name: str, source: str) -> CompatibilityLevel:
    try:
        return CompatibilityLevel(name)
    except ValueError:
        raise SchemaRegistryError(f"{source}: the registry has an unknown level of compatibility, {name!r}") from None
