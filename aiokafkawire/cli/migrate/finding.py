"""A place in a code base that uses another Kafka client."""

from typing import Final

import attrs

from .advice import Advice, Library, Severity

__all__ = ("PAGE", "Finding", "finding_of")

PAGE: Final = "Moving from another client"
"""The title of the documentation's page about the findings: docs/migrating.md."""


@attrs.frozen(kw_only=True)
class Finding:
    """A place in a file, what it uses, and what to do about it."""

    line: int
    column: int
    library: str
    """The name of the distribution, such as ``kafka-python``."""
    name: str
    """The full name that is used, with the argument or the setting where it is one."""
    severity: Severity
    advice: str
    """What stands for it here."""
    differs: str
    """What differs without an error; may be empty."""
    own_api: str
    """Of a name that the drop-in has: what stands for it in the client's own API; otherwise empty."""
    section: str
    """The section of the documentation's page about the library."""


def finding_of(library: Library, name: str, advice: Advice, place: tuple[int, int]) -> Finding:
    """Return the finding about a name at a place, which is its line and column."""
    return Finding(
        line=place[0],
        column=place[1],
        library=library.distribution,
        name=name,
        severity=advice.severity,
        advice=advice.ours,
        differs=advice.differs,
        own_api=advice.own_api,
        section=library.section,
    )
