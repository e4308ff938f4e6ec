"""The subjects of the schema registry with their versions, and the rules by which they change."""

import re
from collections.abc import Iterator
from typing import Final, Literal

import attrs

from .avro_compatibility import avro_differences
from .avro_types import parse_avro_types
from .registry_error import RegistryRefusal
from .stored_schemas import StoredSchema, check_schema

__all__ = ("LEVELS", "MODES", "SubjectStore", "SubjectVersion")

LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
_ID: Final = re.compile(r"-?[0-9]{1,10}")
_VERSION: Final = re.compile(r"[0-9]{1,10}")
_MAX_VERSION: Final = 2**31 - 1


@attrs.define
class SubjectVersion:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: StoredSchema
    is_deleted: bool = False


class SubjectStore:
    """The subjects, schemas, levels of compatibility and modes of a registry."""

    def __init__(self) -> None:
        self._subjects: dict[str, list[SubjectVersion]] = {}
        self._schemas: list[StoredSchema] = []
        self.levels: dict[str, str] = {}
        """The levels of compatibility by subject; that of all subjects has the key ``""``."""
        self.modes: dict[str, str] = {}
        """The modes by subject, likewise."""

    # --- reading -----------------------------------------------------------------------------------------------

    def subjects(self, prefix: str, deleted: bool, deleted_only: bool) -> list[str]:
        """Return the names of subjects, in order."""
        found = []
        for name, versions in self._subjects.items():
            is_deleted = all(version.is_deleted for version in versions)
            if name.startswith(prefix) and (is_deleted if deleted_only else deleted or not is_deleted):
                found.append(name)
        return sorted(found)

    def versions(self, subject: str, deleted: bool = False, deleted_only: bool = False) -> list[SubjectVersion]:
        """Return the versions of a subject; refuse an unknown subject."""
        every = self._subjects.get(subject, [])
        found = [one for one in every if (one.is_deleted if deleted_only else deleted or not one.is_deleted)]
        if not found:
            raise RegistryRefusal(40401, f"Subject '{subject}' not found.")
        return found

    def has_versions(self, subject: str) -> bool:
        """Return whether a subject has versions that are not deleted; ``""`` is all subjects."""
        every = [self._subjects.get(subject, [])] if subject else self._subjects.values()
        return any(not one.is_deleted for versions in every for one in versions)

    def version(self, subject: str, version: str, deleted: bool = False) -> SubjectVersion:
        """Return a version of a subject: a number, ``latest`` or ``-1``."""
        number = _parse_version(version)
        for one in reversed(self.versions(subject, deleted)):
            if one.version == number or (number is None and not one.is_deleted):
                return one
        raise RegistryRefusal(40402, f"Version {-1 if number is None else number} not found.")

    def schema(self, schema_id: str) -> StoredSchema:
        """Return a schema by its id."""
        if not _ID.fullmatch(schema_id) or not -_MAX_VERSION <= int(schema_id) <= _MAX_VERSION:
            raise RegistryRefusal(404, "HTTP 404 Not Found")
        number = int(schema_id)
        if not 1 <= number <= len(self._schemas) or not any(self.versions_of(number, deleted=True)):
            raise RegistryRefusal(40403, f"Schema {schema_id} not found")
        return self._schemas[number - 1]

    def schema_of_guid(self, guid: str) -> tuple[int, StoredSchema]:
        """Return the id of a schema, and the schema, by its GUID."""
        for schema_id, schema in enumerate(self._schemas, 1):
            if schema.guid == guid.lower() and any(self.versions_of(schema_id, deleted=True)):
                return schema_id, schema
        raise RegistryRefusal(40403, f"Schema {guid} not found")

    def versions_of(self, schema_id: int, deleted: bool = False) -> Iterator[SubjectVersion]:
        """Yield the versions of all subjects that have this schema."""
        for versions in self._subjects.values():
            yield from (one for one in versions if one.schema_id == schema_id and (deleted or not one.is_deleted))

    def referenced_by(self, version: SubjectVersion) -> list[int]:
        """Return the ids of the schemas that reference a version."""
        place = (version.subject, version.version)
        return sorted(
            {
                one.schema_id
                for versions in self._subjects.values()
                for one in versions
                if not one.is_deleted and place in [(each.subject, each.version) for each in one.schema.references]
            }
        )

    def look_up(self, subject: str, schema: StoredSchema, deleted: bool = False) -> SubjectVersion:
        """Return the newest version of a subject with this schema."""
        versions = self.versions(subject, deleted)
        check_schema(schema, self.references(schema))
        for one in reversed(versions):
            if one.schema == schema:
                return one
        raise RegistryRefusal(40403, "Schema not found")

    # --- changing ----------------------------------------------------------------------------------------------

    def register(self, subject: str, schema: StoredSchema) -> SubjectVersion:
        """Add a schema to a subject, or return the version that has it. It takes the place of a deleted version."""
        versions = self._subjects.get(subject, [])
        for one in versions:
            if one.schema == schema and not one.is_deleted:
                return one
        self.refuse_read_only(subject)
        check_schema(schema, self.references(schema))
        found = self.differences(subject, schema)
        if found:
            raise RegistryRefusal(
                40901,
                f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
                f"[{', '.join(found)}]",
            )
        number = versions[-1].version + 1 if versions else 1
        added = SubjectVersion(subject, number, self._id_of(schema), schema)
        self._subjects[subject] = [*(one for one in versions if one.schema != schema), added]
        return added

    def _id_of(self, schema: StoredSchema) -> int:
        """Return the id of a schema, a new one if no subject has the schema."""
        for versions in self._subjects.values():
            for one in versions:
                if one.schema == schema:
                    return one.schema_id
        self._schemas.append(schema)
        return len(self._schemas)

    def delete_subject(self, subject: str, permanent: bool) -> list[int]:
        """Delete a subject, and return the numbers of its versions."""
        versions = self.versions(subject, deleted=True)
        live = [one for one in versions if not one.is_deleted]
        if not permanent and not live:
            raise RegistryRefusal(
                40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
            )
        self.refuse_read_only(subject)
        for one in versions if permanent else live:
            self._refuse_referenced(one)
        if permanent and live:
            raise RegistryRefusal(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")
        if permanent:
            del self._subjects[subject]
            self.levels.pop(subject, None)
            self.modes.pop(subject, None)
            return [one.version for one in versions]
        for one in live:
            one.is_deleted = True
        return [one.version for one in live]

    def delete_version(self, subject: str, version: str, permanent: bool) -> int:
        """Delete a version of a subject, and return its number."""
        one = self.version(subject, version, deleted=True)
        if not permanent and one.is_deleted:
            raise RegistryRefusal(
                40406,
                f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently",
            )
        self.refuse_read_only(subject)
        self._refuse_referenced(one)
        if permanent and not one.is_deleted:
            raise RegistryRefusal(
                40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
            )
        if permanent:
            versions = self._subjects[subject]
            versions.remove(one)
            if not versions:
                del self._subjects[subject]
        one.is_deleted = True
        return one.version

    def _refuse_referenced(self, version: SubjectVersion) -> None:
        if self.referenced_by(version):
            place = f'{{"subject":"{version.subject}","version":{version.version}}}'
            raise RegistryRefusal(42206, f"One or more references exist to the schema {place}.")

    # --- compatibility -----------------------------------------------------------------------------------------

    def level(self, subject: str) -> str:
        """Return the level of compatibility that applies to a subject."""
        return self.levels.get(subject) or self.levels.get("", "BACKWARD")

    def mode(self, subject: str) -> str:
        """Return the mode that applies to a subject."""
        return self.modes.get(subject) or self.modes.get("", "READWRITE")

    def refuse_read_only(self, subject: str) -> None:
        """Refuse to change what has a mode that forbids it."""
        if self.mode(subject).startswith("READONLY"):
            raise RegistryRefusal(42205, f"Subject {subject} is in read-only mode")

    def references(self, schema: StoredSchema) -> dict[str, str]:
        """Return the texts of the schemas that a schema references, each after those that it references itself."""
        found: dict[str, str] = {}
        for reference in schema.references:
            try:
                version = self.version(reference.subject, str(reference.version), deleted=True)
            except RegistryRefusal:
                raise RegistryRefusal(
                    42201,
                    f'Invalid schema: No schema reference found for subject "{reference.subject}" and version '
                    f"{reference.version}",
                ) from None
            found |= self.references(version.schema)
            found[reference.name] = version.schema.text
        return found

    def differences(self, subject: str, schema: StoredSchema, against: SubjectVersion | None = None) -> tuple[str, ...]:
        """Return why a schema does not have the subject's level of compatibility; nothing if it has.

        Args:
            subject: the subject.
            schema: the schema.
            against: the version to compare with; None for those that the level names.
        """
        level = self.level(subject)
        if level == "NONE":
            return ()
        live = [one for one in self._subjects.get(subject, []) if not one.is_deleted]
        others = [against] if against is not None else live if level.endswith("TRANSITIVE") else live[-1:]
        found: list[str] = []
        for other in others:
            if level.startswith(("BACKWARD", "FULL")):
                found += self._compare(schema, other.schema, "new")
            if level.startswith(("FORWARD", "FULL")):
                found += self._compare(other.schema, schema, "old")
        return tuple(found)

    def _compare(self, reader: StoredSchema, writer: StoredSchema, by: Literal["new", "old"]) -> list[str]:
        """Compare Avro schemas; schemas of other types are compatible, and those of two types are not."""
        if reader.schema_type != writer.schema_type:
            return [f"the schemas are of types {reader.schema_type} and {writer.schema_type}"]
        if reader.schema_type != "AVRO":
            return []
        types = [parse_avro_types(one.text, self.references(one)) for one in (reader, writer)]
        return [f"{found} (the reader is the {by} schema)" for found in avro_differences(*types)]


def _parse_version(version: str) -> int | None:
    if version in ("latest", "-1"):
        return None
    if not _VERSION.fullmatch(version) or not 1 <= int(version) <= _MAX_VERSION:
        raise RegistryRefusal(
            42202,
            f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and "
            'the string "latest"',
        )
    return int(version)
