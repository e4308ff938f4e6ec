"""Brokers that know less than others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.primitives import ZERO_UUID

__all__ = ("without_topics",)


def without_topics(*names: str) -> Callable[[Any, Any], Any]:
    """Return the answer to Metadata of a broker that does not know these topics yet, by default all topics."""

    def answer(_: Any, response: Any) -> Any:
        for topic in response.topics:
            if not names or topic.name in names:
                topic.error_code, topic.topic_id = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ZERO_UUID
                topic.partitions = []
        return response

    return answer
