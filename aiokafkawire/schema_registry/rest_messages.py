"""The requests and responses of the registry's REST API, in JSON."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

import attrs

from .._printable import printable
from ..errors import SchemaRegistryError, UsageError
from .schemas import CompatibilityResult, RegisteredSchema, Schema, SchemaReference, SchemaType

__all__ = (
    "MEDIA_TYPE",
    "RestRequest",
    "is_retriable",
    "parse_compatibility",
    "parse_error",
    "parse_field",
    "parse_integer",
    "parse_integers",
    "parse_json",
    "parse_registered",
    "parse_schema",
    "parse_strings",
    "schema_body",
)

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_RETRIABLE: Final = frozenset((408, 429, 500, 502, 503, 504))
_OTHER_USER: Final = frozenset((401, 403, 407))
"""The statuses that say nothing of what was asked for, but of the user, whose rights can change."""
_EXCERPT: Final = 200
_MAX_MESSAGE: Final = 2_000
"""The number of characters of a registry's message that errors show: a refusal of a schema names its differences."""


@attrs.frozen
class RestRequest:
    """A request of the REST API.

    Attributes:
        method: the HTTP method.
        path: the parts of the path, which are not quoted.
        query: the parameters.
        body: the object to send as JSON; None for no body.
    """

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: tuple[str | int, ...]
    query: Mapping[str, str | int | bool] = attrs.field(factory=dict)
    body: Mapping[str, Any] | None = None

    def __attrs_post_init__(self) -> None:
        for part in self.path:
            if part in (".", ".."):
                raise UsageError(
                    f"the schema registry cannot be asked for {part!r}: URLs cannot name it, as they remove the part "
                    f"{part!r} from paths, and the request would reach something else; use another name"
                )

    @property
    def target(self) -> str:
        """The path with its query, relative to the registry's URL."""
        path = "/".join(quote(str(part), safe="") for part in self.path)
        values = {name: str(value).lower() if isinstance(value, bool) else value for name, value in self.query.items()}
        return f"{path}?{urlencode(values)}" if values else path

    @property
    def content(self) -> bytes | None:
        """The body as bytes."""
        return None if self.body is None else json.dumps(self.body).encode()

    @property
    def can_repeat(self) -> bool:
        """Whether a second request has the same result although the first was done."""
        return self.method != "DELETE"

    def __str__(self) -> str:
        return f"{self.method} /{self.target}"


def is_retriable(status: int) -> bool:
    """Return whether the same request may succeed later, or at another registry."""
    return status in _RETRIABLE


def schema_body(schema: Schema) -> dict[str, Any]:
    """Return a schema as the body of a request."""
    body: dict[str, Any] = {"schema": schema.text}
    if schema.schema_type is not SchemaType.AVRO:  # as in registries that know no other
        body["schemaType"] = schema.schema_type.value
    if schema.references:
        body["references"] = [attrs.asdict(reference) for reference in schema.references]
    return body


def parse_json(content: bytes, source: str, status: int) -> Any:
    """Return the JSON of a response. Raise SchemaRegistryError if it is something else; ``source`` names it."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise _strange(source, status, content) from None


def parse_error(content: bytes, source: str, status: int) -> SchemaRegistryError:
    """Return the error of a response with an error status."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        answer = None
    fields = answer if isinstance(answer, dict) else {}
    message = str(fields["message"]) if "message" in fields else content[:_EXCERPT].decode("utf-8", "replace")
    message = printable(" ".join(message[:_MAX_MESSAGE].split()))
    code = fields["error_code"] if isinstance(fields.get("error_code"), int) else None
    # Without a code it is no answer of a registry, but a redirection or a page of what is in front of it.
    retriable = code is None or status >= 500 or is_retriable(status) or status in _OTHER_USER
    number = f" (error code {code})" if code is not None and code != status else ""
    advice = _ADVICE.get(status, "")
    return SchemaRegistryError(f"{source}: HTTP status {status}{number}: {message}{advice}", status, code, retriable)


_ADVICE: Final = {
    401: ": set basic_auth_user_info or bearer_auth_token",
    403: ": this user may not do it; check its rights in the registry",
}


def _strange(source: str, status: int | None, content: object, *, retriable: bool = True) -> SchemaRegistryError:
    text = content[:_EXCERPT] if isinstance(content, bytes) else f"{content!r:.{_EXCERPT}}"
    message = f"{source}: the response is not a schema registry's: {text!r}; check the URL"
    return SchemaRegistryError(message, status, retriable=retriable)


def parse_schema(answer: Any, source: str) -> Schema:
    """Return the schema in a response."""
    try:
        references = tuple(
            SchemaReference(one["name"], one["subject"], one["version"]) for one in answer.get("references") or ()
        )
        return Schema(answer["schema"], SchemaType(answer.get("schemaType") or "AVRO"), references)
    except (AttributeError, KeyError, TypeError, ValueError, UsageError):
        is_of_a_registry = isinstance(answer, dict) and isinstance(answer.get("schema"), str)
        raise _strange(source, 200, answer, retriable=not is_of_a_registry) from None


def parse_registered(answer: Any, source: str, subject: str, schema: Schema | None = None) -> RegisteredSchema:
    """Return a registered schema; ``schema`` is its schema if the caller has it, and else in the response."""
    schema_id = parse_integer(answer, "id", source)
    version, guid = answer.get("version"), answer.get("guid")
    return RegisteredSchema(
        answer.get("subject") or subject,
        schema_id,
        parse_schema(answer, source) if schema is None else schema,
        version if isinstance(version, int) else None,
        guid if isinstance(guid, str) and guid else None,
    )


def parse_integer(answer: Any, name: str, source: str) -> int:
    """Return an integer field of a response, which is an object."""
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**32:
        raise _strange(source, 200, answer)
    return value


def parse_field(answer: Any, source: str, *names: str) -> str:
    """Return the first of several fields that a response, which is an object, has."""
    for name in names:
        if isinstance(answer, dict) and isinstance(answer.get(name), str):
            return str(answer[name])
    raise _strange(source, 200, answer)


def parse_strings(answer: Any, source: str) -> tuple[str, ...]:
    """Return a response that is a list of strings."""
    if not isinstance(answer, list) or not all(isinstance(one, str) for one in answer):
        raise _strange(source, 200, answer)
    return tuple(answer)


def parse_integers(answer: Any, source: str) -> tuple[int, ...]:
    """Return a response that is a list of integers."""
    if not isinstance(answer, list) or not all(isinstance(one, int) for one in answer):
        raise _strange(source, 200, answer)
    return tuple(answer)


def parse_compatibility(answer: Any, source: str) -> CompatibilityResult:
    """Return the result of a check of compatibility."""
    if not isinstance(answer, dict) or not isinstance(answer.get("is_compatible"), bool):
        raise _strange(source, 200, answer)
    messages = answer.get("messages") or []
    if not isinstance(messages, list):
        raise _strange(source, 200, answer)
    return CompatibilityResult(answer["is_compatible"], tuple(map(str, messages)))
