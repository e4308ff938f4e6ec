"""The numbers of quotas as text, and which of them brokers can keep. Plain functions."""

__all__ = ("quota_text", "rounding_of")


def quota_text(value: float) -> str:
    """Return a quota's value without an exponent and without zeros that say nothing."""
    text = f"{value:.6f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else f"{value:.0f}"
    return text if float(text) == value else repr(value)


def rounding_of(number: int) -> str | None:
    """Return why a quota cannot be this whole number; None if it can be, which holds for all up to 2 to the 53rd."""
    if int(float(number)) == number:
        return None
    why = "cannot be kept exactly, since brokers keep quotas as floating-point numbers"
    return f"{why}: {number} would become {quota_text(float(number))}"
