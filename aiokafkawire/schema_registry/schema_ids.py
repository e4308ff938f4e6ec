"""The parts that serializers and deserializers of all formats share: finding a schema's id, and the caches of both."""

from collections.abc import Awaitable, Callable
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from ..argument_checks import check_flag, shown
from ..errors import SchemaMismatch, SchemaRegistryError, UsageError
from ..serialization import SerializationContext
from .bounded_cache import BoundedCache
from .registry import SchemaRegistry
from .schemas import RegisteredSchema, Schema, SchemaType
from .subjects import SubjectNameStrategy, subject_function
from .wire_format import encode_guid, encode_id, header_name

__all__ = ("ReaderCache", "SchemaIdLocation", "SchemaIds", "check_registry")

SchemaIdLocation: TypeAlias = Literal["prefix", "header"]
"""Where records have the id of their schema: before the data, or in a header."""

R = TypeVar("R")

_CAPACITY: Final = 1000


def check_registry(registry: object) -> None:
    """Raise UsageError unless the value is a SchemaRegistry."""
    if not isinstance(registry, SchemaRegistry):
        raise UsageError(f"registry must be a SchemaRegistry, got {shown(registry)}")


class SchemaIds:
    """The ids of a serializer's schemas under the subjects of its records.

    Args:
        registry: the schema registry.
        auto_register: whether to register the schema under a subject that lacks it.
        use_latest_version: whether to write with the latest version of the subject.
        normalize: whether the registry compares normal forms of schemas.
        subject_name_strategy: how subjects are named.
        schema_id_location: where records have the id.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        auto_register: bool,
        use_latest_version: bool,
        normalize: bool,
        subject_name_strategy: SubjectNameStrategy,
        schema_id_location: SchemaIdLocation,
    ) -> None:
        check_registry(registry)
        check_flag("auto_register", auto_register)
        check_flag("use_latest_version", use_latest_version)
        check_flag("normalize", normalize)
        if schema_id_location not in ("prefix", "header"):
            raise UsageError(f"schema_id_location must be 'prefix' or 'header', got {shown(schema_id_location)}")
        self.registry: SchemaRegistry = registry
        self.auto_register: bool = auto_register
        self.normalize: bool = normalize
        self.use_latest_version: bool = use_latest_version
        self._subject_of = subject_function(subject_name_strategy)
        self._in_header = schema_id_location == "header"
        self._known: BoundedCache[str, RegisteredSchema] = BoundedCache(_CAPACITY)

    def subject(self, context: SerializationContext, record_name: str | None) -> str:
        """Return the subject of a record's key or value."""
        subject = self._subject_of(context, record_name)
        if not isinstance(subject, str) or not subject:
            raise UsageError(f"subject_name_strategy must return a str that is not empty, got {shown(subject)}")
        return subject

    def known(self, subject: str) -> RegisteredSchema | None:
        """Return the schema to write with under a subject without a request; None if that needs one."""
        if not self.use_latest_version:
            return self._known.get(subject)
        latest = self.registry.cached_latest_version(subject)
        return None if latest is None or (self._in_header and latest.guid is None) else latest

    async def find(self, subject: str, schema: Schema | None, schema_type: SchemaType) -> RegisteredSchema:
        """Return the schema to write with under a subject: registered, looked up, or the latest version.

        Raises:
            SchemaRegistryError: the registry refused it, or failed.
            SchemaMismatch: the latest version is of another type.
        """
        if self.use_latest_version:
            latest = await self.registry.get_version(subject)
            if latest.schema.schema_type is not schema_type:
                raise SchemaMismatch(
                    f"the latest version of subject {subject!r} is of type {latest.schema.schema_type.value}, "
                    f"and this serializer writes {schema_type.value}"
                )
            found = latest
        else:
            assert schema is not None
            found = await self._register(subject, schema)
        if self._in_header and found.guid is None:
            found = await self.registry.lookup_schema(subject, found.schema, normalize=self.normalize)
            if found.guid is None:
                raise SchemaRegistryError(
                    "the registry gives schemas no GUIDs (Confluent Platform does from 8.0 on), which records need for "
                    "schema_id_location='header'"
                )
        if not self.use_latest_version:
            self._known.put(subject, found)
        return found

    async def _register(self, subject: str, schema: Schema) -> RegisteredSchema:
        if self.auto_register:
            return await self.registry.register_schema(subject, schema, normalize=self.normalize)
        try:
            return await self.registry.lookup_schema(subject, schema, normalize=self.normalize)
        except SchemaRegistryError as error:
            if error.status != 404 or error.retriable:
                raise
            raise SchemaRegistryError(
                f"{error}: subject {subject!r} does not have this schema; register it, or set auto_register=True",
                error.status,
                error.error_code,
            ) from None

    def frame(
        self, data: bytes, registered: RegisteredSchema, context: SerializationContext, indexes: bytes = b""
    ) -> bytes:
        """Return the bytes of a key or value with the schema's id, or add the id to the record's headers.

        An id that is in the headers already, as of a record that was read and is sent on, is removed.
        """
        name = header_name(context)
        if any(header == name for header, _ in context.headers):
            context.headers[:] = [header for header in context.headers if header[0] != name]
        if not self._in_header:
            return encode_id(registered.schema_id) + indexes + data
        assert registered.guid is not None
        context.headers.append((name, encode_guid(registered.guid) + indexes))
        return data


class ReaderCache(Generic[R]):
    """The parsed schemas of a deserializer, by their ids.

    Args:
        registry: the schema registry.
        schema_type: the type that schemas must have.
        make: makes a reader of a schema.
        schema_format: as for ``SchemaRegistry.get_schema``.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        schema_type: SchemaType,
        make: Callable[[Schema], Awaitable[R]],
        schema_format: Literal["", "serialized"] = "",
    ) -> None:
        check_registry(registry)
        self._registry, self._type, self._make, self._format = registry, schema_type, make, schema_format
        self._readers: BoundedCache[int | str, R] = BoundedCache(_CAPACITY)

    def known(self, schema_id: int | str) -> R | None:
        """Return the reader of a schema without a request; None if that needs one."""
        return self._readers.get(schema_id)

    async def find(self, schema_id: int | str) -> R:
        """Return the reader of a schema.

        Raises:
            SchemaRegistryError: there is no such schema, or the registry failed.
            SchemaMismatch: the schema is of another type.
        """
        schema = await self._registry.get_schema(schema_id, schema_format=self._format)
        if schema.schema_type is not self._type:
            raise SchemaMismatch(
                f"schema {schema_id} is of type {schema.schema_type.value}, and this deserializer reads "
                f"{self._type.value}"
            )
        known = self._readers.get(schema_id)
        if known is None:  # otherwise another task has made it meanwhile
            known = await self._make(schema)
            self._readers.put(schema_id, known)
        return known
