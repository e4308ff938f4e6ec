"""Writes moments as dates."""

from datetime import UTC, datetime

__all__ = ("iso_time",)


def iso_time(timestamp_ms: int) -> str:
    """Return a timestamp as ISO 8601 in UTC, with ms; a dash if there is none or no calendar has the year."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return "-"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"
