"""The effective settings of topics, brokers, groups and client metrics: their own values and the defaults."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from .broker_configs import BROKER_SYNONYMS
from .tables import ConfigTables
from .types import ConfigKind, ConfigValueSource, Definition

__all__ = ("ALL_BROKERS", "Configs", "Synonym")

ALL_BROKERS: Final = ""
"""The name of the resource with the dynamic defaults of all brokers (KIP-226)."""

_MS_PER: Final = {"hours": 3_600_000, "minutes": 60_000, "ms": 1}


@attrs.frozen
class Synonym:
    """The value that one source has for a setting, by a name such as ``log.retention.hours`` for ``retention.ms``."""

    name: str
    value: str | None
    source: ConfigValueSource


class Configs:
    """The settings that requests can change, except topics' own values, which the topics store.

    1. A topic's own value overrides the brokers' dynamic default, which overrides the static value of the broker, which
       overrides Kafka's default.
    2. A value set for one broker is effective on that broker only.
    3. Values are stored as they were sent, and returned in Kafka's spelling.

    Args:
        settings: the static settings of the brokers; attributes are Kafka's property names with underscores for dots.
        tables: the definitions of all settings.
    """

    def __init__(self, settings: attrs.AttrsInstance | None = None, tables: ConfigTables | None = None) -> None:
        self.tables: ConfigTables = tables or ConfigTables()
        given = {} if settings is None else {name: _text(value) for name, value in self._properties(settings)}
        self.static: dict[str, str] = {
            name: value for name, value in given.items() if value != self.tables.brokers[name].default
        }
        """The static settings of the brokers that differ from Kafka's defaults."""
        self._dynamic: dict[tuple[ConfigKind, str], dict[str, str]] = {}
        self._topic_defaults: dict[tuple[str, int | None], str] = {}  # results of topic_default()
        self._of_groups: dict[tuple[str, str], str] = {}  # results of group()
        # A new cluster sets min.insync.replicas dynamically for all brokers (KIP-966).
        least = self.static.pop("min.insync.replicas", "1")
        self.replace(ConfigKind.BROKER, ALL_BROKERS, {"min.insync.replicas": least})

    def own(self, kind: ConfigKind, name: str) -> dict[str, str]:
        """Return a copy of the values that requests have set for this resource."""
        return dict(self._dynamic.get((kind, name), {}))

    def replace(self, kind: ConfigKind, name: str, configs: Mapping[str, str]) -> None:
        """Replace all values set for a resource by ``configs``."""
        self._topic_defaults.clear()
        self._of_groups.clear()
        if configs:
            self._dynamic[kind, name] = dict(configs)
        else:
            self._dynamic.pop((kind, name), None)

    def named(self, kind: ConfigKind) -> list[str]:
        """Return the names of all resources of this type for which a value is set."""
        return [name for resource_type, name in self._dynamic if resource_type is kind]

    def synonyms(self, name: str, node: int | None = None, given: Mapping[str, str] | None = None) -> list[Synonym]:
        """Return all sources of a broker setting's value, the effective source first.

        ``node`` is the broker whose dynamic settings apply besides those of all brokers, if any; ``given`` are its own
        static settings. The list is empty if only a setting in another unit has a value.
        """
        found = list(self._synonyms(name, node, given or {}))
        while found and found[0].name != name:
            del found[0]
        return found

    def topic_default(self, name: str, node: int | None = None) -> str:
        """Return the default of a topic's setting, as Kafka spells it.

        ``node`` is the broker whose dynamic settings apply besides those of all brokers; None for no such broker.

        Raises:
            KeyError: topics have no such setting.
        """
        known = self._topic_defaults.get((name, node))
        if known is None:
            known = self._topic_defaults[name, node] = self._default(self.tables.topics[name], node)
        return known

    def group(self, group: str, name: str) -> str:
        """Return the effective value of a group's setting, such as ``consumer.session.timeout.ms``.

        Raises:
            KeyError: groups have no such setting.
        """
        known = self._of_groups.get((group, name))
        if known is None:
            own = self._dynamic.get((ConfigKind.GROUP, group), {}).get(name)
            definition = self.tables.groups[name]
            known = self._default(definition, None) if own is None else definition.parse(own)
            self._of_groups[group, name] = known
        return known

    def broker(self, name: str, node: int) -> str:
        """Return the effective value of a broker's setting, such as ``transaction.partition.verification.enable``.

        Raises:
            KeyError: brokers have no such setting.
        """
        definition = self.tables.brokers[name]
        value = self.synonyms(name, node)[0].value
        return definition.parse(value) if value is not None else ""

    def _default(self, definition: Definition, node: int | None) -> str:
        first = next(self._synonyms(definition.synonym, node, {}), None) if definition.synonym else None
        if first is None or first.value is None:
            return definition.default or ""
        unit = first.name.rpartition(".")[2]
        if first.name != definition.synonym and unit in _MS_PER:
            return str(int(first.value) * _MS_PER[unit])
        return definition.parse(first.value)

    def _synonyms(self, name: str, node: int | None, given: Mapping[str, str]) -> Iterator[Synonym]:
        names = BROKER_SYNONYMS.get(name, (name,))
        for source, values in self._sources(names, node, given):
            for synonym in names:
                value = values.get(synonym)
                if value is not None:
                    yield Synonym(synonym, value, source)

    def _sources(
        self, names: Sequence[str], node: int | None, given: Mapping[str, str]
    ) -> Iterator[tuple[ConfigValueSource, Mapping[str, str | None]]]:
        if node is not None:
            yield ConfigValueSource.DYNAMIC_BROKER, {**self._dynamic.get((ConfigKind.BROKER, str(node)), {})}
        yield ConfigValueSource.DYNAMIC_DEFAULT_BROKER, {**self._dynamic.get((ConfigKind.BROKER, ALL_BROKERS), {})}
        yield ConfigValueSource.STATIC_BROKER, {**self.static, **given}
        known = self.tables.brokers
        yield ConfigValueSource.DEFAULT, {key: known[key].default for key in names if key in known}

    def _properties(self, settings: attrs.AttrsInstance) -> Iterator[tuple[str, object]]:
        for field in attrs.fields(type(settings)):
            if getattr(settings, field.name) is None:
                continue
            name = field.name.replace("_", ".")
            if name in self.tables.brokers:
                yield name, getattr(settings, field.name)
            elif f"log.{name}" in self.tables.brokers:
                yield f"log.{name}", getattr(settings, field.name)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
