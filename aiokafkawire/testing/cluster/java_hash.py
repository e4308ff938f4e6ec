"""Java's hash of a string, which decides where Kafka puts things."""

__all__ = ("java_hash",)


def java_hash(text: str) -> int:
    """What Java's ``String.hashCode`` gives, as an unsigned int."""
    value = 0
    data = text.encode("utf-16-be")
    for index in range(0, len(data), 2):
        value = (31 * value + (data[index] << 8) + data[index + 1]) & 0xFFFF_FFFF
    return value
