"""The SASL mechanism AWS_MSK_IAM, whose token is a request to AWS, signed with Signature V4, valid for 15 minutes."""

import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final
from urllib.parse import quote

from ..errors import AuthenticationFailed, ConfigError
from ..types import AwsCredentials
from .sasl import Exchange, Need

__all__ = ("aws_msk_iam", "region_of", "signed_payload")

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SERVICE: Final = "kafka-cluster"
_ACTION: Final = "kafka-cluster:Connect"
_SECONDS: Final = "900"
_VERSION: Final = "2020_10_22"
_SHOWN: Final = 200


def region_of(host: str) -> str | None:
    """Return the region in a broker's name, such as ``b-1.x.kafka.eu-west-1.amazonaws.com``; None if it has none."""
    labels = host.lower().rstrip(".").split(".")
    for before, label in pairwise(labels):
        if before in ("kafka", "kafka-serverless") and "amazonaws" in labels:
            return label
    return None


def aws_msk_iam(host: str, region: str | None, wall_ms: Callable[[], int]) -> Exchange:
    """Authenticate at an MSK broker with AWS credentials.

    Args:
        host: the broker's name.
        region: the broker's region; None to read the region from the name.
        wall_ms: the clock, in ms since the epoch.

    Raises:
        ConfigError: no region is given, and the name contains none.
        AuthenticationFailed: the broker's response is invalid.
    """
    region = region or region_of(host)
    if region is None:
        raise ConfigError(f"sasl_aws_region is needed: the name {host!r} does not contain the region")
    credentials = yield Need.AWS_CREDENTIALS
    answer = yield signed_payload(credentials, host, region, wall_ms())
    try:
        parsed = json.loads(answer)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict) or parsed.get("version") != _VERSION:
        raise AuthenticationFailed(f"AWS_MSK_IAM: the broker answered {bytes(answer[:_SHOWN])!r}")


def signed_payload(credentials: AwsCredentials, host: str, region: str, now_ms: int) -> bytes:
    """Return the SASL token: JSON with the signed fields and the signature.

    Args:
        credentials: the credentials to sign with.
        host: the broker's name.
        region: the broker's region.
        now_ms: the time of signing, in ms since the epoch.
    """
    moment = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/{_SERVICE}/aws4_request"
    signed = {
        "Action": _ACTION,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key_id}/{scope}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": _SECONDS,
        "X-Amz-SignedHeaders": "host",
    }
    if credentials.session_token:
        signed["X-Amz-Security-Token"] = credentials.session_token
    query = "&".join(f"{quote(name, safe='')}={quote(signed[name], safe='')}" for name in sorted(signed))
    nothing = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{query}\nhost:{host}\n\nhost\n{nothing}"
    to_sign = f"{_ALGORITHM}\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in (moment[:8], region, _SERVICE, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    payload = {
        "version": _VERSION,
        "host": host,
        "user-agent": "aiokafkawire",
        **{name.lower(): value for name, value in signed.items()},
        "x-amz-signature": hmac.digest(key, to_sign.encode(), "sha256").hex(),
    }
    return json.dumps(payload, separators=(",", ":")).encode()
