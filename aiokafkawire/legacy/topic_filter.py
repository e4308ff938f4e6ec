"""Parses the topic filters that consumers of Kafka 0.7 register: Java regular expressions, or lists with commas."""

import re
from functools import lru_cache
from typing import Final

from ..errors import ConfigError
from .java_regex import UnsupportedRegex, java_regex

__all__ = ("compile_filter", "normalize_filter")

_TRIMMED: Final = "".join(map(chr, range(33)))
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def normalize_filter(text: str) -> str:
    """Return a filter as Java's clients register it: with ``|`` for commas, without blanks and enclosing quotes."""
    regex = text.strip(_TRIMMED).replace(",", "|").replace(" ", "")
    return regex.lstrip("\"'").rstrip("\"'")


@lru_cache(maxsize=64)
def compile_filter(text: str) -> re.Pattern[str]:
    """Compile a filter, which selects the topics whose whole name matches.

    Raises:
        ConfigError: Java's clients refuse the filter, or it cannot be translated to Python.
    """
    regex = normalize_filter(text)
    try:
        bad = _UNWRITABLE.search(regex)
        if bad is not None:
            raise UnsupportedRegex(f"{bad[0]!r} cannot be registered")
        return java_regex(regex)
    except UnsupportedRegex as cause:
        read_as = f", which Kafka 0.7 reads as {regex!r:.300}" if regex != text else ""
        raise ConfigError(
            f"the topic filter {text!r:.300}{read_as}, cannot be used: {cause}. A filter is a regular expression of"
            " Java, in which ',' stands for '|' and blanks for nothing"
        ) from cause
