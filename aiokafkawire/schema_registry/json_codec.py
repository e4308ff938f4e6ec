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

from .._printable import printable
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
            raise SchemaMismatch(f"the value does not fit the JSON schema at {_place(error)}")


def parse_json_schema(schema: Schema, references: Mapping[str, Schema]) -> JsonSchema:
    """Parse a schema; without ``$schema`` it is of draft 7, as for Confluent's serializers.

    Args:
        schema: the schema.
        references: the schemas that its ``$ref`` name.

    Raises:
        SchemaMismatch: one of them is not valid.
    """
    contents = _loads(schema.text, "the schema")
    loaded = {name: _loads(one.text, f"the referenced schema {name!r}") for name, one in references.items()}
    try:
        validator = _validator(contents, loaded)
    except SchemaError as error:
        raise SchemaMismatch(f"the schema is not a valid JSON schema at {_place(error)}") from error
    except Exception as error:  # jsonschema raises what a strange schema leads to, such as RecursionError
        raise SchemaMismatch(f"the schema is not a valid JSON schema: {_said(error)}") from error
    title = contents.get("title") if isinstance(contents, dict) else None
    return JsonSchema(validator, title if isinstance(title, str) else None)


def _validator(contents: Any, references: Mapping[str, Any]) -> Any:
    """Return the validator of a schema that is valid by its own metaschema."""
    base = str(contents.get("$id", "")) if isinstance(contents, dict) else ""
    resources = []
    for name, reference in references.items():
        resource = Resource.from_contents(reference, default_specification=DRAFT7)
        resources += [(name, resource), (urljoin(base, name), resource)]
    kind: Any = validator_for(contents, default=Draft7Validator)
    kind.check_schema(contents)
    registry: Any = Registry().with_resources(resources)
    return kind(contents, registry=registry)


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


def _place(error: Any) -> str:
    """Return where and why a value or a schema is not valid: both may have texts of a hostile record."""
    return f"{printable(error.json_path, _TEXT)}: {printable(error.message, _TEXT)}"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {printable(str(error), _TEXT)}"
