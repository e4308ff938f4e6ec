"""The identity of schemas: their texts without the differences that mean nothing to the registry."""

import json
import re
from typing import Any, Final

from .avro_types import NAMED, PRIMITIVES, full_name

__all__ = ("schema_identity",)

_TOKEN: Final = re.compile(
    r"""(?:\s+|//[^\n]*|/\*.*?\*/)*("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\w+|\S|\Z)""", re.DOTALL
)


def schema_identity(text: str, schema_type: str) -> str:
    """Return a text that is equal for equal schemas.

    White space means nothing. Neither do comments in Protobuf, and in Avro the order of keys, where a namespace is
    written, and what is so unless a schema says otherwise.
    """
    if schema_type == "PROTOBUF":
        return " ".join(_TOKEN.findall(text)).rstrip()
    try:
        schema = json.loads(text)
        return json.dumps(_avro(schema, ""), sort_keys=True) if schema_type == "AVRO" else json.dumps(schema)
    except (ValueError, RecursionError):
        return text


def _avro(schema: Any, namespace: str) -> Any:
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else full_name(schema, namespace)
    if isinstance(schema, list):
        return [_avro(branch, namespace) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind in NAMED and isinstance(schema.get("name"), str):
        return _named(schema, namespace)
    if isinstance(kind, str) and kind not in PRIMITIVES and kind not in (*NAMED, "array", "map"):
        return full_name(kind, namespace)
    if schema == {"type": kind} and kind in PRIMITIVES:
        return kind
    return {name: _avro(value, namespace) if name in ("items", "values") else value for name, value in schema.items()}


def _named(schema: dict[str, Any], namespace: str) -> dict[str, Any]:
    name = full_name(schema["name"], schema.get("namespace", namespace))
    space = name.rpartition(".")[0]
    found = {**schema, "name": name}
    found.pop("namespace", None)
    if isinstance(schema.get("fields"), list):
        found["fields"] = [_field(field, space) for field in schema["fields"]]
    aliases = schema.get("aliases")
    if isinstance(aliases, list):
        found["aliases"] = [full_name(alias, space) if isinstance(alias, str) else alias for alias in aliases]
    return found


def _field(field: Any, namespace: str) -> Any:
    if not isinstance(field, dict):
        return field
    found = {**field, "type": _avro(field.get("type"), namespace)}
    if found.get("order") == "ascending":
        del found["order"]
    return found
