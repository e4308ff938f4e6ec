"""The schema registry's calls without an event loop."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, ParamSpec, TypeVar, Unpack

from ..loop_thread import LoopThread
from ..schema_registry.registry import SchemaRegistry as AsyncSchemaRegistry
from ..schema_registry.schemas import CompatibilityLevel, CompatibilityResult, RegisteredSchema, Schema, Version
from ..schema_registry.settings import SchemaRegistryOptions

__all__ = ("SchemaRegistry",)

P = ParamSpec("P")
T = TypeVar("T")


class SchemaRegistry:
    """A schema registry for code without an event loop, also in notebooks. Errors and arguments are those of
    :class:`aiokafkawire.schema_registry.SchemaRegistry`; serializers take :attr:`asynchronous`.

    Each call that needs a request runs an event loop on a thread of its own until the call ends.
    """

    def __init__(self, url: str | Iterable[str], **options: Unpack[SchemaRegistryOptions]) -> None:
        self._registry = AsyncSchemaRegistry(url, **options)

    def __repr__(self) -> str:
        return repr(self._registry)

    @property
    def asynchronous(self) -> AsyncSchemaRegistry:
        """The asynchronous registry, for serializers and deserializers, which have the same caches."""
        return self._registry

    def _call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = LoopThread("aiokafkawire-schema-registry")
        loop.start()
        try:
            return loop.call(function, *args, **kwargs)
        finally:
            loop.stop()

    def register_schema(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Register a schema under a subject, and return it with its id, as :meth:`.SchemaRegistry.register_schema`."""
        return self._call(self._registry.register_schema, subject, schema, normalize=normalize)

    def lookup_schema(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Return a schema of a subject with its id and version, as :meth:`.SchemaRegistry.lookup_schema`."""
        return self._call(self._registry.lookup_schema, subject, schema, normalize=normalize)

    def get_schema(self, schema_id: int | str, *, schema_format: Literal["", "serialized"] = "") -> Schema:
        """Return a schema by its id, or by its GUID, as :meth:`.SchemaRegistry.get_schema`."""
        return self._call(self._registry.get_schema, schema_id, schema_format=schema_format)

    def get_version(
        self, subject: str, version: Version = "latest", *, schema_format: Literal["", "serialized"] = ""
    ) -> RegisteredSchema:
        """Return a version of a subject, as :meth:`.SchemaRegistry.get_version`."""
        return self._call(self._registry.get_version, subject, version, schema_format=schema_format)

    def get_references(self, schema: Schema, *, schema_format: Literal["", "serialized"] = "") -> dict[str, Schema]:
        """Return the schemas that a schema references, by their names, as :meth:`.SchemaRegistry.get_references`."""
        return self._call(self._registry.get_references, schema, schema_format=schema_format)

    def list_subjects(self, *, prefix: str = "", deleted: bool = False) -> tuple[str, ...]:
        """Return the names of the subjects, as :meth:`.SchemaRegistry.list_subjects`."""
        return self._call(self._registry.list_subjects, prefix=prefix, deleted=deleted)

    def list_versions(self, subject: str, *, deleted: bool = False) -> tuple[int, ...]:
        """Return the versions of a subject, as :meth:`.SchemaRegistry.list_versions`."""
        return self._call(self._registry.list_versions, subject, deleted=deleted)

    def delete_subject(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """Delete a subject, and return its versions, as :meth:`.SchemaRegistry.delete_subject`."""
        return self._call(self._registry.delete_subject, subject, permanent=permanent)

    def delete_version(self, subject: str, version: Version, *, permanent: bool = False) -> int:
        """Delete a version of a subject, and return its number, as :meth:`.SchemaRegistry.delete_version`."""
        return self._call(self._registry.delete_version, subject, version, permanent=permanent)

    def check_compatibility(
        self, subject: str, schema: Schema, *, version: Version | Literal["all"] = "latest", normalize: bool = False
    ) -> CompatibilityResult:
        """Return whether a schema is compatible, as :meth:`.SchemaRegistry.check_compatibility`."""
        return self._call(self._registry.check_compatibility, subject, schema, version=version, normalize=normalize)

    def get_compatibility(self, subject: str | None = None) -> CompatibilityLevel:
        """Return the level of compatibility of a subject, or of all, as :meth:`.SchemaRegistry.get_compatibility`."""
        return self._call(self._registry.get_compatibility, subject)

    def set_compatibility(self, level: CompatibilityLevel | str, subject: str | None = None) -> None:
        """Set the level of compatibility of a subject, or of all, as :meth:`.SchemaRegistry.set_compatibility`."""
        return self._call(self._registry.set_compatibility, level, subject)

    def delete_compatibility(self, subject: str) -> None:
        """Delete a subject's own level, as :meth:`.SchemaRegistry.delete_compatibility`."""
        return self._call(self._registry.delete_compatibility, subject)

    def clear_caches(self) -> None:
        """Forget all schemas, as :meth:`.SchemaRegistry.clear_caches`."""
        self._registry.clear_caches()
