"""Brokers that speak less than they could, as older ones do that no client of today can bootstrap from."""

from collections.abc import Mapping
from typing import Any

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import ApiVersion, ApiVersionsResponse
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.testing.broker import Broker

__all__ = ("speaks",)


def speaks(broker: Broker, changes: Mapping[ApiKey, str]) -> None:
    """Have the broker say so, to all who ask from now on: versions by API, "none" for an API that it does not know."""

    def answer(request: Any, true: Any) -> ApiVersionsResponse:
        kept = [one for one in true.api_keys if one.api_key not in changes]
        for key, text in changes.items():
            versions = Versions.parse(text)
            if versions.last >= versions.first:
                kept.append(ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last))
        return ApiVersionsResponse(error_code=true.error_code, api_keys=kept)

    broker.on(ApiKey.API_VERSIONS, answer=answer, times=None)
