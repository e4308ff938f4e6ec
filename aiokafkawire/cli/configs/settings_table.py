"""The rows of ``configs describe``: a row for each setting of a resource."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import attrs

from ...admin.config_resources import ConfigEntry, ConfigResource
from .resources import is_own, resource_row

__all__ = ("SettingsView", "missing_keys")

_HIDDEN: Final = "(hidden)"
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")


@attrs.frozen(kw_only=True)
class SettingsView:
    """The settings that ``configs describe`` shows, and the columns of its table.

    Without ``all`` and ``keys`` these are the settings of the resource itself.
    """

    all: bool = False
    keys: tuple[str, ...] = ()
    """The only settings to show; empty for no such limit."""
    synonyms: bool = False
    documentation: bool = False
    json: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table."""
        more = {"synonyms": self.synonyms, "documentation": self.documentation}
        chosen = (name for name, is_shown in more.items() if is_shown)
        return ("resource_type", "resource_name", "config", "value", "source", *chosen)

    def rows(self, resource: ConfigResource, entries: Mapping[str, ConfigEntry]) -> Iterator[dict[str, Any]]:
        """Yield a row for each setting of a resource that is to be shown."""
        for name, entry in entries.items():
            if name in self.keys or (not self.keys and (self.all or is_own(resource, entry))):
                row = {**resource_row(resource, json=self.json), "config": name}
                yield row | (self._json_fields(entry) if self.json else self._cells(entry))

    def _json_fields(self, entry: ConfigEntry) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "value": None if entry.is_sensitive else entry.value,
            "source": entry.source.name,
            "value_type": entry.type,
            "is_sensitive": entry.is_sensitive,
            "is_read_only": entry.is_read_only,
        }
        if self.synonyms:
            fields["synonyms"] = [
                {
                    "config": synonym.name,
                    "value": None if entry.is_sensitive else synonym.value,
                    "source": synonym.source.name,
                }
                for synonym in entry.synonyms
            ]
        if self.documentation:
            fields["documentation"] = entry.documentation
        return fields

    def _cells(self, entry: ConfigEntry) -> dict[str, Any]:
        cells: dict[str, Any] = {"value": _value(entry, entry.value), "source": entry.source.name}
        if self.synonyms:
            texts = (f"{each.source.name}:{each.name}={_value(entry, each.value)}" for each in entry.synonyms)
            cells["synonyms"] = "; ".join(texts) or None
        if self.documentation:
            cells["documentation"] = _plain_text(entry.documentation)
        return cells


def missing_keys(keys: Collection[str], entries: Mapping[str, ConfigEntry]) -> list[str]:
    """Return the requested settings that a resource does not have."""
    return [key for key in dict.fromkeys(keys) if key not in entries]


def _value(entry: ConfigEntry, value: str | None) -> str | None:
    if entry.is_sensitive:
        return _HIDDEN
    return '""' if value == "" else value


def _plain_text(documentation: str | None) -> str | None:
    """Return the brokers' text, which is HTML, in one line and without tags."""
    if documentation is None:
        return None
    return " ".join(_TAG.sub("", documentation).split())
