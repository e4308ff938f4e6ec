"""Java's hash of a string, by which Kafka assigns groups and transactional ids to partitions of internal topics."""

from functools import lru_cache

__all__ = ("java_hash",)


@lru_cache(1024)
def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode`` as an unsigned int."""
    value = 0
    data = text.encode("utf-16-be")
    for index in range(0, len(data), 2):
        value = (31 * value + (data[index] << 8) + data[index + 1]) & 0xFFFF_FFFF
    return value
