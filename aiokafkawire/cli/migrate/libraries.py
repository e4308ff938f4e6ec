"""The libraries that a program may move from, and the advice about any of their names."""

from collections.abc import Mapping
from typing import Final

from .advice import Advice, Library
from .aiokafka_names import AIOKAFKA
from .confluent_names import CONFLUENT_KAFKA
from .kafka_python_names import KAFKA_PYTHON

__all__ = ("LIBRARIES", "advice_for", "library_of")

LIBRARIES: Final[Mapping[str, Library]] = {each.name: each for each in (AIOKAFKA, CONFLUENT_KAFKA, KAFKA_PYTHON)}
"""The libraries, by the name of the package."""


def library_of(module: str) -> Library | None:
    """Return the library to which a module or a qualified name belongs."""
    return LIBRARIES.get(module.partition(".")[0])


def advice_for(library: Library, qualified: str) -> Advice:
    """Return the advice about a qualified name, such as ``kafka.admin.NewTopic``, or ``kafka.KafkaProducer.send``.

    A class counts as the same in whichever module it is imported from, and so do its members.
    """
    parts = qualified.split(".")
    if len(parts) == 1:
        return library.names[library.name]
    for last in (2, 1):
        found = library.names.get(".".join(parts[1:][-last:]))
        if found is not None and (last == 1 or len(parts) > 2):
            return found
    if "errors" in parts or parts[-1].endswith(("Error", "Exception")):
        return library.names["errors"]
    modules = [library.names[part] for part in parts[1:-1] if part in library.names and part.islower()]
    return modules[-1] if modules else library.unknown
