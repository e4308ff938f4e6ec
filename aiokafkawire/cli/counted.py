"""Numbers with their nouns, for what commands print."""

__all__ = ("counted",)


def counted(number: int, noun: str, plural: str = "s") -> str:
    """Return a number and its noun, with the ending ``plural`` unless the number is 1: "1 topic", "2 topics"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}{plural}"
