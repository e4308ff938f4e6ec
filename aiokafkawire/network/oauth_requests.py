"""Makes the requests for tokens: by a secret (KIP-768), by an assertion (KIP-1139, KIP-1258), or for metadata."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus

import attrs

from ..config.oauth import JWT_BEARER, OAuthConfig
from ..errors import ConfigError

__all__ = ("AssertionTemplate", "TokenRequest", "assertion_parts", "parse_template", "token_request")

_CLIENT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_FORM: Final = "application/x-www-form-urlencoded"


@attrs.frozen
class TokenRequest:
    """A request to a token endpoint: a POST of a form, or a GET without one."""

    form: Mapping[str, str] | None = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    secrets: tuple[str, ...] = attrs.field(repr=False)
    """The texts that no error may show."""
    settings: str
    """The settings to look at if the endpoint refuses."""


def token_request(config: OAuthConfig, assertion: str | None) -> TokenRequest:
    """Return the request that the settings ask for, with ``assertion`` if they ask for one."""
    headers = {"Accept": "application/json"}
    if config.sasl_oauthbearer_metadata_authentication_type == "azure_imds":
        return TokenRequest(None, {**headers, "Metadata": "true"}, (), "sasl_oauthbearer_token_endpoint_url")
    headers["Content-Type"] = _FORM
    scope = {"scope": config.sasl_oauthbearer_scope} if config.sasl_oauthbearer_scope else {}
    if assertion is not None:
        return TokenRequest({**_assertion_form(config, assertion), **scope}, headers, (assertion,),
                            "sasl_oauthbearer_assertion_... and _scope")  # fmt: skip
    login = [str(config.sasl_oauthbearer_client_id), str(config.sasl_oauthbearer_client_secret)]
    if config.sasl_oauthbearer_header_urlencode:
        login = [quote_plus(part) for part in login]
    known = base64.b64encode(":".join(login).encode()).decode()
    headers["Authorization"] = f"Basic {known}"
    form = {"grant_type": "client_credentials", **scope}
    secrets = (str(config.sasl_oauthbearer_client_secret), login[1], known)
    return TokenRequest(form, headers, secrets, "sasl_oauthbearer_client_id, _client_secret and _scope")


def _assertion_form(config: OAuthConfig, assertion: str) -> dict[str, str]:
    if config.sasl_oauthbearer_grant_type == JWT_BEARER:
        return {"grant_type": JWT_BEARER, "assertion": assertion}
    form = {
        "grant_type": "client_credentials",
        "client_assertion_type": _CLIENT_ASSERTION,
        "client_assertion": assertion,
    }
    if config.sasl_oauthbearer_client_id:
        form["client_id"] = config.sasl_oauthbearer_client_id
    return form


@attrs.frozen
class AssertionTemplate:
    """The fields that a template file adds to the header and to the claims of an assertion."""

    header: Mapping[str, Any] = attrs.field(factory=dict)
    payload: Mapping[str, Any] = attrs.field(factory=dict)


def parse_template(source: str, data: bytes) -> AssertionTemplate:
    """Parse a template file; ``source`` is its name in errors.

    Raises:
        ConfigError: it is no JSON object whose ``header`` and ``payload``, if there, are objects.
    """
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        parsed = None
    given: Any = parsed if isinstance(parsed, dict) else {"header": None}
    header, payload = given.get("header", {}), given.get("payload", {})
    if not isinstance(header, dict) or not isinstance(payload, dict):
        raise ConfigError(f"{source} must be a JSON object with the objects header and payload")
    return AssertionTemplate(header, payload)


def assertion_parts(
    config: OAuthConfig, template: AssertionTemplate, now_s: int, jti: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the claims of an assertion that is made at ``now_s``, with the id ``jti`` if it has one.

    As in Java, the template replaces the settings' ``iss``, ``sub`` and ``aud``; times and algorithm are the settings'.
    """
    named = {
        "iss": config.sasl_oauthbearer_assertion_claim_iss,
        "sub": config.sasl_oauthbearer_assertion_claim_sub,
        "aud": config.sasl_oauthbearer_assertion_claim_aud,
    }
    claims: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    claims |= template.payload
    claims["iat"] = now_s
    claims["exp"] = now_s + config.sasl_oauthbearer_assertion_claim_exp_seconds
    claims["nbf"] = now_s - config.sasl_oauthbearer_assertion_claim_nbf_seconds
    if config.sasl_oauthbearer_assertion_claim_jti_include:
        claims["jti"] = jti
    return {**template.header, "alg": config.sasl_oauthbearer_assertion_algorithm, "typ": "JWT"}, claims
