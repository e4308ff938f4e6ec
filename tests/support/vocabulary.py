"""Checks that JSON on standard output has the keys of the shell's vocabulary alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aiokafkawire.cli.shell.vocabulary import VOCABULARY

__all__ = ("CHECKED_MODULES", "CheckedJson", "unknown_keys")

CHECKED_MODULES: Final = (
    "aiokafkawire.cli.shell.output",
    "aiokafkawire.cli.apply.plan_output",
    "aiokafkawire.cli.top.plain_output",
    "aiokafkawire.cli.tap.lines",
)
"""The modules that write JSON; their ``json`` can be replaced by a CheckedJson."""

_NESTED: Final = ("entity", "synonyms", "brokers", "topics", "groups")
"""The keys whose values are objects, or lists of objects, with keys of the vocabulary."""


def unknown_keys(row: Mapping[str, Any]) -> set[str]:
    """The keys of an object, and of those in it, that the vocabulary lacks."""
    unknown = row.keys() - VOCABULARY.keys()
    for key in _NESTED:
        inner = row.get(key)
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, Mapping):
                unknown |= unknown_keys(one)
    return unknown


class CheckedJson:
    """Stands for the module ``json``: refuses objects with other keys."""

    def dumps(self, value: Any, **options: Any) -> str:
        if isinstance(value, Mapping):
            assert not unknown_keys(value), f"no keys of the shell's vocabulary: {unknown_keys(value)}"
        return json.dumps(value, **options)
