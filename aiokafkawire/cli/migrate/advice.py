"""Advice about a name of another Kafka client: what stands for it here, and what differs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

__all__ = ("ERRORS", "PRIVATE", "RECORDS", "Advice", "Library", "Severity", "hinted", "no_counterpart", "same")


class Severity(StrEnum):
    """How much work a name is."""

    DROP_IN = "drop-in"
    """It changes by itself with ``aiokafkawire.aiokafka``."""
    LOOK = "look"
    """A person has to look at it."""
    NO_COUNTERPART = "no-counterpart"
    """This client has nothing like it."""


@attrs.frozen
class Advice:
    """The counterpart of a name here, and the differences that no error shows."""

    ours: str
    differs: str = ""
    severity: Severity = Severity.LOOK
    own_api: str = ""
    """Of a name that the drop-in has: what stands for it in the client's own API, with the differences."""


@attrs.frozen(kw_only=True)
class Library:
    """Another Kafka client, and the advice about what it exports.

    The keys of the table are names of classes, functions and modules, and methods and attributes as ``Class.name``.
    """

    name: str
    """The name of the package that programs import."""
    distribution: str
    section: str
    """The title of its section in docs/migrating.md."""
    names: Mapping[str, Advice]
    bases: Mapping[str, str] = attrs.field(factory=dict)
    """The classes whose members a class has as well."""
    results: Mapping[str, str]
    """The classes of what methods return and of what iterating gives, by method, where they matter."""
    unknown: Advice
    """The advice about names that the table does not have."""


def hinted(owner: str, hints: Mapping[str, str], *names: str) -> dict[str, Advice]:
    """Return advice about members of a class whose counterparts other_clients_names.py has."""
    return {f"{owner}.{name}": Advice(hints[name]) for name in names}


def same(*names: str) -> dict[str, Advice]:
    """Return the advice about classes of which this client has others with the same names."""
    return dict.fromkeys(names, Advice("the class of the same name", "compare its arguments and attributes"))


def no_counterpart(why: str) -> Advice:
    """Return the advice about a name for which this client has nothing."""
    return Advice(why, severity=Severity.NO_COUNTERPART)


ERRORS: Final = Advice(
    "`aiokafkawire.errors`: a class for each error code, all of them `KafkaError`",
    "`error.retriable` of a `BrokerError` says whether a retry can help, and the client retries such errors itself",
)
RECORDS: Final = Advice("`ConsumerRecord`", "a record is immutable; `record.detach()` frees the batch that it is from")
PRIVATE: Final = Advice("it is private: find out what it is read for, and use `health()` or `metrics()` instead")
