"""Reads, writes and validates JSON by JSON Schema, through jsonschema."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin

import attrs

try:
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import SchemaError, best_match
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7
except ImportError as _missing:
    raise ImportError("JSON Schema needs jsonschema: pip install 'aiokafkawire[json-schema]'") from _missing

from ..errors import SchemaMismatch
from .schemas import Schema

__all__ = ("JsonSchema", "parse_json_schema", "read_json", "write_json")

_TEXT: Final = 300


@attrs.frozen
class JsonSchema:
    """A parsed schema.

    Attributes:
        validator: the validator of jsonschema.
        name: the schema's title, which names its type.
    """

    validator: Any
    name: str | None

    def validate(self, value: Any) -> None:
        """Raise SchemaMismatch unless the value fits the schema; the message has the place of the difference."""
        try:
            error = best_match(self.validator.iter_errors(value))
        except Exception as failed:  # an unknown $ref, a wrong regular expression, or too deep recursion
            raise SchemaMismatch(f"the value cannot be validated by the JSON schema: {_said(failed)}") from failed
        if error is not None:
            raise SchemaMismatch(
                f"the value does not fit the JSON schema at {error.json_path}: {error.message[:_TEXT]}"
            )


def parse_json_schema(schema: Schema, references: Mapping[str, Schema]) -> JsonSchema:
    """Parse a schema; without ``$schema`` it is of draft 7, as for Confluent's serializers.

    Args:
        schema: the schema.
        references: the schemas that its ``$ref`` name.

    Raises:
        SchemaMismatch: one of them is not valid.
    """
    contents = _loads(schema.text, "the schema")
    base = str(contents.get("$id", "")) if isinstance(contents, dict) else ""
    resources = []
    for name, reference in references.items():
        resource = Resource.from_contents(
            _loads(reference.text, f"the referenced schema {name!r}"), default_specification=DRAFT7
        )
        resources += [(name, resource), (urljoin(base, name), resource)]
    kind = validator_for(contents, default=Draft7Validator)
    try:
        kind.check_schema(contents)
    except SchemaError as error:
        raise SchemaMismatch(f"the schema is not a valid JSON schema at {error.json_path}: {error.message}") from error
    registry: Any = Registry().with_resources(resources)
    title = contents.get("title") if isinstance(contents, dict) else None
    return JsonSchema(kind(contents, registry=registry), title if isinstance(title, str) else None)


def _loads(text: str, source: str) -> Any:
    try:
        contents = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaMismatch(f"{source} is not valid JSON: {error}") from error
    if not isinstance(contents, dict | bool):
        raise SchemaMismatch(f"{source} is not a JSON schema: it must be an object, true or false")
    return contents


def write_json(value: Any) -> bytes:
    """Return a value as JSON. Raise SchemaMismatch if JSON cannot express it."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaMismatch(f"the value cannot be written as JSON: {_said(error)}; to_dict can convert it") from error


def read_json(data: bytes) -> Any:
    """Return the value of JSON. Raise SchemaMismatch if the bytes are something else."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SchemaMismatch(f"{len(data)} bytes are not JSON: {_said(error)}") from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:_TEXT]}"
