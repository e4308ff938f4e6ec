"""The libraries that a program may move from, and the advice about any of their names."""

import re
from collections.abc import Mapping
from typing import Final

import attrs

from ...config import ClientConfig, ConsumerConfig, ProducerConfig
from ...config.property_names import CONFLUENT_CALLBACKS, REFUSED
from ...other_clients_names import setting_hint
from .advice import PRIVATE, Advice, Library, Severity
from .aiokafka_names import AIOKAFKA, DROP_IN_MODULES
from .confluent_names import CONFLUENT_KAFKA
from .kafka_python_names import KAFKA_PYTHON

__all__ = (
    "DEPENDENCY",
    "LIBRARIES",
    "advice_for",
    "argument_advice",
    "dependency_advice",
    "has_drop_in",
    "is_class",
    "library_of",
    "member_advice",
    "setting_advice",
)

LIBRARIES: Final[Mapping[str, Library]] = {each.name: each for each in (AIOKAFKA, CONFLUENT_KAFKA, KAFKA_PYTHON)}
"""The libraries, by the name of the package that programs import."""

DEPENDENCY: Final = re.compile(
    r"(?<![\w./-])(aiokafka|confluent[-_]kafka|kafka[-_]python(?:-ng)?)(?![\w./-])", re.IGNORECASE
)
"""The name of a distribution in a list of dependencies."""

_CONFIGS: Final[Mapping[str, type]] = {
    "Producer": ProducerConfig,
    "Consumer": ConsumerConfig,
    "AdminClient": ClientConfig,
}
_SERIALIZERS: Final = ("key_serializer", "value_serializer", "key_deserializer", "value_deserializer")


def library_of(name: str) -> Library | None:
    """Return the library to which a module or a qualified name belongs."""
    return LIBRARIES.get(name.partition(".")[0])


def is_class(library: Library, name: str) -> bool:
    """Return whether the library has a class of that name whose members the table knows."""
    return name in library.bases or any(key.startswith(f"{name}.") for key in library.names)


def advice_for(library: Library, qualified: str, *, known_only: bool = False) -> Advice | None:
    """Return the advice about a qualified name, such as ``kafka.admin.NewTopic``.

    A class counts as the same in whichever module it is imported from.

    Args:
        library: the library to which the name belongs.
        qualified: the full name.
        known_only: return None for names that the table does not have, since they may belong to another package.
    """
    found = _looked_up(library, qualified.split("."), known_only=known_only)
    if found is not None and has_drop_in(qualified):
        own_api = f"{found.ours}; {found.differs}" if found.differs else found.ours
        return Advice("import it from `aiokafkawire.aiokafka`, which does the same", "", Severity.DROP_IN, own_api)
    if found is None or found.severity is not Severity.DROP_IN:
        return found
    return Advice(found.ours, "the drop-in does not have it")


def has_drop_in(qualified: str) -> bool:
    """Return whether the drop-in has a module of aiokafka, a public name of one, or a member of a class."""
    module, _, name = qualified.rpartition(".")
    package, _, owner = module.rpartition(".")
    if qualified in DROP_IN_MODULES:
        return True
    within, held = (package, owner) if owner[:1].isupper() else (module, name)
    if name.startswith("_") or within not in DROP_IN_MODULES:
        return False
    names = DROP_IN_MODULES[within]
    return names is None or held in names


def _looked_up(library: Library, parts: list[str], *, known_only: bool) -> Advice | None:
    if len(parts) == 1:
        return None if known_only else library.names[library.name]
    if any(part.startswith("_") and not part.endswith("__") for part in parts):
        return None if known_only else PRIVATE
    found = member_advice(library, parts[-2], parts[-1])
    if found is None and not (known_only and parts[-1].islower()):
        found = library.names.get(parts[-1])
    if found is not None:
        return found
    if known_only:
        return None
    if "errors" in parts or parts[-1].endswith(("Error", "Exception")):
        return library.names["errors"]
    modules = [library.names[part] for part in parts[1:-1] if part in library.names]
    return modules[0] if modules else library.unknown


def member_advice(library: Library, owner: str, name: str) -> Advice | None:
    """Return the advice about a method or an attribute of a class; None where nothing has to be done."""
    found = library.names.get(f"{owner}.{name}") or library.names.get(f"{library.bases.get(owner, owner)}.{name}")
    if found is None and library is not CONFLUENT_KAFKA and name.startswith("_") and not name.startswith("__"):
        return PRIVATE  # the classes of confluent-kafka have no private members
    return found


def argument_advice(library: Library, owner: str, name: str) -> Advice | None:
    """Return the advice about an argument of a constructor; None where nothing has to be done.

    The drop-in takes the arguments of aiokafka, and confluent-kafka has settings instead.
    """
    config = _CONFIGS.get(owner.removeprefix("Kafka")) if library is KAFKA_PYTHON else None
    if config is None or name in _SERIALIZERS or name == "bootstrap_servers":
        return None
    fields = {each.__name__: [field.name for field in attrs.fields(each)] for each in _CONFIGS.values()}
    if name in fields[config.__name__] or name in fields["ClientConfig"]:
        return None
    hint = setting_hint(config.__name__, name, fields[config.__name__], fields)
    if hint.startswith("here: "):
        return Advice(hint.removeprefix("here: "))
    return Advice("no setting here has this name: leave it out, or see 'Settings' of the documentation")


def setting_advice(name: str, value: str | None) -> Advice | None:
    """Return the advice about a setting of confluent-kafka; None where ``from_confluent`` takes it.

    Args:
        name: the name, such as ``linger.ms``.
        value: its value, if the code says it.
    """
    if name in CONFLUENT_CALLBACKS:
        return None if value == "None" else Advice(CONFLUENT_CALLBACKS[name])
    refused = REFUSED.get(name)
    if refused is None or (value is not None and refused.accepts(value)):
        return None
    return Advice(refused.why)


def dependency_advice(distribution: str) -> tuple[Library, Advice]:
    """Return the library of a distribution that a project depends on, and the advice about it."""
    plain = distribution.lower().replace("_", "-").removesuffix("-ng")
    library = next(each for each in LIBRARIES.values() if each.distribution == plain)
    return library, Advice("depend on `aiokafkawire` as well, and remove it at the end", severity=Severity.LOOK)
