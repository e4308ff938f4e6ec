"""The settings in force: what topics, brokers, groups and client metrics were given, and what holds without."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from .broker_configs import BROKER_CONFIGS, BROKER_SYNONYMS
from .topic_configs import GROUP_CONFIGS, TOPIC_CONFIGS
from .types import ConfigSource, Definition, ResourceType

__all__ = ("ALL_BROKERS", "Configs", "Synonym")

ALL_BROKERS: Final = ""
"""The name of the resource that gives all brokers their defaults (KIP-226)."""

_MS_PER: Final = {"hours": 3_600_000, "minutes": 60_000, "ms": 1}


@attrs.frozen
class Synonym:
    """One place that a value may come from."""

    name: str
    value: str | None
    source: ConfigSource


class Configs:
    """The settings that requests can change, but for the topics' own, which each topic has.

    1. A topic's own value wins over the brokers' dynamic default, that over what the broker was started with, and that
       over Kafka's default.
    2. A value set for one broker alone holds where that broker is asked, and nowhere else.
    3. Values are kept as they were sent; Kafka's spelling of them is what is told.

    Args:
        settings: what the brokers were started with: Kafka's property names, with underscores for dots.
    """

    def __init__(self, settings: attrs.AttrsInstance | None = None) -> None:
        given = {} if settings is None else {name: _text(value) for name, value in _properties(settings)}
        self.static: dict[str, str] = {
            name: value for name, value in given.items() if value != BROKER_CONFIGS[name].default
        }
        """What the brokers were started with, where it is not Kafka's default."""
        self._dynamic: dict[tuple[ResourceType, str], dict[str, str]] = {}
        self._topic_defaults: dict[tuple[str, int | None], str] = {}  # what was looked up since the last change
        # A new cluster has this one as a dynamic default of all brokers (KIP-966).
        least = self.static.pop("min.insync.replicas", "1")
        self.replace(ResourceType.BROKER, ALL_BROKERS, {"min.insync.replicas": least})

    def own(self, kind: ResourceType, name: str) -> dict[str, str]:
        """A copy of what a resource was given."""
        return dict(self._dynamic.get((kind, name), {}))

    def replace(self, kind: ResourceType, name: str, configs: Mapping[str, str]) -> None:
        """Give a resource these settings and no others."""
        self._topic_defaults.clear()
        if configs:
            self._dynamic[kind, name] = dict(configs)
        else:
            self._dynamic.pop((kind, name), None)

    def named(self, kind: ResourceType) -> list[str]:
        """The names of the resources of a kind that were given something."""
        return [name for each, name in self._dynamic if each is kind]

    def synonyms(self, name: str, node: int | None = None, given: Mapping[str, str] | None = None) -> list[Synonym]:
        """The places that a broker's setting takes its value from, the one in force first.

        ``node`` adds what that broker alone was given while it ran, ``given`` what it alone was started with. Where
        only a setting in another unit has a value, there is none.
        """
        found = list(self._synonyms(name, node, given or {}))
        while found and found[0].name != name:
            del found[0]
        return found

    def topic_default(self, name: str, node: int | None = None) -> str:
        """What a topic's setting is without a value of its own, as Kafka spells it.

        ``node`` is the broker that asks, where it matters that it was given a value of its own.

        Raises:
            KeyError: topics have no such setting.
        """
        known = self._topic_defaults.get((name, node))
        if known is None:
            known = self._topic_defaults[name, node] = self._default(TOPIC_CONFIGS[name], node)
        return known

    def group(self, group: str, name: str) -> str:
        """The value in force of a group's setting, such as ``consumer.session.timeout.ms``.

        Raises:
            KeyError: groups have no such setting.
        """
        own = self._dynamic.get((ResourceType.GROUP, group), {}).get(name)
        definition = GROUP_CONFIGS[name]
        return self._default(definition, None) if own is None else definition.parse(own)

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
        for source, values in self._places(names, node, given):
            for each in names:
                value = values.get(each)
                if value is not None:
                    yield Synonym(each, value, source)

    def _places(
        self, names: Sequence[str], node: int | None, given: Mapping[str, str]
    ) -> Iterator[tuple[ConfigSource, Mapping[str, str | None]]]:
        if node is not None:
            yield ConfigSource.DYNAMIC_BROKER, {**self._dynamic.get((ResourceType.BROKER, str(node)), {})}
        yield ConfigSource.DYNAMIC_DEFAULT_BROKER, {**self._dynamic.get((ResourceType.BROKER, ALL_BROKERS), {})}
        yield ConfigSource.STATIC_BROKER, {**self.static, **given}
        yield ConfigSource.DEFAULT, {each: BROKER_CONFIGS[each].default for each in names if each in BROKER_CONFIGS}


def _properties(settings: attrs.AttrsInstance) -> Iterator[tuple[str, object]]:
    for field in attrs.fields(type(settings)):
        if getattr(settings, field.name) is None:
            continue
        name = field.name.replace("_", ".")
        if name in BROKER_CONFIGS:
            yield name, getattr(settings, field.name)
        elif f"log.{name}" in BROKER_CONFIGS:
            yield f"log.{name}", getattr(settings, field.name)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
