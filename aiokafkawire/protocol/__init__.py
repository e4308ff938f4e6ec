"""The protocol: primitives, declared messages, and the functions compiled from them. No I/O, no clock."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .api import ApiKey, RequestHeader, ResponseHeader, request_header_version, response_header_version
    from .compiler import IMPLEMENTATION, decode, decode_prefix, encode
    from .message_registry import request_of
    from .schema import Message, Request, Response, Versions, field, message, nested, schema_of

__all__ = (
    "ApiKey",
    "IMPLEMENTATION",
    "Message",
    "Request",
    "RequestHeader",
    "Response",
    "ResponseHeader",
    "Versions",
    "decode",
    "decode_prefix",
    "encode",
    "field",
    "message",
    "nested",
    "request_header_version",
    "request_of",
    "response_header_version",
    "schema_of",
)

_MODULES = {
    "ApiKey": ".api",
    "IMPLEMENTATION": ".compiler",
    "Message": ".schema",
    "Request": ".schema",
    "RequestHeader": ".api",
    "Response": ".schema",
    "ResponseHeader": ".api",
    "Versions": ".schema",
    "decode": ".compiler",
    "decode_prefix": ".compiler",
    "encode": ".compiler",
    "field": ".schema",
    "message": ".schema",
    "nested": ".schema",
    "request_header_version": ".api",
    "request_of": ".message_registry",
    "response_header_version": ".api",
    "schema_of": ".schema",
}
__getattr__: Callable[[str], object] = lazy_exports(__name__, _MODULES)
