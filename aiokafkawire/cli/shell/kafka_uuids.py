"""Writes and reads UUIDs as Kafka's tools, logs and files do: 22 characters of base64."""

import base64
import re
from uuid import UUID

__all__ = ("uuid_of", "uuid_text")


def uuid_text(uuid: UUID) -> str:
    """Return the UUID as Kafka writes it."""
    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def uuid_of(text: str) -> UUID | None:
    """Return the UUID that a text means, as Kafka writes it or in hexadecimal; None if it means none."""
    if re.fullmatch(r"[A-Za-z0-9_-]{22}", text):
        return UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))
    try:
        return UUID(text)
    except ValueError:
        return None
