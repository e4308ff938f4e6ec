"""A place in a code base that uses another Kafka client."""

import attrs

from .advice import Advice, Library, Severity

__all__ = ("PAGE", "Finding", "finding_of")

PAGE = "docs/migrating.md"


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
    link: str


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
        link=f"{PAGE}#{library.section}",
    )
